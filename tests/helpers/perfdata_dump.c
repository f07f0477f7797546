/*
 * Prints the contents of a perf.data file ("-": stdin) as our reader sees them, for comparison with
 * perf's own tools. The first argument selects the output, the second is the file:
 *   - walk: number of records of each type, statistics
 *   - info: header fields
 *   - events: one name a line
 *   - dump: time, size, type and content of each record as in perf report -D, with callchains
 *   - periods: for each sample the output of perf script --ns -F time,period,event
 *   - sizes: for each sample event, time, sizes of raw data, user stack, registers, branches
 */
#include "recording/perfdata.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const type_names[] = {
	"?",
	"MMAP",
	"LOST",
	"COMM",
	"EXIT",
	"THROTTLE",
	"UNTHROTTLE",
	"FORK",
	"READ",
	"SAMPLE",
	"MMAP2",
	"AUX",
	"ITRACE_START",
	"LOST_SAMPLES",
	"SWITCH",
	"SWITCH_CPU_WIDE",
	"NAMESPACES",
	"KSYMBOL",
	"BPF_EVENT",
	"CGROUP",
	"TEXT_POKE",
	"AUX_OUTPUT_HW_ID",
};

static void dump_mmap(const struct perfdata_record *r)
{
	const struct perfdata_mmap *m = &r->mmap;

	printf(" %d/%d: [%#" PRIx64 "(%#" PRIx64 ") @ %#" PRIx64, r->pid, r->tid, m->addr, m->len,
	       m->pgoff);
	if (r->type == PERF_RECORD_MMAP) {
		printf("]: %c %s", r->misc & PERF_RECORD_MISC_MMAP_DATA ? 'r' : 'x', m->filename);
		return;
	}
	if (m->build_id.len) {
		printf(" <");
		for (unsigned int i = 0; i < m->build_id.len; i++)
			printf("%02x", m->build_id.bytes[i]);
		printf(">");
	} else {
		printf(" %02x:%02x %" PRIu64 " %" PRIu64, m->maj, m->min, m->ino,
		       m->ino_generation);
	}
	printf("]: %c%c%c%c %s", m->prot & PROT_READ ? 'r' : '-', m->prot & PROT_WRITE ? 'w' : '-',
	       m->prot & PROT_EXEC ? 'x' : '-', m->flags & MAP_SHARED ? 's' : 'p', m->filename);
}

static void dump_sample(const struct perfdata_record *r)
{
	const struct perfdata_sample *s = &r->sample;

	printf("(IP, 0x%x): %d/%d: %#" PRIx64 " period: %" PRIu64 " addr: %#" PRIx64, r->misc,
	       r->pid, r->tid, s->ip, s->period, s->addr);
	for (size_t i = 0; i < s->ncallchain; i++)
		printf("\n%" PRIx64, s->callchain[i]);
}

static void dump_record(const struct perfdata_record *r)
{
	printf("%" PRIu64 " [%#x]: %s", r->time_ns, r->header->size,
	       r->type < 22 ? type_names[r->type] : "?");
	switch (r->type) {
	case PERF_RECORD_SAMPLE:
		dump_sample(r);
		break;
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		dump_mmap(r);
		break;
	case PERF_RECORD_COMM:
		printf("%s: %s:%d/%d", r->comm.exec ? " exec" : "", r->comm.name, r->pid, r->tid);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		printf("(%d:%d):(%d:%d)", r->pid, r->tid, r->task.ppid, r->task.ptid);
		break;
	default:
		break;
	}
	putchar('\n');
}

static void print_sizes(const struct perfdata *d, const struct perfdata_record *r)
{
	const struct perfdata_sample *s = &r->sample;
	size_t n;

	printf("%s %" PRIu64 " raw %u stack %" PRIu64 " regs %d branches %" PRIu64 "\n",
	       perfdata_events(d, &n)[r->event].name, r->time_ns, s->raw_bytes, s->user_stack_bytes,
	       s->user_regs != NULL, s->nbranches);
}

static void print_period(const struct perfdata *d, const struct perfdata_record *r)
{
	size_t n;

	printf("%" PRIu64 ".%09" PRIu64 ": %" PRIu64 " %s:\n", r->time_ns / 1000000000,
	       r->time_ns % 1000000000, r->sample.period, perfdata_events(d, &n)[r->event].name);
}

static void print_stats(const struct perfdata_stats *s, const uint64_t *counts)
{
	for (unsigned int i = 0; i < 22; i++)
		if (counts[i])
			printf("%s %" PRIu64 "\n", type_names[i], counts[i]);
	printf("records %" PRIu64 " samples %" PRIu64 " rounds %" PRIu64 "\n", s->records,
	       s->samples, s->rounds);
	printf("lost_events %" PRIu64 " lost_samples %" PRIu64 " throttled %" PRIu64 "\n",
	       s->lost_events, s->lost_samples, s->throttled);
	printf("unknown_types %" PRIu64 " damaged %" PRIu64 " unknown_features %" PRIu64
	       " out_of_order %" PRIu64 "\n",
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

	printf("hostname %s\nos_release %s\nversion %s\narch %s\ncmdline %s\n", text(i->hostname),
	       text(i->os_release), text(i->perf_version), text(i->arch), text(i->cmdline));
	printf("cpus %u of %u\n", i->cpus_online, i->cpus_available);
	printf("sample_time %" PRIu64 " %" PRIu64 "\n", i->first_sample_ns, i->last_sample_ns);
	printf("clockid %d\npipe %d\ncompressed %d\n", i->has_clockid ? (int)i->clockid : -1,
	       i->pipe_mode, i->compressed);
	for (size_t k = 0; k < i->nbuild_ids; k++) {
		const struct perfdata_build_id_entry *b = &i->build_ids[k];

		for (unsigned int j = 0; j < b->build_id.len; j++)
			printf("%02x", b->build_id.bytes[j]);
		printf(" %s\n", b->filename);
	}
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
		if (argv[1][0] == 'd')
			dump_record(&r);
		else if (argv[1][0] == 'p' && r.type == PERF_RECORD_SAMPLE)
			print_period(d, &r);
		else if (argv[1][0] == 's' && r.type == PERF_RECORD_SAMPLE)
			print_sizes(d, &r);
	}
	if (argv[1][0] == 'w')
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
