/* The work of the capture for one process does not grow with the number of processes it watches. */
#include "profcpu/jit/capture.h"

#include "base/clock.h"
#include "profcpu/jit/capture_process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define FEW 50
#define MANY 40000
#define WAKES 2000
#if defined(__SANITIZE_THREAD__)
#define COST_MAX UINT64_MAX /* races are found, but the sanitizer's own cost varies too much */
#else
#define COST_MAX 4
#endif
#define ROUNDS_MAX 12
#define WATCHED_PID 1 /* the first one that is added */

static atomic_uint nprobes;

void __wrap_jit_process_probe(struct jit_processes *all, struct jit_process *p, uint64_t now_ns,
			      uint64_t until_ns, bool last);

/* Probes in no time, and finds a process without .NET that is not due again. */
void __wrap_jit_process_probe(struct jit_processes *all, struct jit_process *p, uint64_t now_ns,
			      uint64_t until_ns, bool last)
{
	(void)all;
	(void)until_ns;
	(void)last;
	p->next_ns = now_ns + 3600 * NS_PER_S;
	atomic_fetch_add(&nprobes, 1);
}

/* Waits until so many probes were made in all. */
static void wait_for_probes(unsigned n)
{
	const struct timespec pause = {.tv_nsec = 20000};

	for (uint64_t begin = clock_monotonic_ns(); atomic_load(&nprobes) < n;) {
		assert_true(clock_monotonic_ns() - begin < 60 * NS_PER_S);
		nanosleep(&pause, NULL);
	}
}

/* CPU time of the capture's thread. This thread waits, and its cost grows with the time. */
static uint64_t cpu_ns(void)
{
	return clock_process_ns() - clock_thread_ns();
}

/* CPU time for WAKES single processes, one after another, while so many are watched. */
static uint64_t cost_of_wakes(int dir_fd, unsigned watched, pid_t added)
{
	struct jit_capture *c = NULL;

	atomic_store(&nprobes, 0);
	assert_int_equal(jit_capture_new(JIT_NAMES_AUTO, dir_fd, &c), 0);
	for (unsigned i = 0; i < watched; i++)
		jit_capture_add_process(c, WATCHED_PID + (pid_t)i);
	assert_int_equal(jit_capture_start(c, false), 0);
	wait_for_probes(watched);
	uint64_t begin = cpu_ns();

	for (unsigned i = 1; i <= WAKES; i++) {
		jit_capture_add_process(c, added);
		wait_for_probes(watched + i);
	}
	uint64_t took = cpu_ns() - begin;

	jit_capture_free(c);
	return took;
}

/* A known PID, as after exec, and with each wake the search for processes that are due. */
static void a_wake_costs_the_same_beside_many_processes(void **state)
{
	char dir[] = "/tmp/test_capture_cost.XXXXXX";
	uint64_t few = UINT64_MAX, many = UINT64_MAX;

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* The least of several measurements: other programs can only add to it. */
	for (int i = 0; i < ROUNDS_MAX && (i < 2 || many / COST_MAX >= few); i++) {
		uint64_t ns = cost_of_wakes(dir_fd, FEW, WATCHED_PID + FEW - 1);

		few = ns < few ? ns : few;
		ns = cost_of_wakes(dir_fd, MANY, WATCHED_PID + MANY - 1);
		many = ns < many ? ns : many;
	}
	print_message("%d wakes: %.1f ms beside %d processes, %.1f ms beside %d\n", WAKES,
		      (double)few / NS_PER_MS, FEW, (double)many / NS_PER_MS, MANY);
	assert_true(many / COST_MAX < few);
	assert_int_equal(unlinkat(dir_fd, "symbols", AT_REMOVEDIR), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wake_costs_the_same_beside_many_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
