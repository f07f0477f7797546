/*
 * Records every thread switch on every CPU, with the stack of the thread that leaves. Each switch
 * out gives a sample of the software event context-switches. Each switch out and in also gives
 * PERF_RECORD_SWITCH_CPU_WIDE (include/uapi/linux/perf_event.h). Neither needs tracefs, and thread
 * ids belong to our PID namespace.
 *
 * With `wakings`, samples of sched:sched_waking show the wakers. The two events form a group and
 * are enabled together. Without tracefs there are no wakings. The payload has pids of the first PID
 * namespace (sampler/offcpu/sched_payload.h). In another namespace, samples of sched:sched_switch
 * replace context-switches, because their payload maps those pids to ours.
 *
 * With 16 KiB of copied stack, a switch out costs its thread 6.8 us of CPU time and a waking 2.7
 * us. Unwinding takes us 0.5 us. Measured with a ping-pong of two threads in a virtual machine,
 * Linux 6.18.
 *
 * Switches have rings of their own, so they never displace other samples. CPUs that come online
 * later are not followed. One thread uses it.
 */
#ifndef SAMPLER_OFFCPU_SWITCH_RINGS_H
#define SAMPLER_OFFCPU_SWITCH_RINGS_H

#include "sampler/problem.h"
#include "sampler/sampler.h"

struct switch_rings;

struct switch_rings_options {
	uint32_t stack_bytes; /* as in struct sampler_options; not 0 */
	uint16_t max_stack;
	bool no_kernel_stacks;
	bool wakings;
	bool first_pids; /* our PID namespace is the first */
	struct sampler_roots roots;
};

/* Opens the events, disabled until switch_rings_turn. 0, or -errno with *problem: -EACCES, -EPERM
 * (events of whole CPUs need CAP_PERFMON), -ENOMEM, ... */
int switch_rings_open(const struct switch_rings_options *options, struct switch_rings **ret_rings,
		      struct sampler_problem *problem);
void switch_rings_close(struct switch_rings *s);

/* Bytes of memory that the rings lock. */
size_t switch_rings_locked(const struct switch_rings *s);

/* The event with its ids; lives as long as the switches. */
const struct sampler_opened *switch_rings_opened(const struct switch_rings *s);

/*
 * The event of wakings with its ids, or NULL. *ret_pid_offset: for sched_payload_waking. Lives as
 * long as the switches.
 */
const struct sampler_opened *switch_rings_wakings(const struct switch_rings *s,
						  uint32_t *ret_pid_offset);

/* Why wakings are not recorded, with a remedy; "": they are recorded, or were not wanted. */
const char *switch_rings_no_wakings(const struct switch_rings *s);

/*
 * Sets the end of the next round. Call it before other rings are read, so that mappings are known
 * before the stacks that need them.
 */
void switch_rings_mark(struct switch_rings *s);

struct switch_rings_listener {
	void *ctx;
	int (*records)(void *ctx, const void *data, size_t len); /* as in struct sampler_listener */
	/*
	 * Samples of switches carry this id too, from the next records on. If another recorder has
	 * the same software event on a CPU, the kernel writes one prepared sample for both, with
	 * the first one's id. Seen in Linux 6.18 (kernel/events/core.c, do_perf_sw_event).
	 */
	int (*id)(void *ctx, uint64_t id);
};

/* Hands over the records before the mark. 0 or the listener's -errno. */
int switch_rings_take(struct switch_rings *s, const struct switch_rings_listener *listener);

/*
 * Calls `full` for each CPU whose ring has no room for the longest record. Call it before
 * switch_rings_release. Records may be missing there; the kernel reports that only with the next
 * record that fits. 0 or the -errno of full.
 */
int switch_rings_full(const struct switch_rings *s, int (*full)(void *ctx, int cpu), void *ctx);

/* Switches with ids of other recorders beyond the first 1024 ids, which cannot be decoded. */
uint64_t switch_rings_left_out(const struct switch_rings *s);

/* Gives the room of taken records back to the kernel. */
void switch_rings_release(struct switch_rings *s);

/* Disables or enables the events, one CPU after the other, 20 us each. */
void switch_rings_turn(struct switch_rings *s, bool on);

/*
 * Hands over the switches since the last round without taking them: in order for each CPU, but not
 * among CPUs. out: the thread leaves its CPU.
 */
void switch_rings_peek(const struct switch_rings *s,
		       void (*moved)(void *ctx, int32_t tid, uint64_t time_ns, bool out),
		       void *ctx);

struct switch_rings_load {
	uint64_t records;     /* samples taken since the last call */
	uint64_t records_cpu; /* those of the busiest CPU */
	uint64_t unread_cpu;  /* unread samples in the fullest ring, at least */
};
struct switch_rings_load switch_rings_load(struct switch_rings *s);

/* Number of the longest records that fit into a ring. */
uint64_t switch_rings_room(const struct switch_rings *s);

/* A descriptor to poll: readable if a ring is a quarter full. */
int switch_rings_poll_fd(const struct switch_rings *s);

/* Stops recording; the records in the rings can still be taken. */
void switch_rings_stop(struct switch_rings *s);

#endif
