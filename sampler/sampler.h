/*
 * Samples of processes or of the whole machine: perf_event_open, one ring for each CPU, and what
 * comes out of the rings, handed in chunks of raw records to whoever listens (the perf.data writer
 * is one listener).
 *
 * Samples have IDENTIFIER (where there are several events), IP, TID, TIME, PERIOD, CPU, CALLCHAIN (and RAW for tracepoints only
 * where asked for), and where stacks are copied REGS_USER and STACK_USER; all other records end with the sample_id of these. Times are CLOCK_MONOTONIC.
 * Formats: include/uapi/linux/perf_event.h.
 *
 * Two ways of opening: an event for each thread and CPU (inherited by threads and children) while
 * that takes few descriptors; else events for whole CPUs, and records of other processes are
 * dropped here. With events for whole CPUs, what is no sample has rings of its own, if as much memory may be locked: news of
 * processes are found there without looking at each sample. One thread uses a sampler.
 */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include "sampler/event.h"
#include "sampler/problem.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sampler;

#define SAMPLER_PIDS_MAX 65536 /* processes named by the caller */
#define SAMPLER_THREAD_FDS 512 /* descriptors up to which events are opened for each thread */

/*
 * Bytes of a copied stack: the kernel takes multiples of 8 below 65,535 (kernel/events/core.c, perf_copy_attr). A record has 65,535 at
 * most, so that of a large copy it leaves out at the far end what callchain and registers need (perf_sample_ustack_size).
 */
#define SAMPLER_STACK_BYTES_MAX 65528

enum sampler_mode {
	SAMPLER_AUTO,
	SAMPLER_THREADS, /* events for each thread and CPU */
	SAMPLER_CPUS,    /* events for whole CPUs */
};

struct sampler_options {
	const pid_t *pids; /* processes with all their threads and children, present and future */
	size_t npids;
	bool system_wide; /* everything; pids are then not needed */
	pid_t command; /* a child of ours that has not called exec yet: sampled from its exec on; 0:
			  none */
	const struct sampler_event *events;
	size_t nevents;
	bool events_chosen; /* by sampler_event_default: fall back to cpu-clock where they cannot be
			       opened */
	uint32_t freq_hz;   /* samples a second and CPU; 0: period holds */
	uint64_t period;    /* events between samples; 0 with freq_hz 0: every one */
	bool identified; /* samples have IDENTIFIER also where there is one event: its file will have others */
	bool no_kernel_stacks, no_user_stacks;
	uint16_t max_stack; /* frames of a callchain; 0: the kernel's perf_event_max_stack */
	uint32_t stack_bytes; /* samples carry the user registers (unwind/arch.h, ARCH_PERF_REGS) and as much of the user's stack,
				 from the stack pointer on: a multiple of 8 up to SAMPLER_STACK_BYTES_MAX; 0: neither */
	struct sampler_roots roots;
	bool count; /* keep sampler_stats up to date, as for a progress line; else only what costs nothing is known before the end */
	enum sampler_mode mode;
	size_t locked_bytes; /* that rings beside these have locked (switches_locked) */
	size_t ring_bytes; /* a ring's data, a power of two of pages; 0: as large as allowed, up to
			      2 MiB a CPU, 64 MiB in all; and as much again for the rings of what is no sample. Where
			      stacks are copied, up to 8 MiB and 128 MiB, the latter rings not */
};

enum sampler_news {
	SAMPLER_PROCESS_NEW, /* was forked or executed another program; its mount namespace is ours,
				or not known */
	SAMPLER_PROCESS_ELSEWHERE, /* the same, in another mount namespace than ours */
	SAMPLER_PROCESS_ENDED,
	SAMPLER_PROCESS_DETACHED, /* it goes on, but executed a program with other rights than it had,
				     or one that it may not read: the kernel took the events of its
				     thread away (Linux fs/exec.c, begin_new_exec), whoever opened
				     them; SAMPLER_THREADS only */
};

/*
 * Who takes records. Each function may be NULL; non-zero (-errno) ends the drain and is handed on.
 * records: whole records, 8-byte aligned, len > 0, but that one which goes over the end of a ring may be continued by the
 * very next call; valid until the next call of `round` has returned. cpu is -1 for records synthesized from /proc.
 * round: every ring was read once; no record of later rounds is older than the records of the round before (perf's
 * FINISHED_ROUND). process: news of a process of the targets, out of the records, so at no cost; it may have ended
 * by now. NEW may come several times for one process. event_id: a CPU came online, and records of
 * the event carry this id too from now on; -E2BIG: that cannot be, the CPU is not sampled.
 */
struct sampler_listener {
	void *ctx;
	int (*records)(void *ctx, int cpu, const void *data, size_t len);
	int (*round)(void *ctx);
	int (*process)(void *ctx, pid_t pid, enum sampler_news news);
	int (*event_id)(void *ctx, size_t event, uint64_t id);
};

#define SAMPLER_LISTENERS_MAX 4

