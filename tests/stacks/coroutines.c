/* Coroutines with stacks on the heap; their stacks end where makecontext began them. */
#include "known.h"

#include <ucontext.h>

#define STACK_BYTES 65536

static ucontext_t home, one, two;
static volatile unsigned sink;

LEAF(one_leaf, ROUNDS * 4)
static NOINLINE unsigned one_work(unsigned x)
{
	x += CALL(one_leaf, x);
	LIBRARY(LIBC "+", swapcontext(&one, &two));
	return x;
}
static NOINLINE void one_begin(void)
{
	KNOWN_EDGE("-", LIBC, "one_begin");
	for (unsigned x = 1;;)
		sink = x += CALL(one_work, x);
}

LEAF(two_leaf, ROUNDS * 4)
static NOINLINE unsigned two_work(unsigned x, unsigned depth)
{
	if (depth > 1)
		return CALL(two_work, x, depth - 1) + 1;
	x += CALL(two_leaf, x);
	LIBRARY(LIBC "+", swapcontext(&two, &home));
	return x;
}
static NOINLINE void two_begin(void)
{
	KNOWN_EDGE("-", LIBC, "two_begin");
	for (unsigned x = 1;;)
		sink = x += CALL(two_work, x, 5);
}

LEAF(home_leaf, ROUNDS * 4)
static NOINLINE unsigned home_work(unsigned x)
{
	x += CALL(home_leaf, x);
	LIBRARY(LIBC "+", swapcontext(&home, &one));
	return x;
}

static void make(ucontext_t *c, void (*begin)(void))
{
	getcontext(c);
	c->uc_stack.ss_sp = malloc(STACK_BYTES);
	c->uc_stack.ss_size = STACK_BYTES;
	c->uc_link = &home;
	makecontext(c, begin, 0);
}

int main(void)
{
	unsigned x = 1;

	make(&one, one_begin);
	make(&two, two_begin);
	printf("TIMES two_work 5\n");
	fflush(stdout);
	known_ready();
	for (;;)
		sink = x += CALL(home_work, x);
}
