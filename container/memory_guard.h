/*
 * Makes allocations of profcpu fail before the memory that is left ends. Then what a hostile file
 * or process demands ends in an error, which names the lack of memory, and the kernel kills no
 * process for it. The Makefile links the program with these functions in place of those of the C
 * library (--wrap). Shared libraries keep the latter.
 */
#ifndef CONTAINER_MEMORY_GUARD_H
#define CONTAINER_MEMORY_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#define MEMORY_GUARD_RESERVE_PART 32 /* this part of the memory left at first stays free */

/* Whether that many bytes more fit. It reads files only if many bytes were allocated since. */
bool memory_guard_fits(size_t bytes);

#endif
