/* Memory that malloc keeps. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdint.h>

#define HEAP_TRIM_NS UINT64_C(30000000000) /* shortest time between two trims */

/*
 * Returns free pages between used blocks to the system, in the heaps of all threads, if the last
 * time was long ago. *last_ns: that time (CLOCK_MONOTONIC), first 0. malloc itself only returns
 * pages at the end of a heap, so a program that runs long keeps what its bursts needed.
 */
void heap_trim(uint64_t *last_ns, uint64_t now_ns);

#endif
