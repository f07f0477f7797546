/*
 * Threads that sleep for two or three known times in turn: sleeps HOGS SECONDS IDLE. HOGS more
 * threads only run, and IDLE more sleep for 150 ms each time. At the end prints lines as
 * tests/helpers/waits does: FUNCTION - blocked COUNT MICROSECONDS 0.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Not inlined or cloned, so that it keeps its own name. */
#ifdef __clang__
#define NAMED __attribute__((noinline)) static
#else
#define NAMED __attribute__((noipa)) static
#endif
#define THREADS_MAX 256

static uint64_t end_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool over(void)
{
	return now_ns() >= end_ns;
}

#define SLEEP(name, ms)                                              \
	NAMED void name(void)                                        \
	{                                                            \
		const struct timespec t = {.tv_nsec = ms * 1000000}; \
                                                                     \
		clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);       \
		__asm__ volatile("" ::: "memory");                   \
	}

SLEEP(seven_ms, 7)
SLEEP(forty_ms, 40)
SLEEP(one_ms, 1)
SLEEP(hundred_ms, 100)
SLEEP(five_ms_a, 5)
SLEEP(five_ms_b, 5)
SLEEP(five_ms_c, 5)
SLEEP(idle, 150)

struct turn {
	const char *name;
	void (*sleep)(void);
	uint64_t count, ns;
};

static struct turn turns[][4] = {
	{{"seven_ms", seven_ms, 0, 0}, {"forty_ms", forty_ms, 0, 0}},
	{{"one_ms", one_ms, 0, 0}, {"hundred_ms", hundred_ms, 0, 0}},
	{{"five_ms_a", five_ms_a, 0, 0},
	 {"five_ms_b", five_ms_b, 0, 0},
	 {"five_ms_c", five_ms_c, 0, 0}},
};
#define SLEEPERS (sizeof(turns) / sizeof(turns[0]))

static void *run_sleeper(void *arg)
{
	while (!over())
		for (struct turn *t = arg; t->name; t++) {
			uint64_t before = now_ns();

			t->sleep();
			t->ns += now_ns() - before;
			t->count++;
		}
	return NULL;
}

static void *run_hog(void *arg)
{
	while (!over())
		continue;
	return arg;
}

static void *run_idle(void *arg)
{
	while (!over())
		idle();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS_MAX];
	size_t hogs = argc == 4 ? strtoul(argv[1], NULL, 10) : 0,
	       all = SLEEPERS + hogs + (argc == 4 ? strtoul(argv[3], NULL, 10) : 0), n = 0;

	if (argc != 4 || all > THREADS_MAX || hogs > THREADS_MAX) {
		fprintf(stderr, "sleeps HOGS SECONDS IDLE\n");
		return 2;
	}
	end_ns = now_ns() + (uint64_t)(strtod(argv[2], NULL) * 1e9);
	for (; n < all; n++)
		if (pthread_create(&threads[n], NULL,
				   n < SLEEPERS          ? run_sleeper
				   : n < SLEEPERS + hogs ? run_hog
							 : run_idle,
				   n < SLEEPERS ? turns[n] : NULL))
			return 1;
	while (n--)
		pthread_join(threads[n], NULL);
	for (size_t i = 0; i < SLEEPERS; i++)
		for (const struct turn *t = turns[i]; t->name; t++)
			printf("%s - blocked %llu %llu 0\n", t->name, (unsigned long long)t->count,
			       (unsigned long long)(t->ns / 1000));
	return 0;
}
