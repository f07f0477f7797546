/*
 * Loads with a known profile: workload KIND [N] SECONDS. SECONDS are CPU time of the burning thread
 * unless stated otherwise. Prints "ready" when all threads and processes run.
 *
 *   threads N S     N threads that wait, and one that burns in burn_thread
 *   processes N S   N processes that wait; the first one burns in burn_parent
 *   children S      for S of elapsed time, one child after the other that burns 20 ms in
 *                   burn_child; the parent only waits
 *   churn S         for S of elapsed time, one thread after the other that burns 20 ms in
 *                   burn_short
 *   exec S          burns half of S in burn_before, executes itself again, burns the rest in
 *                   burn_after
 *   after S         the second half of exec
 *   brief           burns 1 ms in burn_brief
 *   deep N S        burns below N calls of burn_deep
 *   maps S          for S of elapsed time, maps and unmaps its own program as fast as it can
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BURNER __attribute__((noinline)) static void

static volatile uint64_t sink;

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double elapsed(void)
{
	return seconds_of(CLOCK_MONOTONIC);
}

/* CPU time of the calling thread: a busy machine changes the duration of a load, not its number of
 * samples. */
static double used(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* Each burner has a loop of its own, so that its name is the leaf's. The compiler would merge equal
 * bodies. */
#define BURN_UNTIL(end, step)                           \
	do {                                            \
		for (uint64_t i_ = 0; i_ < 20000; i_++) \
			sink += i_ * (step);            \
	} while (used() < (end))

BURNER burn_thread(double end)
{
	BURN_UNTIL(end, 3);
}

BURNER burn_parent(double end)
{
	BURN_UNTIL(end, 5);
}

BURNER burn_child(double end)
{
	BURN_UNTIL(end, 7);
}

BURNER burn_short(double end)
{
	BURN_UNTIL(end, 9);
}

BURNER burn_before(double end)
{
	BURN_UNTIL(end, 11);
}

BURNER burn_after(double end)
{
	BURN_UNTIL(end, 13);
}

BURNER burn_brief(double end)
{
	BURN_UNTIL(end, 15);
}

BURNER burn_deep(int depth, double end)
{
	if (depth > 0)
		burn_deep(depth - 1, end);
	else
		BURN_UNTIL(end, 21);
	sink++; /* no tail call */
}

static void ready(void)
{
	puts("ready");
	fflush(stdout);
}

static void __attribute__((noreturn)) * wait_forever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static void *run_short(void *arg)
{
	(void)arg;
	burn_short(used() + 0.02);
	return NULL;
}

static int run_threads(int n, double seconds)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (int i = 0; i < n; i++) {
		int r = pthread_create(&thread, &attr, wait_forever, NULL);

		if (r) {
			fprintf(stderr, "thread %d: %s\n", i, strerror(r));
			return 1;
		}
	}
	ready();
	burn_thread(used() + seconds);
	return 0;
}

static int run_processes(int n, double seconds)
{
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			wait_forever(NULL);
		}
	}
	ready();
	burn_parent(used() + seconds);
	return 0;
}

static int run_children(double seconds)
{
	double end = elapsed() + seconds;

	ready();
	while (elapsed() < end) {
		pid_t pid = fork();

		if (!pid) {
			burn_child(used() + 0.02);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static int run_churn(double seconds)
{
	double end = elapsed() + seconds;
	pthread_t thread;

	ready();
	while (elapsed() < end) {
		if (pthread_create(&thread, NULL, run_short, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}

static int run_exec(const char *self, double seconds)
{
	char text[32];

	ready();
	burn_before(used() + seconds / 2);
	snprintf(text, sizeof(text), "%f", seconds / 2);
	execl("/proc/self/exe", self, "after", text, (char *)NULL);
	perror("exec");
	return 1;
}

static int run_maps(double seconds)
{
	double end = elapsed() + seconds;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		perror("/proc/self/exe");
		return 1;
	}
	ready();
	while (elapsed() < end) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			return 1;
		munmap(p, 4096);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";
	double seconds = argc > 2 ? atof(argv[argc - 1]) : 1;
	int n = argc > 3 ? atoi(argv[2]) : 0;

	if (!strcmp(kind, "threads"))
		return run_threads(n, seconds);
	if (!strcmp(kind, "processes"))
		return run_processes(n, seconds);
	if (!strcmp(kind, "children"))
		return run_children(seconds);
	if (!strcmp(kind, "churn"))
		return run_churn(seconds);
	if (!strcmp(kind, "exec"))
		return run_exec(argv[0], seconds);
	if (!strcmp(kind, "after")) {
		burn_after(used() + seconds);
		return 0;
	}
	if (!strcmp(kind, "brief")) {
		burn_brief(used() + 0.001);
		return 3;
	}
	if (!strcmp(kind, "deep")) {
		ready();
		burn_deep(n, used() + seconds);
		return 0;
	}
	if (!strcmp(kind, "maps"))
		return run_maps(seconds);
	fprintf(stderr, "usage: workload KIND [N] SECONDS\n");
	return 2;
}
