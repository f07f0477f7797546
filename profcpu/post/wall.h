/*
 * Wall clock groups of a profile: all that threads did, on and off the CPU, in nanoseconds. The
 * groups of a thread add up to its life in the recording. Waits have their length. On-CPU samples
 * share out the time that the thread ran, which is exact too. Frames such as WALL_NOT_SAMPLED stand
 * for time without a stack.
 */
#ifndef PROFCPU_POST_WALL_H
#define PROFCPU_POST_WALL_H

#include "profile/idle.h"
#include "profile/profile.h"
#include "recording/offcpu_idx.h"

#include <stddef.h>

/* The thread ran but has no sample, or the recorded event does not follow time. */
#define WALL_NOT_SAMPLED "[not sampled]"
#define WALL_SHORT "[short waits]" /* waits below --off-cpu-min */
/*
 * Unknown, because switches were lost, or the thread began or ended between windows
 * (sampler/offcpu/throttle.h).
 */
#define WALL_UNKNOWN "[unknown state]"

/*
 * Groups of the threads in `offcpu`, all of the event of waits, each thread under its last name.
 * Adds the frames above and missing threads to the profile. idle: NULL shows the stacks of idle
 * waits. *ret_groups: the caller frees it. 0, -ENOMEM, -E2BIG.
 */
int post_wall_groups(struct profile *profile, const struct offcpu_idx *offcpu, struct idle *idle,
		     struct profile_group **ret_groups, size_t *ret_n);

#endif
