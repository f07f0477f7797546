/*
 * Recognises idle waits: waits of threads that have nothing to do, such as pool workers without
 * work.
 *
 * A wait is idle by its stack: nothing except waiting code is above the method that the thread
 * runs. A wait in user code is never idle, because user methods are on the stack. The part of a
 * wait in which the thread waits for a CPU (FRAME_RUNNABLE) is never idle either. Threads of the
 * runtime without managed code are recognised by their names and by the place where they wait.
 */
#ifndef PROFILE_IDLE_H
#define PROFILE_IDLE_H

#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_NAME "[idle]"

struct idle;

/*
 * Adds the frame IDLE_NAME and its stack to the profile (borrowed). *ret_idle knows the threads and
 * stacks that exist now, not those added later; NULL: the profile has no waits. 0, -ENOMEM, -E2BIG.
 */
int idle_new(struct profile *profile, struct idle **ret_idle);
void idle_free(struct idle *idle);

/* Returns whether a wait of this thread with this stack is idle. idle: not NULL. */
bool idle_is(struct idle *idle, uint32_t thread, uint32_t stack);

/*
 * Returns the stack that stands for this one in output: that of IDLE_NAME for idle waits
 * (profile_event.off_cpu), otherwise the stack itself. idle NULL: always the stack itself.
 */
uint32_t idle_stack(struct idle *idle, uint32_t event, uint32_t thread, uint32_t stack);

/*
 * Returns whether a name, in perf's form or the full form, is this method. method is
 * "Namespace.Type+Nested::Method", "Namespace.Type::" (each method of a type) or "::Method" (of
 * each type).
 */
bool idle_is_method(const char *name, const char *method);

#endif
