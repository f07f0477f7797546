/* Calls into libraries without frame pointers, into the vdso and the kernel, and callbacks from
 * them. */
#include "known.h"

#include <math.h>
#include <time.h>

static volatile unsigned sink;
static volatile double angle = 0.7;

/* A leaf of libm, called by a function without a frame and by one with a frame. */
static NOINLINE unsigned sines(unsigned x)
{
	double sum = 0;

	for (unsigned i = 0; i < ROUNDS / 20; i++)
		LIBRARY(LIBM, sum += sin(angle + i));
	return x + (unsigned)(long)sum;
}
static NOINLINE unsigned exponents_inner(unsigned x, unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++)
		LIBRARY(LIBM "+", sum += exp(angle + i % 5));
	return x + (unsigned)(long)sum;
}
static NOINLINE unsigned exponents(unsigned x)
{
	return CALL(exponents_inner, x, ROUNDS / 20) ^ x;
}

/* String functions that libc selected for this CPU. */
static char from[1 << 15], to[1 << 15];
static NOINLINE unsigned copies(unsigned x)
{
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;

	for (unsigned i = 0; i < 20; i++)
		LIBRARY(LIBC, copy(to, from, sizeof(to)));
	return x + to[x % sizeof(to)];
}
static NOINLINE unsigned lengths(unsigned x)
{
	size_t (*volatile length)(const char *) = strlen;
	size_t sum = 0;

	for (unsigned i = 0; i < 20; i++)
		LIBRARY(LIBC, sum += length(from));
	return x + (unsigned)sum;
}

static NOINLINE unsigned clocks(unsigned x)
{
	struct timespec t;

	for (unsigned i = 0; i < ROUNDS / 50; i++)
		LIBRARY(LIBC "+;" VDSO "+", clock_gettime(CLOCK_MONOTONIC, &t));
	return x + (unsigned)t.tv_nsec;
}
/* Directly, without libc in between. */
static NOINLINE unsigned system_calls(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS / 200; i++) {
		long ret = SYS_getppid;

#if defined(__x86_64__)
		__asm__ volatile("syscall" : "+a"(ret) : : "rcx", "r11", "memory");
#elif defined(__i386__)
		__asm__ volatile("int $0x80" : "+a"(ret) : : "memory");
#else
		register long number __asm__("x8") = ret;

		__asm__ volatile("svc #0" : "=r"(ret) : "r"(number) : "x0", "memory");
#endif
		x += (unsigned)ret;
	}
	return x;
}

/* From libc back into the program. */
LEAF(compare_leaf, ROUNDS / 10)
static NOINLINE int compare(const void *a, const void *b)
{
	sink = CALL(compare_leaf, 3);
	return *(const int *)a - *(const int *)b;
}
static NOINLINE unsigned search(unsigned x)
{
	static const int sorted[] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};
	void *(*volatile find)(const void *, const void *, size_t, size_t,
			       int (*)(const void *, const void *)) = bsearch;
	int key = 34;

	CALL_BACK(LIBC, compare, x += find(&key, sorted, 12, sizeof(*sorted), compare) != NULL);
	return x;
}
LEAF(order_leaf, ROUNDS / 40)
static NOINLINE int order(const void *a, const void *b)
{
	sink = CALL(order_leaf, 5);
	return *(const int *)a - *(const int *)b;
}
static NOINLINE unsigned sort(unsigned x)
{
	int numbers[16];

	for (int i = 0; i < 16; i++)
		numbers[i] = i * 7 % 16;
	CALL_BACK(LIBC "+", order, qsort(numbers, 16, sizeof(*numbers), order));
	return x + numbers[3];
}

int main(void)
{
	unsigned x = 1;

	memset(from, 'x', sizeof(from) - 1);
	known_ready();
	for (;;) {
		x += CALL(sines, x);
		x += CALL(exponents, x);
		x += CALL(copies, x);
		x += CALL(lengths, x);
		x += CALL(clocks, x);
		x += CALL(system_calls, x);
		x += CALL(search, x);
		x += CALL(sort, x);
		sink = x;
	}
}
