/*
 * Code that tests/dotnet/stacks calls through P/Invoke. It has no frame pointers, so rbp is an
 * ordinary register, and it is on the stack while it calls back. No call is a tail call, so all
 * frames exist.
 */
#include <math.h>

typedef long (*burn_callback)(long n);

#define PUBLIC __attribute__((visibility("default"), noinline))
#define INNER __attribute__((noinline))

/* No frame and no saved registers: the return address is always at the top of the stack. */
static INNER long burn_leaf(long n)
{
	unsigned long x = (unsigned long)n;

	for (int i = 0; i < 2000; i++)
		x = x * 31 + (unsigned long)i;
	return (long)x;
}

static INNER long burn_inner(burn_callback call, long a, long b, long c)
{
	long r = call ? call(a) : burn_leaf(a);

	return r * a + b * c;
}

static INNER long burn_middle(burn_callback call, long a, long b)
{
	long r = burn_inner(call, a, b, a ^ b);

	return r + burn_inner(call, b, a, r) * a - b;
}

/* Calls back twice, or burns if there is no callback. */
PUBLIC long burn_outer(burn_callback call, long n);
PUBLIC long burn_outer(burn_callback call, long n)
{
	long low = n & 0xff, high = n >> 8, r = burn_middle(call, n, low);

	return r * low + high;
}

/* A chain of functions that only burns. */
PUBLIC long burn_here(long n);
PUBLIC long burn_here(long n)
{
	return burn_outer(0, n) + n;
}

/* Calls libm, which makes a frame below this one. */
PUBLIC double burn_sin(double from);
PUBLIC double burn_sin(double from)
{
	double sum = from;

	for (int i = 0; i < 500; i++)
		sum += sin(sum + i);
	return sum;
}
