/* The library at the end of so_main's stacks. Calls a leaf often, so that samples are in the
 * PLT. */
#include "known.h"

unsigned second_enter(unsigned x);
unsigned second_short(unsigned x);
unsigned second_leaf(unsigned x);

NOINLINE unsigned second_leaf(unsigned x)
{
	BURN(x, ROUNDS);
	return x;
}

NOINLINE unsigned second_short(unsigned x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

NOINLINE unsigned second_enter(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS / 5; i++)
		x += CALL(second_short, x);
	return CALL(second_leaf, x) ^ 1;
}
