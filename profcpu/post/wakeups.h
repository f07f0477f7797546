/*
 * Makes stacks that show the waker of each blocked wait. Such a stack has, from its root:
 *
 *   the sleeper, from its root to the place where it waited; "--";
 *   the waker, from the place where it woke the sleeper back to its root; the waker's thread name
 *
 * So the waker stands above the sleeper, as in bcc's offwaketime. If the waker was itself blocked
 * meanwhile, its own waker follows after another "--", and so on. The stacks are samples of a
 * separate event of the profile.
 */
#ifndef PROFCPU_POST_WAKEUPS_H
#define PROFCPU_POST_WAKEUPS_H

#include "profile/profile.h"
#include "recording/offcpu_idx.h"

#define WAKEUPS_EVENT "wakeup"
#define WAKEUPS_HOPS_MAX 5 /* wakers in one stack */
/* stack nodes that the wakers of one recording may add to the profile */
#define WAKEUPS_NODES_MAX (UINT32_C(1) << 23)
#define WAKEUPS_DELIMITER "--"
/* Stands for the thread name if the waker is a timer, a device or another CPU. */
#define WAKEUPS_INTERRUPT "[interrupt]"

struct wakeups;

/* profile and idx are borrowed. max_nodes: WAKEUPS_NODES_MAX; tests use less. 0 or -ENOMEM. */
int post_wakeups_new(struct profile *profile, const struct offcpu_idx *idx, uint32_t max_nodes,
		     struct wakeups **ret_wakeups);
void post_wakeups_free(struct wakeups *w);

/* Adds a sample of offcpu-waker. file_off: its offset in perf.data. 0 or -ENOMEM. */
int post_wakeups_waker(struct wakeups *w, uint64_t file_off, uint32_t thread, uint32_t stack);

/* Adds a sample of offcpu-time. Ignores it if the index lacks it. 0 or -ENOMEM. */
int post_wakeups_wait(struct wakeups *w, uint64_t file_off, const struct profile_sample *sample);

struct wakeups_summary {
	uint64_t blocked_ns;   /* blocked time of all threads; 0: no wakers were recorded */
	uint64_t ended_ns;     /* part of it in waits that ended during the recording; others have
				* no waker */
	uint64_t known_ns;     /* part of ended_ns with a known waker */
	uint64_t interrupt_ns; /* part of known_ns with an interrupt as waker */
	uint64_t samples;      /* in the profile: one for each wait with a known waker */
	/* Waits with a known waker that are not in samples, because of the limit on stacks. */
	uint64_t left_out, left_out_ns;
};

/*
 * Call it after the last sample. Adds the wakeup samples to the profile; their weight is the
 * blocked time of the sleeper in nanoseconds. 0, -ENOMEM, -E2BIG, or -errno of the profile. Beyond
 * the limit on stacks, waits are left out and counted.
 */
int post_wakeups_finish(struct wakeups *w, struct wakeups_summary *ret_summary);

#endif
