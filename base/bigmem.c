#include "base/bigmem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

void *bigmem_alloc(size_t n, size_t each)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, each, &bytes) || bytes > SIZE_MAX - HUGE_PAGE_BYTES)
		return NULL;
	if (bytes < HUGE_PAGE_BYTES)
		return malloc(bytes ? bytes : 1);
	bytes = (bytes + HUGE_PAGE_BYTES - 1) & ~(HUGE_PAGE_BYTES - 1);
	void *p = aligned_alloc(HUGE_PAGE_BYTES, bytes);

	if (p)
		madvise(p, bytes, MADV_HUGEPAGE); /* a hint; the kernel may ignore it */
	return p;
}

void *bigmem_zeroed(size_t n, size_t each)
{
	void *p = bigmem_alloc(n, each);

	return p ? memset(p, 0, n * each) : NULL;
}
