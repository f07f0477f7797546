#include "elf/segments.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>

int elf_segments_vaddr(const struct elf_segment *segments, size_t n, uint64_t file_off,
		       uint64_t *ret_vaddr)
{
	uint64_t vaddr = 0;
	bool found = false, executable = false;

	for (size_t i = 0; i < n; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t at = file_off - s->file_off + s->vaddr;

		if (file_off < s->file_off || file_off - s->file_off >= s->file_bytes ||
		    at < s->vaddr)
			continue;
		if (found &&
		    (s->flags & PF_X ? executable && at >= vaddr : executable || at >= vaddr))
			continue;
		found = true;
		executable = s->flags & PF_X;
		vaddr = at;
	}
	if (!found)
		return -ENOENT;
	*ret_vaddr = vaddr;
	return 0;
}

int elf_segments_file_off(const struct elf_segment *segments, size_t n, uint64_t vaddr,
			  uint64_t *ret_file_off)
{
	for (size_t i = 0; i < n; i++) {
		const struct elf_segment *s = &segments[i];

		if (vaddr >= s->vaddr &&
		    (vaddr - s->vaddr < s->mem_bytes || vaddr - s->vaddr < s->file_bytes)) {
			*ret_file_off = vaddr - s->vaddr + s->file_off;
			return 0;
		}
	}
	return -ENOENT;
}
