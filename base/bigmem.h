/* Large blocks of memory, on huge pages if the system permits it. */
#ifndef BASE_BIGMEM_H
#define BASE_BIGMEM_H

#include <stddef.h>

/*
 * Like malloc(n * each); the caller frees the block with free. NULL: out of memory, or the product
 * overflows.
 *
 * Page faults took half of the time to load a large perf map. Huge pages cause 512 times fewer
 * faults.
 */
void *bigmem_alloc(size_t n, size_t each);

/*
 * The same, zeroed by writing. For hash tables, which are read before they are written. Memory of
 * calloc takes two faults a page then: one for the shared page of zeros, one for its copy.
 */
void *bigmem_zeroed(size_t n, size_t each);

#endif
