/*
 * Describes the event offcpu-time in perf.data, as `perf record --off-cpu` has it. Each time that a
 * thread did not run is one sample, at the end of that time (or later, when the end became known:
 * offcpu_idx.h). Its stack is the one with which the thread left its CPU; its period is the time in
 * ns. Source: Linux tools/perf/util/bpf_off_cpu.c, off_cpu_write.
 */
#ifndef RECORDING_PERFDATA_OFFCPU_H
#define RECORDING_PERFDATA_OFFCPU_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFDATA_OFFCPU_NAME "offcpu-time"
/* One sample for each waker's thread and stack, at its first wakeup; its period is meaningless. */
#define PERFDATA_WAKER_NAME "offcpu-waker"

enum perfdata_offcpu_kind {
	PERFDATA_OFFCPU_NONE,
	PERFDATA_OFFCPU_WAIT,  /* PERFDATA_OFFCPU_NAME */
	PERFDATA_OFFCPU_WAKER, /* PERFDATA_WAKER_NAME */
};

/*
 * Returns the attr of such an event to record next to `beside`. Its samples carry identifiers too.
 */
struct perf_event_attr perfdata_offcpu_attr(const struct perf_event_attr *beside,
					    enum perfdata_offcpu_kind kind);

/*
 * Returns the kind of an event by config1, which is unused in such events and which no other
 * recorder sets. Names are not available before the file's end.
 */
enum perfdata_offcpu_kind perfdata_offcpu_kind(const struct perf_event_attr *attr);

/* Returns the event's name; NULL for PERFDATA_OFFCPU_NONE. */
const char *perfdata_offcpu_name(enum perfdata_offcpu_kind kind);

struct perfdata_offcpu {
	uint64_t id; /* id of the event */
	int32_t pid, tid, cpu;
	uint64_t time_ns, off_ns;
	const uint64_t *callchain; /* with PERF_CONTEXT_* marks; may be empty */
	size_t ncallchain;
};

#define PERFDATA_OFFCPU_BYTES (8 + 7 * 8) /* bytes of a sample without its callchain */

/*
 * Writes the sample to out, which has room for it. Returns its bytes; 0: the callchain has too many
 * words.
 */
size_t perfdata_offcpu_write(const struct perfdata_offcpu *sample, void *out);

#endif
