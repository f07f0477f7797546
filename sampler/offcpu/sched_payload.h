/*
 * Payload of the scheduler's tracepoints (PERF_SAMPLE_RAW). Its pids belong to the first PID
 * namespace, while those of the sample belong to the reader's. Fields: Linux
 * include/trace/events/sched.h. First eight bytes: struct trace_entry and enum trace_flag_type in
 * include/linux/trace_events.h.
 */
#ifndef SAMPLER_OFFCPU_SCHED_PAYLOAD_H
#define SAMPLER_OFFCPU_SCHED_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_PAYLOAD_OFFSET_MAX 4096 /* of a field, in bytes */

/*
 * Finds the offset of a named int in the text of the tracefs file `format`. 0; -EBADMSG: no such
 * field of 4 bytes.
 */
int sched_payload_field(const char *format, const char *name, uint32_t *ret_offset);

struct sched_waking {
	int32_t pid; /* thread that is woken */
	int32_t by;  /* thread that ran on the waking CPU; 0: idle */
	/*
	 * The waker is an interrupt handler, or a softirq. A softirq may also run at the end of a
	 * system call.
	 */
	bool hardirq, softirq;
};

/* Decodes sched:sched_waking, with pid at pid_offset. 0; -EBADMSG: too short. */
int sched_payload_waking(const void *raw, size_t bytes, uint32_t pid_offset,
			 struct sched_waking *ret_waking);

/* The running thread in the payload of any tracepoint. 0; -EBADMSG: too short. */
int sched_payload_current(const void *raw, size_t bytes, int32_t *ret_pid);

#endif
