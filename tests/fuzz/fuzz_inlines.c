/* Input: an ELF file with DWARF. */
#include "base/file.h"
#include "elf/dwarf_data.h"
#include "elf/inlines.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every text, so that ASan detects pointers outside the input. */
static void probe(struct inlines *in, uint64_t vaddr)
{
	struct inline_frame frames[INLINES_DEPTH_MAX];
	size_t n;

	if (inlines_find(in, vaddr, frames, &n))
		return;
	if (!n || n > INLINES_DEPTH_MAX)
		abort();
	for (size_t i = 0; i < n; i++)
		if ((frames[i].function && strlen(frames[i].function) > DWARF_TEXT_MAX) ||
		    (frames[i].file && strchr(frames[i].file, '/')))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct parse_error err;
	struct inlines *in;
	struct elf_file file;

	if (fd < 0 || file_write_all(fd, data, size))
		abort();
	if (!elf_file_open(&file, fd, NULL, 0, &err)) {
		if (!inlines_open(&file, NULL, NULL, 0, &in, &err)) {
			for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 5)
				probe(in, vaddr);
			inlines_free(in);
		}
		elf_file_close(&file);
	}
	close(fd);
	return 0;
}
