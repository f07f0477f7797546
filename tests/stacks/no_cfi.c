/* Code without CFI between code with CFI: only this file's flags omit it. so_main calls it as its
 * second library. */
#include "known.h"

unsigned second_enter(unsigned x);

LEAF(bare_leaf, ROUNDS)
static NOINLINE unsigned bare_saves(unsigned x)
{
	unsigned a = x + 1, b = x * 3, c = x ^ 5;

	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
	BURN(x, ROUNDS / 5);
	x += CALL(bare_leaf, x);
	__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c));
	return x + a + b + c;
}

NOINLINE unsigned second_enter(unsigned x)
{
	volatile unsigned v[16] = {x};

	return CALL(bare_saves, v[0]) ^ v[1];
}
