/* The map of the test program's own code, for lookups of its functions. */
#ifndef TESTS_UNIT_CODE_MAP_H
#define TESTS_UNIT_CODE_MAP_H

#include "recording/perfdata.h"

#include <link.h>

/* For dl_iterate_phdr. Finds the segment with code, as the kernel's record of its map has it. */
static inline int code_map_find(struct dl_phdr_info *info, size_t size, void *data)
{
	struct perfdata_record *r = data;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			r->mmap.addr = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			r->mmap.len = info->dlpi_phdr[i].p_memsz;
			r->mmap.pgoff = info->dlpi_phdr[i].p_offset;
		}
	return 1;
}

#endif
