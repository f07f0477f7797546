/* record_run from a command line, for tests:\n\n  record_main [-p PID]... [-a] [-e EVENT]... [-F
 * HZ] [-d SECONDS] [-m threads|cpus] [-s SYSFS]\n              [-u] -o DIR [-- CMD ARG...]\n
 * record_main -R PERF_DATA    repairs the file\n\nPrints the results and costs as KEY VALUE lines.
 * -u: does not count samples, like the product. */
#include "base/clock.h"
#include "base/log.h"
#include "profcpu/post/outdir.h"
#include "profcpu/record/record.h"
#include "recording/perfdata_writer.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void sink(enum log_level level, const char *text, unsigned long repeats)
{
	static const char *const words[] = {"error: ", "warning: ", ""};

	fprintf(stderr, "%s%s", words[level], text);
	if (repeats)
		fprintf(stderr, " (and %lu more)", repeats);
	fputc('\n', stderr);
}

static int repair(const char *path)
{
	struct parse_error err = {0};
	uint64_t cut = 0;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int r = fd < 0 ? -1 : perfdata_repair(fd, &cut, &err);

	printf("repair %d\ncut %llu\n", r, (unsigned long long)cut);
	if (r)
		fprintf(stderr, "%s\n", err.what ? err.what : "cannot be opened");
	return r ? 1 : 0;
}

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Time that this thread has waited for a CPU so far. */
static uint64_t delay_ns(void)
{
	FILE *f = fopen("/proc/thread-self/schedstat", "re");
	unsigned long long ns = 0;

	if (f && fscanf(f, "%*u %llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static void print_result(const struct record_result *r)
{
	static const char *const ends[] = {"duration", "signal", "size", "target", "error"};
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	printf("end %s\nstarted %d\nsamples %llu\nlost %llu\nbytes %llu\nevent %s\nmode "
	       "%s\ndescriptors %zu\nthreads %zu\n"
	       "ring_kib %zu\nduration_ms %llu\nstatus %d\nuser_s %.6f\nsys_s %.6f\nrss_kib %ld\n"
	       "delay_ms %llu\n",
	       ends[r->end], r->started, (unsigned long long)r->samples,
	       (unsigned long long)r->lost, (unsigned long long)r->data_bytes, r->event,
	       r->setup.mode == SAMPLER_CPUS ? "cpus" : "threads", r->setup.descriptors,
	       r->setup.threads, r->setup.ring_bytes >> 10,
	       (unsigned long long)(r->duration_ns / NS_PER_MS), r->command_status,
	       seconds(usage.ru_utime), seconds(usage.ru_stime), usage.ru_maxrss,
	       (unsigned long long)(delay_ns() / NS_PER_MS));
}

int main(int argc, char **argv)
{
	static pid_t pids[4096];
	static const char *events[64];
	struct record_options o = {.pids = pids, .events = events, .count = true};
	struct record_result result = {.end = RECORD_END_ERROR};
	struct outdir dir;
	int c;

	log_set_sink(sink);
	while ((c = getopt(argc, argv, "+p:ae:F:d:m:s:o:quR:")) != -1) {
		if (c == 'p' && o.npids < 4096)
			pids[o.npids++] = atoi(optarg);
		else if (c == 'a')
			o.system_wide = true;
		else if (c == 'e' && o.nevents < 64)
			events[o.nevents++] = optarg;
		else if (c == 'F')
			o.freq_hz = (uint32_t)atoi(optarg);
		else if (c == 'd')
			o.duration_ns = (uint64_t)(atof(optarg) * 1e9);
		else if (c == 'm')
			o.mode = !strcmp(optarg, "cpus") ? SAMPLER_CPUS : SAMPLER_THREADS;
		else if (c == 's')
			o.roots.sysfs = optarg;
		else if (c == 'o')
			o.dir = optarg;
		else if (c == 'R')
			return repair(optarg);
		else if (c == 'q')
			o.quiet = true;
		else if (c == 'u')
			o.count = false;
		else
			return 2;
	}
	if (!o.dir)
		return 2;
	if (optind < argc)
		o.argv = argv + optind;
	int r = post_outdir_make(o.dir, &dir);

	if (!r) {
		o.dir_fd = dir.fd;
		r = record_run(&o, &result);
		post_outdir_release(&dir);
	}
	print_result(&result);
	return r ? 1 : 0;
}
