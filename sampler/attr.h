/* perf_event_open and its attributes: features of this kernel, and settings of our events. */
#ifndef SAMPLER_ATTR_H
#define SAMPLER_ATTR_H

#include "sampler/options.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Fields of a sample, in the kernel's order: IDENTIFIER (with several events), IP, TID, TIME, CPU,
 * PERIOD, CALLCHAIN, and with copied stacks REGS_USER and STACK_USER.
 */
#define ATTR_SAMPLE_TYPE                                                         \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)
#define ATTR_SAMPLE_STACK (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* A sample's first fields, after the header and the identifier. */
struct attr_sample {
	uint64_t ip;
	uint32_t pid, tid;
	uint64_t time_ns;
};
/* Last fields of all other records; the identifier follows. */
struct attr_sample_id {
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, res;
};
_Static_assert(sizeof(struct attr_sample) == 24, "sample layout");
_Static_assert(sizeof(struct attr_sample_id) == 24, "sample_id layout");

/* First fields of a PERF_RECORD_SAMPLE; NULL: too short. */
static inline const struct attr_sample *attr_sample_of(const struct perf_event_header *h,
						       bool identified)
{
	size_t at = sizeof(*h) + (identified ? sizeof(uint64_t) : 0);

	return h->size < at + sizeof(struct attr_sample) ? NULL
							 : (const void *)((const char *)h + at);
}

/* Features that only some kernels have or permit. */
struct attr_features {
	bool build_id;    /* MMAP2 with build ids (5.12) */
	bool namespaces;  /* NAMESPACES records (CAP_PERFMON or CAP_SYS_ADMIN) */
	bool format_lost; /* PERF_FORMAT_LOST (6.0) */
};

/* perf_event_open(2) with PERF_FLAG_FD_CLOEXEC; a descriptor or -errno. */
int attr_open(const struct perf_event_attr *attr, pid_t pid, int cpu);

/* The same, in the group of another event: it counts only while the leader counts. */
int attr_open_in_group(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd);

/*
 * Tries features by opening an event on this process that counts nothing. 0; -ENOSYS; -EACCES,
 * -EPERM (blocked, for example by seccomp).
 */
int attr_probe(struct attr_features *ret_features);

/* A dummy event with our clock: owns a ring into which other events write. */
struct perf_event_attr attr_ring_owner(void);

/*
 * Enables records other than samples: MMAP2, COMM, FORK, EXIT, KSYMBOL, NAMESPACES. features NULL:
 * disables them.
 */
void attr_set_side_band(struct perf_event_attr *attr, const struct attr_features *features);

/* A dummy event that records only these, in the layout of the sampling event. */
struct perf_event_attr attr_event_only(const struct perf_event_attr *sampling,
				       const struct attr_features *features);

/* The attributes of an event to sample; first: with records other than samples. */
struct perf_event_attr attr_of(const struct sampler_options *options,
			       const struct sampler_event *event,
			       const struct attr_features *features, bool first);

#endif
