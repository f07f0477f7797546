/*
 * Input: a byte with the kind of the request, then the server's reply; or, after the byte 'k', a
 * key of a cache. covers: symbols/server/symbol_server.c elf/elf_file.c elf/debug_file.c
 */
#include "base/file.h"
#include "symbols/server/symbol_server.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An accepted key equals the key of its image. */
static void try_key(const uint8_t *data, size_t size)
{
	char name[NAME_MAX + 1], key[1024], again[1024];
	struct symbol_file f;

	if (size >= sizeof(key))
		return;
	memcpy(key, data, size);
	key[size] = 0;
	if (!symbol_file_of_key(key, &f, name) &&
	    (symbol_file_key(&f, again, sizeof(again)) || strcmp(key, again) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbol_file f = {.name = "x.pdb",
				.build_id = {.bytes = {1, 2, 3, 4}, .len = BUILD_ID_MAX}};
	const char *what = NULL;

	if (!size)
		return 0;
	if (data[0] == 'k') {
		try_key(data + 1, size - 1);
		return 0;
	}
	f.kind = (enum symbol_file_kind)(data[0] % 3);
	int fd = memfd_create("answer", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, data + 1, size - 1))
		abort();
	int r = symbol_file_check(&f, fd, &what);

	if (r && !what)
		abort();
	close(fd);
	return 0;
}
