/*
 * Where functions begin and end, by an image's unwind table: known also where all symbols are stripped, so that samples of one
 * nameless function stay together. Format: .eh_frame of the Linux Standard Base, core, 10.6; pointer encodings 10.5.
 */
#ifndef SYMBOLS_FUNCTION_BOUNDS_H
#define SYMBOLS_FUNCTION_BOUNDS_H

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
	uint64_t bad; /* entries that could not be read */
};

/* Reads the table at `data`, which lies at vaddr `addr`. Entries of encodings that are not known are skipped and counted.
 * 0 (also with no entry) or -ENOMEM. */
int function_bounds_parse(const void *data, size_t len, uint64_t addr, bool is_64, struct function_bounds *ret_bounds);

/* Reads an ELF file's table. 0; -ENOENT (none); -EBADMSG, -E2BIG, -ENOMEM, -errno. fd is borrowed. */
int function_bounds_open(int fd, struct function_bounds *ret_bounds);

void function_bounds_free(struct function_bounds *b);

/* The function that covers vaddr. 0 or -ENOENT. */
int function_bounds_find(const struct function_bounds *b, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end);

#endif
