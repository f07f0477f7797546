/*
 * Prints the JIT code of a process as its runtime's structures tell, in the format of a perf map: "0xSTART SIZE NAME", gone ones as
 * "-0xSTART". usage: clr_methods [-n SCANS] [-i MS] PID
 * Counts and CPU time of each scan go to stderr.
 */
#include "symbols/clr_process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int code(void *ctx, const struct clr_heap_code *c)
{
	(void)ctx;
	printf("0x%llx %x %s\n", (unsigned long long)c->start, c->bytes, c->name);
	return 0;
}

static int gone(void *ctx, uint64_t start)
{
	(void)ctx;
	printf("-0x%llx\n", (unsigned long long)start);
	return 0;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int scan(struct clr_heap *h, int number)
{
	static const struct clr_heap_listener listener = {.code = code, .gone = gone};
	double start = cpu_ms();
	struct clr_heap_stats s;
	int r;

	r = clr_heap_scan(h, &listener);
	clr_heap_stats(h, &s);
	fflush(stdout);
	fprintf(stderr,
		"scan %d: %.1f ms; added %zu, gone %zu, unread %zu, unnamed %zu, rechecked %zu; bodies %zu, stubs %zu, "
		"plain %zu, modules %zu, failed %zu%s%s\n",
		number, cpu_ms() - start, s.added, s.gone, s.unread, s.unnamed, s.rechecked, s.bodies, s.stubs, s.plain, s.modules,
		s.modules_failed, r ? ": " : "", r ? strerror(-r) : "");
	return r;
}

int main(int argc, char **argv)
{
	int option, scans = 1, interval_ms = 0, r;
	struct clr_heap *h = NULL;
	struct parse_error err = {0};

	while ((option = getopt(argc, argv, "n:i:")) >= 0) {
		if (option == 'n')
			scans = atoi(optarg);
		else if (option == 'i')
			interval_ms = atoi(optarg);
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	r = clr_process_open(atoi(argv[optind]), &h, &err);
	if (r) {
		fprintf(stderr, "clr_methods: %s: %s\n", strerror(-r), err.what);
		return 1;
	}
	for (int i = 1; !r && i <= scans; i++) {
		r = scan(h, i);
		if (i < scans)
			usleep((useconds_t)interval_ms * 1000);
	}
	clr_heap_free(h);
	return r ? 1 : 0;
}
