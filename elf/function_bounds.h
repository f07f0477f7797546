/*
 * Starts and ends of functions from an image's unwind table. The table survives when symbols are
 * stripped, so the samples of one nameless function stay together. Format: .eh_frame of the Linux
 * Standard Base, core, 10.6; pointer encodings 10.5.
 */
#ifndef ELF_FUNCTION_BOUNDS_H
#define ELF_FUNCTION_BOUNDS_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUNCTION_BOUNDS_BYTES_MAX ((uint64_t)128 << 20) /* larger tables are not read */

struct function_bounds_entry {
	uint64_t start; /* vaddr */
	uint32_t bytes;
};

struct function_bounds {
	VEC(struct function_bounds_entry) entries; /* sorted by start */
	uint64_t bad;                              /* unreadable entries */
};

/*
 * Reads the table at `data`; its vaddr is `addr`. Skips and counts entries with unknown encodings.
 * Returns 0 (also without entries) or -ENOMEM.
 */
int function_bounds_parse(const void *data, size_t len, uint64_t addr, bool is_64,
			  struct function_bounds *ret_bounds);

/*
 * Reads an ELF file's table. fd is borrowed. Returns 0, -ENOENT (none), -EBADMSG, -E2BIG, -ENOMEM
 * or -errno.
 */
int function_bounds_open(int fd, struct function_bounds *ret_bounds);

void function_bounds_free(struct function_bounds *b);

/* The function that covers vaddr, or NULL. */
const struct function_bounds_entry *function_bounds_find(const struct function_bounds *b,
							 uint64_t vaddr);

#endif
