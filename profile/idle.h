/*
 * Waits that say nothing: what threads of a .NET process do when there is nothing to do, as pool workers without work. They are told by
 * their stacks: above the method that such a thread runs there is nothing but waiting. What user code waits for is never one,
 * whichever thread runs it: its methods stand in between. Threads that the runtime keeps for itself without any managed code are told
 * by the names that it gives them, and by where they wait.
 */
#ifndef PROFILE_IDLE_H
#define PROFILE_IDLE_H

#include "profile/profile.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDLE_NAME "[idle]"

struct idle;

/* profile: borrowed; gets the frame IDLE_NAME and its stack. No frame or stack may be added to it while this lives. 0, -ENOMEM, -E2BIG. */
int idle_new(struct profile *profile, struct idle **ret_idle);
void idle_free(struct idle *idle);

/* Whether a wait of that thread with that stack (ids) is one. */
bool idle_is(struct idle *idle, uint32_t thread, uint32_t stack);

/* The stack under which samples of that event, thread and stack are shown: that of IDLE_NAME for waits (profile_event.off_cpu) that are idle. */
uint32_t idle_stack(struct idle *idle, uint32_t event, uint32_t thread, uint32_t stack);

/* Of all waits in the profile those that are idle, in the weights of their event. 0, -ENOMEM, -E2BIG, -errno. */
int idle_sum(struct profile *profile, uint64_t *ret_weight);

/* Whether a name in perf's form or the full one is of this method: "Namespace.Type+Nested::Method", "Namespace.Type::" (all of a type),
 * "::Method" (of any). */
bool idle_is_method(const char *name, const char *method);

#endif
