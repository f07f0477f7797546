#include "container/memory_guard.h"

#include "container/memory_left.h"

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define STEP_BYTES ((uint64_t)256 << 10) /* least bytes between two readings */
#define STEP_PART 4                      /* several threads may each take this part */

static _Atomic uint64_t reserve;       /* 0: not read yet */
static _Thread_local uint64_t allowed; /* bytes until the next reading */
static _Thread_local bool reading;

/* Reads the memory that is left, which allocates, too. */
static bool read_and_fit(size_t bytes)
{
	int error = errno;
	uint64_t left, none = 0;

	reading = true;
	left = memory_left();
	reading = false;
	errno = error;
	if (left == UINT64_MAX) {
		allowed = UINT64_MAX;
		return true;
	}
	if (atomic_load(&reserve) == 0)
		atomic_compare_exchange_strong(&reserve, &none,
					       left / MEMORY_GUARD_RESERVE_PART + 1);
	if (bytes > left || left - bytes < atomic_load(&reserve))
		return false;
	allowed = (left - bytes - atomic_load(&reserve)) / STEP_PART;
	if (allowed < STEP_BYTES)
		allowed = STEP_BYTES;
	return true;
}

bool memory_guard_fits(size_t bytes)
{
	if (bytes <= allowed) {
		allowed -= bytes;
		return true;
	}
	if (reading || read_and_fit(bytes))
		return true;
	errno = ENOMEM;
	return false;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t each);
void *__real_realloc(void *p, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t each);
void *__wrap_realloc(void *p, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
void *__wrap_reallocarray(void *p, size_t n, size_t each);

void *__wrap_malloc(size_t bytes)
{
	return memory_guard_fits(bytes) ? __real_malloc(bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t each)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, each, &bytes))
		bytes = SIZE_MAX;
	return memory_guard_fits(bytes) ? __real_calloc(n, each) : NULL;
}

void *__wrap_realloc(void *p, size_t bytes)
{
	size_t had = p ? malloc_usable_size(p) : 0;

	return memory_guard_fits(bytes > had ? bytes - had : 0) ? __real_realloc(p, bytes) : NULL;
}

void *__wrap_reallocarray(void *p, size_t n, size_t each)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, each, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return __wrap_realloc(p, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
	return memory_guard_fits(bytes) ? __real_aligned_alloc(align, bytes) : NULL;
}
