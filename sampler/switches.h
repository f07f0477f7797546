/*
 * Every switch of threads on every CPU, with the stack of the thread that leaves its CPU: a sample of the software event context-switches
 * before each switch out, and PERF_RECORD_SWITCH_CPU_WIDE at each switch out and in (include/uapi/linux/perf_event.h). Neither needs
 * tracefs, and their thread ids are of our PID namespace, which those in the tracepoint's payload are not.
 *
 * And, with `wakings`, who ends waits: a sample of the tracepoint sched:sched_waking, in the context of the waker, which is an event of the same
 * group: on and off together with the switches. Where tracefs cannot be read there are none. The pid in its payload is of the first PID
 * namespace (sampler/sched_payload.h); where that is not ours, the samples before switches come from sched:sched_switch, whose payload has
 * the same thread's pid there, and so tells which thread is which.
 *
 * With a copy of 16 KiB of its stack a switch out costs its thread 6.8 us of CPU time, and a waking 2.7 us more (Linux 6.18 in a virtual machine, a
 * ping-pong of two threads; 0.5 us for us to unwind it).
 *
 * They have rings of their own, so that however many switches there are no other sample is lost for them. CPUs that come online later
 * are not followed. One thread uses it.
 */
#ifndef SAMPLER_SWITCHES_H
#define SAMPLER_SWITCHES_H

#include "sampler/problem.h"
#include "sampler/sampler.h"

struct switches;

struct switches_options {
	uint32_t stack_bytes; /* as of struct sampler_options; not 0 */
	uint16_t max_stack;
	bool no_kernel_stacks;
	bool wakings;
	bool first_pids; /* our PID namespace is the first */
	struct sampler_roots roots;
};

/* Switches are recorded when it returns. 0, or -errno with *problem: -EACCES, -EPERM (events of whole CPUs need CAP_PERFMON), -ENOMEM, ... */
int switches_open(const struct switches_options *options, struct switches **ret_switches, struct sampler_problem *problem);
void switches_close(struct switches *s);

/* Bytes that its rings have locked. */
size_t switches_locked(const struct switches *s);

/* The event with its ids; lives as long as the switches. */
const struct sampler_opened *switches_opened(const struct switches *s);

/* The event of wakings with its ids, or NULL; *ret_pid_offset: of sched_payload_waking. Lives as long as the switches. */
const struct sampler_opened *switches_wakings(const struct switches *s, uint32_t *ret_pid_offset);

/* Why there are none, although they were wanted, and what to do; "": there are. */
const char *switches_no_wakings(const struct switches *s);

/* The next round goes up to here: before the other rings are read, so that what a thread has mapped is known before its stack is met. */
void switches_mark(struct switches *s);

struct switches_listener {
	void *ctx;
	int (*records)(void *ctx, const void *data, size_t len); /* as of struct sampler_listener */
	/*
	 * Samples of switches carry this id too, from the next records on: where another recorder has the same software event on a CPU, the kernel
	 * prepares a sample once and writes it for both, with the id of the first (seen in Linux 6.18; kernel/events/core.c,
	 * do_perf_sw_event, which does not begin anew as perf_tp_event does).
	 */
	int (*id)(void *ctx, uint64_t id);
};

/* Hands over what came before the mark. 0 or the listener's -errno. */
int switches_take(struct switches *s, const struct switches_listener *listener);

/*
 * Before they are released: the CPUs whose rings have no room for the longest record. Some may be missing there behind those that were taken, and those
 * behind them; the kernel says so with the next that has room, and if there is none, never. 0 or the listener's -errno.
 */
int switches_full(const struct switches *s, int (*full)(void *ctx, int cpu), void *ctx);

/* What was taken is not needed any more. */
void switches_release(struct switches *s);

/* Switches them off for a time, and on again: all of a CPU at once, one CPU after the other, 20 us each. */
void switches_turn(struct switches *s, bool on);

struct switches_load {
	uint64_t records;     /* samples, of all threads, that switches_take has handed over since the last time that it was asked, */
	uint64_t records_cpu; /* and the most of one CPU */
	uint64_t waiting_cpu; /* at least so many are in the fullest ring now */
};
struct switches_load switches_load(struct switches *s);

/* How many of the longest records a ring has room for. */
uint64_t switches_room(const struct switches *s);

/* A ring is a quarter full: for poll. */
int switches_poll_fd(const struct switches *s);

/* None are recorded from now on; what there is can still be taken. */
void switches_stop(struct switches *s);

#endif