struct sampler_stats {
	uint64_t bytes;                   /* handed to listeners */
	uint64_t records, samples;        /* of these those that were looked at: all with sampler_options.count */
	uint64_t dropped;                 /* records of other processes, CPU-wide mode */
	uint64_t lost_records;            /* sum of PERF_RECORD_LOST: rings were full */
	uint64_t lost_samples; /* samples that the kernel says it could not write (kernel 6.0 on,
				  after sampler_stop) */
	uint64_t throttled;    /* PERF_RECORD_THROTTLE, of the records looked at */
	uint64_t damaged;      /* rings whose content made no sense, as far as they were looked at, skipped to their head */
	uint64_t first_sample_ns,
		last_sample_ns; /* CLOCK_MONOTONIC; 0: none. Exact to a round */
	uint64_t rounds;
	uint64_t cpus_added, cpus_missed; /* came online since the beginning: were sampled from then
					     on, or could not be */
	int cpu_added, cpu_missed;        /* the first of these */
};

/* How the events were opened. */
struct sampler_setup {
	enum sampler_mode mode; /* SAMPLER_THREADS or SAMPLER_CPUS */
	bool kernel_excluded;   /* not permitted: user-space only */
	bool fell_back;         /* the chosen events could not be opened, cpu-clock is used */
	bool filtered;          /* SAMPLER_CPUS and not system_wide */
	size_t descriptors, threads, processes, cpus;
	size_t ring_bytes;               /* of each CPU */
	char note[SAMPLER_DETAIL_BYTES]; /* what was given up and how to get it; empty: nothing */
};

/* One event with the ids that its records carry. Lives as long as the sampler. */
struct sampler_opened {
	struct perf_event_attr attr; /* as the kernel accepted it */
	const char *name; /* perf's way: "cpu-clock", with ":u" where the kernel was excluded for
			     lack of rights */
	const uint64_t *ids;
	size_t nids;
};

/*
 * Opens events and rings; sampling has begun when it returns (for command: begins at its exec).
 * Raises the soft RLIMIT_NOFILE to the hard one. 0, or -errno with *problem: -ESRCH (a process is
 * not there), -EACCES, -EPERM, -EMFILE, -ENOENT (event not supported here), -EINVAL (or stack_bytes), -ENOMEM,
 * -ENOSYS.
 */
int sampler_open(const struct sampler_options *options, struct sampler **ret_sampler,
		 struct sampler_problem *problem);

/* Adds a listener (copied). 0 or -E2BIG. */
int sampler_listen(struct sampler *s, const struct sampler_listener *listener);

/* Hands the state of the running processes from /proc to the listeners: kernel and module MMAP,
 * then FORK, COMM and executable MMAP2 of the targets (system-wide: of all), with times 0, as one
 * round. Call it first. 0 or -errno. */
int sampler_synthesize(struct sampler *s);

/* The same of one process that may be no target, for `take` and not for the listeners. One that has ended has no records. 0, -ENOMEM, take's -errno. */
int sampler_synthesize_process(struct sampler *s, pid_t pid, int (*take)(void *ctx, const void *data, size_t len), void *ctx);

/* A descriptor to poll for POLLIN: a ring is half full, with copies of stacks a quarter. Drain once before the first poll, and before
 * the first after it was added to another epoll: what was ready then is told to epoll_ctl and to nobody else, and a ring that is
 * full does not get ready again. Drain at least every SAMPLER_DRAIN_MS all the same. */
#define SAMPLER_DRAIN_MS 900
int sampler_poll_fd(const struct sampler *s);

/* Hands everything that is in the rings to the listeners. 0 or the listener's -errno. */
int sampler_drain(struct sampler *s);

/*
 * Looks which CPUs are online, every SAMPLER_LOOK_MS at most, and in SAMPLER_CPUS samples those that came since the
 * beginning, or that were seen to be gone and came back: the kernel ends the events of a CPU that goes. One that is back by the
 * next look is not noticed (nor is a suspend, for which all but one go). Events of threads stay, but
 * there are none for a CPU that is new. Call it between drains. 0, or the listener's -errno.
 */
#define SAMPLER_LOOK_MS 2000
int sampler_follow_cpus(struct sampler *s);

/*
 * Changes the size of the copies of stacks while recording; both the old and the new one are not 0, as samples with and without copies
 * are laid out differently. Events are opened anew, switched on, and the old ones closed: for microseconds, or as long as we wait for a
 * CPU just then, a thread's samples may come twice, and none is missing; processes may be told again. It takes some 40 microseconds a
 * thread. Where descriptors do not suffice for all threads it is done CPU by CPU. Records carry new ids, which listeners are told, and sampler_opened has the new ids only. Rings stay as they are. Call it between
 * drains. 0; or, with all as before, -EINVAL (size), -EMFILE, -ENOMEM, -ESRCH (no thread is left), the listener's -errno, or
 * an error of opening. Only CPU by CPU an error may leave some CPUs with the new size.
 */
int sampler_set_stack_bytes(struct sampler *s, uint32_t stack_bytes);

/* Ends sampling and drains a last time. 0 or the listener's -errno. */
int sampler_stop(struct sampler *s);

const struct sampler_opened *sampler_opened(const struct sampler *s, size_t *ret_n);
const struct sampler_setup *sampler_setup(const struct sampler *s);
const struct sampler_stats *sampler_stats(const struct sampler *s);

/* Closes everything. NULL is fine. */
void sampler_close(struct sampler *s);

/* Whether rings may have what memory they want: with CAP_IPC_LOCK. */
bool sampler_locks_freely(void);

#endif
