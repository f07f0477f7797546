/*
 * More busy threads than CPUs: crowd THREADS SECONDS SLEEP_US. The first thread of each four only
 * works. The others work for a quarter to one millisecond of CPU time and then sleep for SLEEP_US,
 * again and again. At the end each thread prints "TID RUN_NS WAIT_NS COUNT" of its schedstat and
 * sleeps for two seconds, so that a recorder can see the same.
 */
#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t end_ns;
static useconds_t sleep_us;

static void work(uint64_t ns)
{
	uint64_t until_ns = clock_thread_ns() + ns;

	while (clock_thread_ns() < until_ns && clock_monotonic_ns() < end_ns)
		;
}

static void print_counts(void)
{
	char text[80], line[120];
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || !fgets(text, sizeof(text), f))
		exit(1);
	fclose(f);
	int n = snprintf(line, sizeof(line), "%ld %s", syscall(SYS_gettid), text);

	if (write(1, line, (size_t)n) != n)
		exit(1);
}

static void *run(void *arg)
{
	size_t number = (size_t)arg;

	while (clock_monotonic_ns() < end_ns) {
		work((number % 4 + 1) * NS_PER_MS / 4);
		if (number % 4)
			usleep(sleep_us);
	}
	print_counts();
	sleep(2);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	size_t n = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;

	if (!n)
		return 2;
	end_ns = clock_monotonic_ns() + (uint64_t)(atof(argv[2]) * (double)NS_PER_S);
	sleep_us = (useconds_t)strtoul(argv[3], NULL, 10);
	for (size_t i = 0; i < n; i++)
		if (pthread_create(&thread, NULL, run, (void *)i))
			return 1;
	pthread_exit(NULL);
}
