/*
 * What threads did all the time, on and off their CPUs on one scale: the groups of a profile, in nanoseconds of the wall clock, so that those of
 * a thread sum up to its life in the recording. Waits have their length. Samples on a CPU share out the time that the thread ran, which is
 * exact too. What has no stack has a frame that says so.
 */
#ifndef PROFCPU_WALL_H
#define PROFCPU_WALL_H

#include "profile/profile.h"
#include "recording/offcpu_idx.h"

#include <stdbool.h>
#include <stddef.h>

#define WALL_NOT_SAMPLED "[not sampled]" /* it ran, and no sample met it, or the event is none of time */
#define WALL_SHORT "[short waits]" /* --off-cpu-min: below it */
#define WALL_UNKNOWN "[unknown state]" /* what it did is not known: switches were lost, or it began or ended between windows (sampler/shed.h) */

/*
 * The groups of the threads in `offcpu`, all of the event of waits, each thread under its last name. The profile gets the frames above,
 * and threads that it does not know. *ret_groups: for the caller to free. 0, -ENOMEM, -E2BIG, -errno.
 */
int wall_groups(struct profile *profile, const struct offcpu_idx *offcpu, bool show_idle, struct profile_group **ret_groups, size_t *ret_n);

#endif
