/*
 * What the tracepoints of the scheduler say in their payload (PERF_SAMPLE_RAW). Their pids are of the first PID namespace, whoever reads
 * them, while those of a sample are of the reader's. Fields: Linux include/trace/events/sched.h; the first eight bytes: struct trace_entry and
 * enum trace_flag_type in include/linux/trace_events.h.
 */
#ifndef SAMPLER_SCHED_PAYLOAD_H
#define SAMPLER_SCHED_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_PAYLOAD_OFFSET_MAX 4096 /* of a field */

/* Where an int that is called so stands, by the text of tracefs' file `format`. 0; -EBADMSG: there is no such field of 4 bytes. */
int sched_payload_field(const char *format, const char *name, uint32_t *ret_offset);

struct sched_waking {
	int32_t pid; /* who is woken */
	int32_t by; /* who ran on the CPU meanwhile; 0: nobody */
	bool hardirq, softirq; /* what ran was an interrupt's handler, or what one left to be done, which may be done at the end of a system call */
};

/* Of sched:sched_waking, pid at pid_offset. 0; -EBADMSG: too short. */
int sched_payload_waking(const void *raw, size_t bytes, uint32_t pid_offset, struct sched_waking *ret_waking);

/* Of any tracepoint: who ran. 0; -EBADMSG: too short. */
int sched_payload_current(const void *raw, size_t bytes, int32_t *ret_pid);

#endif
