/* From the program into a library, back by a callback, and into another library, unknown to the
 * first. */
#include "known.h"

unsigned first_enter(unsigned (*callback)(unsigned), unsigned x);
unsigned second_enter(unsigned x);

static volatile unsigned sink;

static NOINLINE unsigned callback(unsigned x)
{
	BURN(x, ROUNDS / 5);
	return CALL(second_enter, x) + 1;
}

static NOINLINE unsigned work(unsigned x)
{
	return CALL(first_enter, callback, x) * 3;
}

int main(void)
{
	unsigned x = 1;

	known_ready();
	for (;;)
		sink = x += CALL(work, x);
}
