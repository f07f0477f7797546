/*
 * Who ended waits: of each blocked wait one stack, the sleeper's from its root to where it waited, then "--", and the waker's from where it woke it
 * back to its root and the name of its thread; so the waker stands above the sleeper, as bcc's offwaketime has it. Where the waker was itself
 * blocked meanwhile, who woke it follows behind another "--", and so on. They become samples of an event of their own in the profile.
 */
#ifndef PROFCPU_WAKEUPS_H
#define PROFCPU_WAKEUPS_H

#include "profile/profile.h"
#include "recording/offcpu_idx.h"

#define WAKEUPS_EVENT "wakeup"
#define WAKEUPS_HOPS_MAX 5 /* wakers in one stack */
#define WAKEUPS_NODES_MAX (UINT32_C(1) << 23) /* of stacks, that the wakers of one recording make */
#define WAKEUPS_DELIMITER "--"
#define WAKEUPS_INTERRUPT "[interrupt]" /* in the place of a thread's name: a timer, a device, another CPU */

struct wakeups;

/* Both borrowed. max_nodes: WAKEUPS_NODES_MAX, but for tests. 0 or -ENOMEM. */
int wakeups_new(struct profile *profile, const struct offcpu_idx *idx, uint32_t max_nodes, struct wakeups **ret_wakeups);
void wakeups_free(struct wakeups *w);

/* A sample of offcpu-waker, by its place in perf.data. 0 or -ENOMEM. */
int wakeups_waker(struct wakeups *w, uint64_t file_off, uint32_t thread, uint32_t stack);

/* A sample of offcpu-time, the same; others than those in the index are left out. 0 or -ENOMEM. */
int wakeups_wait(struct wakeups *w, uint64_t file_off, const struct profile_sample *sample);

struct wakeups_summary {
	uint64_t blocked_ns; /* that threads were blocked; 0: no wakers were recorded */
	uint64_t ended_ns; /* of these: in waits that were over before the recording was, as others have no waker; */
	uint64_t known_ns; /* of these: the waker is known, */
	uint64_t interrupt_ns; /* and of these it is an interrupt */
	uint64_t samples; /* in the profile, one for each wait with a known waker, but for */
	uint64_t left_out, left_out_ns; /* those whose stacks are more than the limit */
};

/* All came: adds the samples, whose weights are the nanoseconds that the sleeper was blocked. 0, -ENOMEM, -E2BIG, -errno of the profile.
 * Beyond the limit on stacks waits are left out, and counted. */
int wakeups_finish(struct wakeups *w, struct wakeups_summary *ret_summary);

#endif
