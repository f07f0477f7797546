/*
 * Prints what the perf.data reader makes of a file ("-": stdin), for comparison with perf's own tools.
 * usage: perfdata_dump counts|info|events|samples|times|walk|raw FILE
 *   counts   records of each type, statistics
 *   info     what the header says
 *   events   one name a line
 *   samples  as perf script --ns -F pid,tid,time,period,event,ip prints them
 *   times    type, time, pid, tid of each record
 *   walk     nothing but statistics, for measuring
 *   raw      as samples, with the size of the raw payload, user stack and branches
 */
#include "recording/perfdata.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void print_sample(const struct perfdata *d, const struct perfdata_record *r, bool raw)
{
	const struct perfdata_sample *s = &r->sample;
	size_t n;
	const char *name = perfdata_events(d, &n)[r->event].name;

	printf("%d/%d %" PRIu64 ".%09" PRIu64 ": %" PRIu64 " %s:", r->pid, r->tid, r->time_ns / 1000000000,
	       r->time_ns % 1000000000, s->period, name);
	if (raw)
		printf(" raw=%u user=%" PRIu64 " regs=%d branches=%" PRIu64, s->raw_bytes, s->user_stack_bytes,
		       s->user_regs != NULL, s->nbranches);
	putchar('\n');
	for (size_t i = 0; i < s->ncallchain; i++)
		if (s->callchain[i] < PERF_CONTEXT_MAX)
			printf("%" PRIx64 "\n", s->callchain[i]);
	if (!s->callchain)
		printf("%" PRIx64 "\n", s->ip);
	putchar('\n');
}

static void print_stats(const struct perfdata_stats *s, const uint64_t *counts)
{
	for (unsigned int i = 0; i < 64; i++)
		if (counts[i])
			printf("type %u %" PRIu64 "\n", i, counts[i]);
	printf("records %" PRIu64 " samples %" PRIu64 " rounds %" PRIu64 "\n", s->records, s->samples, s->rounds);
	printf("lost_events %" PRIu64 " lost_samples %" PRIu64 " throttled %" PRIu64 "\n", s->lost_events,
	       s->lost_samples, s->throttled);
	printf("unknown_types %" PRIu64 " damaged %" PRIu64 " unknown_features %" PRIu64 " out_of_order %" PRIu64 "\n",
	       s->unknown_types, s->damaged, s->unknown_features, s->out_of_order);
	printf("truncated_at %" PRIu64 " unfinished %d\n", s->truncated_at, s->unfinished);
}

static const char *text(const char *s)
{
	return s ? s : "(none)";
}

static void print_info(const struct perfdata *d)
{
	const struct perfdata_info *i = perfdata_info(d);

	printf("hostname %s\nos_release %s\nversion %s\narch %s\ncmdline %s\n", text(i->hostname), text(i->os_release),
	       text(i->perf_version), text(i->arch), text(i->cmdline));
	printf("cpus %u of %u\n", i->cpus_online, i->cpus_available);
	printf("sample_time %" PRIu64 " %" PRIu64 "\n", i->first_sample_ns, i->last_sample_ns);
	printf("clockid %d\npipe %d\ncompressed %d\n", i->has_clockid ? (int)i->clockid : -1, i->pipe_mode,
	       i->compressed);
	for (size_t k = 0; k < i->nbuild_ids; k++) {
		const struct perfdata_build_id_entry *b = &i->build_ids[k];

		for (unsigned int j = 0; j < b->build_id.len; j++)
			printf("%02x", b->build_id.bytes[j]);
		printf(" %s\n", b->filename);
	}
}

static void print_record(const struct perfdata *d, const struct perfdata_record *r, char what)
{
	if (what == 't')
		printf("%u %" PRIu64 " %d %d\n", r->type, r->time_ns, r->pid, r->tid);
	else if ((what == 's' || what == 'r') && r->type == PERF_RECORD_SAMPLE)
		print_sample(d, r, what == 'r');
}

int main(int argc, char **argv)
{
	static uint64_t counts[64];
	struct perfdata_record r;
	struct parse_error err = {0};
	struct perfdata *d;
	int code;

	if (argc != 3)
		return 2;
	int fd = strcmp(argv[2], "-") ? open(argv[2], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;

	if (fd < 0) {
		perror(argv[2]);
		return 1;
	}
	code = perfdata_open(fd, &d, &err);
	if (code) {
		printf("open: %d %s at %" PRIu64 "\n", code, err.what, err.offset);
		return 1;
	}
	while ((code = perfdata_next(d, &r, &err)) > 0) {
		counts[r.type & 63]++;
		print_record(d, &r, argv[1][0]);
	}
	if (argv[1][0] == 'c' || argv[1][0] == 'w')
		print_stats(perfdata_stats(d), counts);
	if (argv[1][0] == 'i')
		print_info(d);
	if (argv[1][0] == 'e') {
		size_t n;
		const struct perfdata_event *e = perfdata_events(d, &n);

		for (size_t i = 0; i < n; i++)
			printf("%s\n", e[i].name);
	}
	if (code)
		printf("next: %d %s at %" PRIu64 "\n", code, err.what, err.offset);
	perfdata_close(d);
	return code ? 1 : 0;
}
