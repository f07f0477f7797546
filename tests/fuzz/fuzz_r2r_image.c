/* Input: a PE image, which also serves as the assembly beside it. covers: dotnet/pe.c
 * dotnet/r2r_header.c dotnet/r2r_functions.c dotnet/r2r_native.c dotnet/r2r_signature.c
 * dotnet/r2r_modules.c symbols/r2r_image.c */
#include "base/file.h"
#include "symbols/r2r_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PIECES_MAX 256 /* number of named pieces, because names of hostile metadata are long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_itself(void *ctx, const char *name, struct pe_file *ret_file)
{
	const struct pe_file *file = ctx;

	(void)name;
	*ret_file = *file;
	ret_file->fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	return ret_file->fd < 0 ? -ENOENT : 0;
}

/* Every piece covers its own beginning and lies at the reported place. */
static void probe(struct symbol_provider *p)
{
	for (uint32_t i = 0; i < r2r_image_pieces(p) && i < PIECES_MAX; i++) {
		uint64_t at = r2r_image_piece_file_off(p, i);
		struct symbol s;

		/* Code outside all sections is in the tables, but has no offset. */
		if (symbol_provider_find(p, at, 0, &s))
			continue;
		if (at - s.start >= s.end - s.start || strlen(s.name) != s.name_len ||
		    symbol_provider_piece(p, at, 0) != s.piece)
			abort();
	}
}

static void read_debug(const struct pe_file *file)
{
	struct pe_debug entries[PE_DEBUG_ENTRIES_MAX];
	struct pe pe;
	size_t n;

	if (!pe_open(file, &pe, NULL) && !pe_debug(&pe, entries, &n) && n > PE_DEBUG_ENTRIES_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pe_file file = {memfd_create("image", MFD_CLOEXEC), 0, size};
	struct r2r_assembly_opener beside = {.open = open_itself, .ctx = &file};
	struct symbol_provider *p = NULL;

	if (file.fd < 0 || file_write_all(file.fd, data, size))
		abort();
	read_debug(&file);
	if (!r2r_image_open(&file, &beside, &p, NULL)) {
		probe(p);
		symbol_provider_free(p);
	}
	close(file.fd);
	return 0;
}
