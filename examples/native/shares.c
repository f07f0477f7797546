/*
 * A program with a known profile: three call paths of different depth take given shares of the CPU
 * time (60, 30 and 10 % by default). The thread's own CPU clock measures them, not a count of
 * rounds.
 *
 * usage: shares [-t THREADS] [-s A,B,C] [-i IDLE-MS] [SECONDS]
 *
 * IDLE-MS (0) is a pause after each slice of work, which takes 0.2 to 3 ms.
 * SECONDS (10) are CPU seconds of each thread. At the end prints each path's CPU time and share,
 * for comparison with a profile:
 *
 *   alpha 6.0003 60.00
 *   beta 3.0001 30.00
 *   gamma 0.9999 10.00
 *   threads 1 wall 10.0213 rounds 6121043200
 *
 * Built with frame pointers also in leaves and without inlining (see the Makefile). So a callchain
 * by frame pointers always reaches main (thread_main in other threads) and misses no caller:
 *
 *   main > work > alpha > alpha_leaf                            (depth 4)
 *   main > work > beta > beta_middle > beta_inner > beta_leaf   (depth 6)
 *   main > work > gamma_down (12 times itself) > gamma_leaf     (depth 15)
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATHS 3
#define THREADS_MAX 256
#define SECONDS_MAX 3600
#define GAMMA_DEPTH 12
#define NOINLINE __attribute__((noinline))

static const char *const path_names[PATHS] = {"alpha", "beta", "gamma"};
static double shares[PATHS] = {60, 30, 10};
static double seconds = 10;
static unsigned idle_ms;
static volatile uint64_t sink;

struct worker {
	pthread_t thread;
	uint64_t used_ns[PATHS];
	uint64_t rounds; /* amount of work done, to measure lost throughput */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * The three leaves do different arithmetic, so that no compiler merges them. Each keeps something
 * on its stack: gcc gives other leaves no frame with any option, so their caller would be missing.
 */
static NOINLINE uint64_t alpha_leaf(uint64_t x, unsigned rounds)
{
	volatile uint64_t kept = x;

	while (rounds--)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x ^ kept;
}

static NOINLINE uint64_t beta_leaf(uint64_t x, unsigned rounds)
{
	volatile uint64_t kept = x;

	while (rounds--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x ^ kept;
}

static NOINLINE uint64_t gamma_leaf(uint64_t x, unsigned rounds)
{
	volatile uint64_t kept = x;

	while (rounds--)
		x = (x ^ (x >> 31)) * 0x9e3779b97f4a7c15u;
	return x ^ kept;
}

static NOINLINE uint64_t alpha(uint64_t x, unsigned rounds)
{
	return alpha_leaf(x, rounds) + 1;
}

static NOINLINE uint64_t beta_inner(uint64_t x, unsigned rounds)
{
	return beta_leaf(x, rounds) + 2;
}

static NOINLINE uint64_t beta_middle(uint64_t x, unsigned rounds)
{
	return beta_inner(x, rounds) + 3;
}

static NOINLINE uint64_t beta(uint64_t x, unsigned rounds)
{
	return beta_middle(x, rounds) + 5;
}

static NOINLINE uint64_t gamma_down(uint64_t x, unsigned rounds, unsigned depth)
{
	if (depth <= 1)
		return gamma_leaf(x, rounds) + 7;
	return gamma_down(x + 1, rounds, depth - 1) + 11;
}

static NOINLINE uint64_t work(unsigned path, uint64_t x, unsigned rounds)
{
	switch (path) {
	case 0:
		return alpha(x, rounds) ^ 1;
	case 1:
		return beta(x, rounds) ^ 2;
	default:
		return gamma_down(x, rounds, GAMMA_DEPTH) ^ 3;
	}
}

/* The path that is furthest behind its share. */
static unsigned next_path(const struct worker *w)
{
	unsigned best = 0;
	double best_lag = -1e300;
	double total = 0, sum = 0;

	for (unsigned i = 0; i < PATHS; i++) {
		total += (double)w->used_ns[i];
		sum += shares[i];
	}
	for (unsigned i = 0; i < PATHS; i++) {
		double lag = total * shares[i] / sum - (double)w->used_ns[i];

		if (shares[i] > 0 && lag > best_lag) {
			best_lag = lag;
			best = i;
		}
	}
	return best;
}

/*
 * Slices have random lengths (about 0.2 to 3 ms), so that they do not synchronise with a sampling
 * clock. The clock is read once a slice, which costs less than a thousandth.
 */
static NOINLINE void run_paths(struct worker *w)
{
	uint64_t x = 88172645463325252u ^ (uint64_t)(uintptr_t)w, random = x;
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID), now = start;
	uint64_t end = start + (uint64_t)(seconds * 1e9);

	while (now < end) {
		unsigned path = next_path(w);

		random = random * 6364136223846793005u + 1442695040888963407u;
		unsigned rounds = 100000 + (unsigned)(random >> 33) % 1400000;
		uint64_t then = now;

		x = work(path, x, rounds);
		w->rounds += rounds;
		now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		w->used_ns[path] += now - then;
		if (idle_ms)
			usleep(1000 * idle_ms);
	}
	sink = x;
}

static void *thread_main(void *arg)
{
	run_paths(arg);
	return NULL;
}

static int usage(void)
{
	fprintf(stderr, "usage: shares [-t THREADS] [-s A,B,C] [-i IDLE-MS] [SECONDS]\n");
	return 2;
}

static int parse(int argc, char **argv, unsigned *ret_threads)
{
	int c;

	while ((c = getopt(argc, argv, "t:s:i:")) != -1) {
		if (c == 't')
			*ret_threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'i')
			idle_ms = (unsigned)strtoul(optarg, NULL, 10);
		else if (c != 's' ||
			 sscanf(optarg, "%lf,%lf,%lf", &shares[0], &shares[1], &shares[2]) != 3)
			return -1;
	}
	if (optind < argc)
		seconds = strtod(argv[optind], NULL);
	for (unsigned i = 0; i < PATHS; i++)
		if (!(shares[i] >= 0))
			return -1;
	if (!(shares[0] + shares[1] + shares[2] > 0))
		return -1;
	return *ret_threads >= 1 && *ret_threads <= THREADS_MAX && seconds > 0 &&
			       seconds <= SECONDS_MAX
		       ? 0
		       : -1;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	unsigned threads = 1, started = 1;
	double total = 0, used[PATHS] = {0};
	uint64_t start = clock_ns(CLOCK_MONOTONIC), rounds = 0;

	if (parse(argc, argv, &threads))
		return usage();
	for (; started < threads; started++) {
		if (pthread_create(&workers[started].thread, NULL, thread_main,
				   &workers[started])) {
			fprintf(stderr, "shares: no thread %u of %u\n", started + 1, threads);
			return 1;
		}
	}
	run_paths(&workers[0]);
	for (unsigned i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	for (unsigned i = 0; i < started; i++) {
		rounds += workers[i].rounds;
		for (unsigned p = 0; p < PATHS; p++)
			used[p] += (double)workers[i].used_ns[p] / 1e9;
	}
	for (unsigned p = 0; p < PATHS; p++)
		total += used[p];
	for (unsigned p = 0; p < PATHS; p++)
		printf("%s %.4f %.2f\n", path_names[p], used[p], 100 * used[p] / total);
	printf("threads %u wall %.4f rounds %llu\n", started,
	       (double)(clock_ns(CLOCK_MONOTONIC) - start) / 1e9, (unsigned long long)rounds);
	return 0;
}
