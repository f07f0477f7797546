/* Options of a sampler: targets, events, stacks and rings. */
#ifndef SAMPLER_OPTIONS_H
#define SAMPLER_OPTIONS_H

#include "sampler/event.h"
#include "sampler/roots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SAMPLER_PIDS_MAX 65536 /* processes named by the caller */

/*
 * Largest copy of a stack in bytes. The kernel takes multiples of 8 below 65,535
 * (kernel/events/core.c, perf_copy_attr). A record has at most 65,535 bytes, so the kernel cuts
 * large copies at their far end (perf_sample_ustack_size).
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
	bool system_wide; /* samples everything; pids are not needed */
	pid_t command;    /* a child of ours before its exec, sampled from the exec on; 0: none */
	const struct sampler_event *events;
	size_t nevents;
	bool events_chosen; /* by sampler_event_default: falls back to cpu-clock */
	uint32_t freq_hz;   /* samples per second and CPU; 0: period holds */
	uint64_t period;    /* events between samples; 0 with freq_hz 0: every event */
	bool identified;    /* samples have IDENTIFIER even with one event */
	bool no_kernel_stacks, no_user_stacks;
	uint16_t max_stack; /* frames of a callchain; 0: the kernel's perf_event_max_stack */
	/*
	 * Bytes of user stack in a sample, from the stack pointer up: a multiple of 8 up to
	 * SAMPLER_STACK_BYTES_MAX. Samples then also carry the user registers of base/arch.h,
	 * ARCH_PERF_REGS. 0: neither.
	 */
	uint32_t stack_bytes;
	struct sampler_roots roots;
	/* Keeps sampler_stats up to date, for a progress line. Otherwise costly counts come late.
	 */
	bool count;
	enum sampler_mode mode;
	uint64_t memory;     /* bytes that are left, which may shrink rings; 0: memory_left() */
	size_t locked_bytes; /* memory locked by other rings of this process (switch_rings_locked)
			      */
	/*
	 * Data bytes of a ring, a power of two pages. 0: as large as allowed. The maximum is 2 MiB
	 * per CPU and 64 MiB in all, and as much again for event-only rings. With copied stacks it
	 * is 8 MiB per CPU and 128 MiB in all; event-only rings stay at 2 MiB.
	 */
	size_t ring_bytes;
};

#endif
