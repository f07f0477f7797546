/*
 * Prints the JIT code of a process from its runtime's structures, in the format of a perf map:
 * "0xSTART SIZE NAME"; freed code is "-0xSTART".
 *
 * usage: clr_methods [-n SCANS] [-i MS] [-m MAP] PID
 *
 * Prints counts and CPU time of each scan to stderr. -m: before the scan the runtime writes its own
 * perf map, which is copied to MAP. The process is stopped from then until the end of the scan. A
 * second map after the scan, MAP.after, lacks code that was freed before the stop.
 */
#include "base/clock.h"
#include "dotnet/coreclr/runtime.h"
#include "tests/helpers/runtime_map.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int code(void *ctx, const struct clr_jit_code_body *c)
{
	(void)ctx;
	printf("0x%llx %x %s\n", (unsigned long long)c->start, c->bytes, c->name);
	return 0;
}

static int gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	(void)ctx;
	(void)seen_ns;
	printf("-0x%llx\n", (unsigned long long)start);
	return 0;
}

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int scan(struct clr_jit_code *h, int number)
{
	static const struct clr_jit_code_listener listener = {.code = code, .gone = gone};
	double start = cpu_ms();
	struct clr_jit_code_stats s;
	int r;

	r = clr_jit_code_scan(h, &listener, UINT64_MAX);
	clr_jit_code_stats(h, &s);
	fflush(stdout);
	fprintf(stderr,
		"scan %d: %.1f ms; added %zu, gone %zu, unread %zu, unnamed %zu, rechecked %zu; "
		"bodies %zu, stubs %zu, "
		"plain %zu, modules %zu, failed %zu%s%s\n",
		number, cpu_ms() - start, s.added, s.gone, s.unread, s.unnamed, s.rechecked,
		s.bodies, s.stubs, s.plain, s.modules, s.modules_failed, r ? ": " : "",
		r ? strerror(-r) : "");
	return r;
}

static int copy_map(int from, const char *path)
{
	static char buf[65536];
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	off_t at = 0;
	ssize_t n;

	while (to >= 0 && (n = pread(from, buf, sizeof(buf), at)) > 0) {
		if (write(to, buf, (size_t)n) != n)
			return -1;
		at += n;
	}
	return to < 0 || close(to) ? -1 : 0;
}

/* Copies the runtime's own perf map to path. With h, scans its memory directly after that. */
static int list(struct opener *o, struct clr_jit_code *h, pid_t pid, const char *path)
{
	int map, r = runtime_map_begin(o, pid, clock_monotonic_ns() + 30 * NS_PER_S, &map);

	if (r)
		return r;
	if (h) {
		kill(pid, SIGSTOP);
		usleep(50000);
	}
	r = copy_map(map, path);
	if (h && !r)
		r = scan(h, 1);
	kill(pid, SIGCONT);
	if (runtime_map_end(o, pid, clock_monotonic_ns() + 30 * NS_PER_S, map))
		r = -1;
	return r;
}

static int scan_with_maps(struct clr_jit_code *h, pid_t pid, const char *path)
{
	struct opener *o = NULL;
	char after[4096];
	int r = opener_new(&o);

	snprintf(after, sizeof(after), "%s.after", path);
	if (!r)
		r = list(o, h, pid, path);
	if (!r)
		r = list(o, NULL, pid, after);
	opener_free(o);
	return r;
}

int main(int argc, char **argv)
{
	int option, scans = 1, interval_ms = 0, r;
	struct clr_jit_code *h = NULL;
	struct parse_error err = {0};
	const char *map = NULL;

	while ((option = getopt(argc, argv, "n:i:m:")) >= 0) {
		if (option == 'n')
			scans = atoi(optarg);
		else if (option == 'i')
			interval_ms = atoi(optarg);
		else if (option == 'm')
			map = optarg;
		else
			return 2;
	}
	if (optind + 1 != argc)
		return 2;
	r = clr_runtime_open(atoi(argv[optind]), UINT64_MAX, &h, &err);
	if (r) {
		fprintf(stderr, "clr_methods: %s: %s\n", strerror(-r), err.what);
		return 1;
	}
	if (map)
		r = scan_with_maps(h, atoi(argv[optind]), map);
	for (int i = 1; !r && !map && i <= scans; i++) {
		r = scan(h, i);
		if (i < scans)
			usleep((useconds_t)interval_ms * 1000);
	}
	clr_jit_code_free(h);
	return r ? 1 : 0;
}
