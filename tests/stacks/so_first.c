/* A library that so_main calls, and that calls back. */
#include "known.h"

unsigned first_enter(unsigned (*callback)(unsigned), unsigned x);
unsigned first_middle(unsigned (*callback)(unsigned), unsigned x);

/* Not static, so that it is called through the PLT. */
NOINLINE unsigned first_middle(unsigned (*callback)(unsigned), unsigned x)
{
	unsigned a = x * 7, b = x + 9;

	BURN(x, ROUNDS / 5);
	__asm__ volatile("" : "+r"(a), "+r"(b));
	x += CALL_AS("callback", callback, x);
	__asm__ volatile("" : "+r"(a), "+r"(b));
	return x + a + b;
}

NOINLINE unsigned first_enter(unsigned (*callback)(unsigned), unsigned x)
{
	BURN(x, ROUNDS / 5);
	return CALL(first_middle, callback, x) + 5;
}
