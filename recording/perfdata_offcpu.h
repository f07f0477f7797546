/*
 * The event offcpu-time: a sample for each time that a thread did not run, at its end (or when that became known: offcpu_idx.h), with the stack
 * with which it left its CPU and the nanoseconds as its period. As `perf record --off-cpu` has it: Linux tools/perf/util/bpf_off_cpu.c, off_cpu_write.
 */
#ifndef RECORDING_PERFDATA_OFFCPU_H
#define RECORDING_PERFDATA_OFFCPU_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFDATA_OFFCPU_NAME "offcpu-time"
#define PERFDATA_WAKER_NAME "offcpu-waker" /* once for each thread and stack that ended waits, where it first did; its period says nothing */

enum perfdata_offcpu_kind {
	PERFDATA_OFFCPU_NONE,
	PERFDATA_OFFCPU_WAIT,  /* PERFDATA_OFFCPU_NAME */
	PERFDATA_OFFCPU_WAKER, /* PERFDATA_WAKER_NAME */
};

/* The event beside one of that attr, whose samples carry identifiers too. */
struct perf_event_attr perfdata_offcpu_attr(const struct perf_event_attr *beside, enum perfdata_offcpu_kind kind);

/* Whether, and which, by config1, which means nothing for such events and which no other recorder sets: names are in the file only at its end. */
enum perfdata_offcpu_kind perfdata_offcpu_kind(const struct perf_event_attr *attr);

/* NULL: of PERFDATA_OFFCPU_NONE. */
const char *perfdata_offcpu_name(enum perfdata_offcpu_kind kind);

struct perfdata_offcpu {
	uint64_t id; /* of the event */
	int32_t pid, tid, cpu;
	uint64_t time_ns, off_ns;
	const uint64_t *callchain; /* with marks; may be empty */
	size_t ncallchain;
};

#define PERFDATA_OFFCPU_BYTES (8 + 7 * 8) /* of a sample beside its callchain */

/* The sample into out, which has room for it. Gives its bytes; 0: the callchain has too many words. */
size_t perfdata_offcpu_put(const struct perfdata_offcpu *sample, void *out);

#endif
