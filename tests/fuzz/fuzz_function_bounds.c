/* Input: an ELF file. If the first byte is not 0x7f: whether the file has 64 bits, then its
 * .eh_frame. */
#include "base/file.h"
#include "elf/function_bounds.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int open_file(const uint8_t *data, size_t size, struct function_bounds *ret_bounds)
{
	int fd = memfd_create("elf", MFD_CLOEXEC), r;

	if (fd < 0 || file_write_all(fd, data, size))
		abort();
	r = function_bounds_open(fd, ret_bounds);
	close(fd);
	return r;
}

/* Found bounds cover the address. */
static void probe(const struct function_bounds *b, uint64_t vaddr)
{
	const struct function_bounds_entry *e = function_bounds_find(b, vaddr);

	if (e && vaddr - e->start >= e->bytes)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct function_bounds b;

	if (!size ||
	    (data[0] == 0x7f ? open_file(data, size, &b)
			     : function_bounds_parse(data + 1, size - 1, 0x1000, data[0] & 1, &b)))
		return 0;
	probe(&b, 0x1005);
	for (size_t i = 0; i < b.entries.len && i < 256; i++)
		probe(&b, b.entries.v[i].start);
	function_bounds_free(&b);
	return 0;
}
