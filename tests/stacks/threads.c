/* Some threads that live as long as the program, and many short-lived ones. */
#include "known.h"

#include <pthread.h>

static volatile unsigned sink;

LEAF(long_leaf, ROUNDS)
static NOINLINE unsigned long_work(unsigned x)
{
	return CALL(long_leaf, x) + 1;
}
static NOINLINE void *long_thread(void *arg)
{
	unsigned x = (unsigned)(size_t)arg;

	KNOWN_EDGE("-", ROOT_THREAD, "long_thread");
	KNOWN_EDGE("-", LIBC_ANY "+", "-"); /* before and after a thread's function */
	for (;;)
		sink = x += CALL(long_work, x);
	return NULL;
}

LEAF(short_leaf, ROUNDS * 4)
static NOINLINE void *short_thread(void *arg)
{
	KNOWN_EDGE("-", ROOT_THREAD, "short_thread");
	sink = CALL(short_leaf, (unsigned)(size_t)arg) + 1;
	return arg;
}
static NOINLINE unsigned make(unsigned x)
{
	pthread_t thread;

	LIBRARY(LIBC_ANY "+", x += (unsigned)pthread_create(&thread, NULL, short_thread, NULL));
	LIBRARY(LIBC_ANY "+", x += (unsigned)pthread_join(thread, NULL));
	return x;
}

int main(void)
{
	pthread_t thread;
	unsigned x = 1;

	known_ready();
	pthread_create(&thread, NULL, long_thread, NULL);
	for (;;)
		sink = x += CALL(make, x);
}
