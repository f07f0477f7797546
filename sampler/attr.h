/* perf_event_open and its attributes: what this kernel knows, and what is asked for. */
#ifndef SAMPLER_ATTR_H
#define SAMPLER_ATTR_H

#include "sampler/sampler.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* Sample fields, whose order the kernel fixes: IDENTIFIER, IP, TID, TIME, CPU, PERIOD, CALLCHAIN.
 */
#define ATTR_SAMPLE_TYPE                                                                \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

/* A sample's first fields. Records of other types end with a struct attr_sample_id. */
struct attr_sample {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
};
struct attr_sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, res;
	uint64_t identifier;
};
_Static_assert(sizeof(struct attr_sample) == 40, "sample layout");
_Static_assert(sizeof(struct attr_sample_id) == 32, "sample_id layout");

/* What not every kernel has or permits, found out by asking. */
struct attr_features {
	bool build_id;    /* MMAP2 with build ids (5.12) */
	bool namespaces; /* NAMESPACES records (CAP_PERFMON or CAP_SYS_ADMIN) */
	bool format_lost; /* PERF_FORMAT_LOST (6.0) */
};

/* perf_event_open(2) with PERF_FLAG_FD_CLOEXEC; a descriptor or -errno. */
int attr_open(const struct perf_event_attr *attr, pid_t pid, int cpu);

/* Asks the kernel by opening an event that counts nothing on this process. 0; -ENOSYS; -EACCES,
 * -EPERM (blocked, as by seccomp). */
int attr_probe(struct attr_features *ret_features);

/* A dummy event with our clock: owns a ring into which other events write. */
struct perf_event_attr attr_ring_owner(void);

/* An event as asked for; first: it carries MMAP2, COMM, FORK, EXIT, KSYMBOL, NAMESPACES too. */
struct perf_event_attr attr_of(const struct sampler_options *options,
			       const struct sampler_event *event,
			       const struct attr_features *features, bool first);

#endif
