/* A function that calls itself for as many frames as the argument, and a leaf that works there. */
#include "known.h"

static volatile unsigned sink;

LEAF(deep_leaf, ROUNDS * 20)

static NOINLINE unsigned deep(unsigned x, unsigned depth)
{
	if (depth == 1)
		return CALL(deep_leaf, x) + 1;
	return CALL(deep, x, depth - 1) + x;
}

int main(int argc, char **argv)
{
	unsigned x = 1, depth = argc > 1 ? (unsigned)atoi(argv[1]) : 10;

	if (depth < 1)
		return 2;
	printf("TIMES deep %u\n", depth);
	fflush(stdout);
	known_ready();
	for (;;)
		sink = x += CALL(deep, x, depth);
}
