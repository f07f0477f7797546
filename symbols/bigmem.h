/* Large blocks of memory, on huge pages where the system lets a program ask for them. */
#ifndef SYMBOLS_BIGMEM_H
#define SYMBOLS_BIGMEM_H

#include <stddef.h>

/*
 * As malloc(n * each), also freed with free. Half of the time to load a large perf map was page faults; with huge pages
 * they are 512 times fewer. NULL when memory is out or the product does not fit.
 */
void *bigmem_alloc(size_t n, size_t each);

#endif
