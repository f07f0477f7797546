/* A library of plugins.c. NAME is one or two; the other has other frames at the same addresses. */
#define KNOWN_QUIET
#include "known.h"

#define PASTE(a, b) a##b
#define NAMED(a, b) PASTE(a, b)
#define ENTER NAMED(NAME, _enter)
#define MIDDLE NAMED(NAME, _middle)
#define DEEPEST NAMED(NAME, _leaf)
#define STRING_OF(x) #x
#define STRING(x) STRING_OF(x)

unsigned ENTER(unsigned x);
void plugin_print_edges(void);

static NOINLINE unsigned DEEPEST(unsigned x)
{
	BURN(x, ROUNDS * 50);
	return x;
}
static NOINLINE unsigned MIDDLE(unsigned x)
{
	volatile unsigned v[FRAME] = {x};

	return CALL_AS(STRING(DEEPEST), DEEPEST, x) + v[0];
}
NOINLINE unsigned ENTER(unsigned x)
{
	return CALL_AS(STRING(MIDDLE), MIDDLE, x) + 1;
}

void plugin_print_edges(void)
{
	known_print_edges();
}
