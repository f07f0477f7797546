/* Shared by the parts of profiles: events, waits, and CPU samples of the runtime. */
#ifndef PROFCPU_MANAGED_PROFILES_IMPL_H
#define PROFCPU_MANAGED_PROFILES_IMPL_H

#include "base/hashmap.h"
#include "profcpu/managed/profiles.h"
#include "profcpu/managed/work.h"

/* The names of an event. */
struct profiles_named {
	uint32_t thread, stack; /* PROFILE_NONE: not named */
	uint32_t owner;         /* thread that holds the lock */
};

struct managed_profiles {
	struct profile *profile;
	struct managed_events events;
	struct trace_place place;
	bool raw_names;
	VEC(struct profiles_named) named; /* by event */
	size_t next;                      /* event to name */
	bool owner_is_next;               /* first the owner of the lock of the event before it */
	struct unnamed_callchain callchain;
	struct managed_profile kinds[MANAGED_KINDS];
	struct evidence evidence;
	struct causes *causes;       /* NULL: not wanted */
	struct work *work;           /* NULL: not wanted */
	struct hashmap groups, sums; /* -> index in the lists of a kind */
	struct hashmap label_frames; /* kind and label -> frame */
	struct managed_totals totals;
};

/* profiles.c */

/* The sum, or UINT64_MAX if it is larger. */
uint64_t managed_add(uint64_t a, uint64_t b);
const struct profile_frame *managed_frame_at(const struct managed_profiles *m, uint32_t stack);
/* The innermost method of the program on a stack; else of .NET's libraries; PROFILE_NONE: none. */
uint32_t managed_place_of(const struct managed_profiles *m, uint32_t stack);
/* Makes the kind's event of the profile, once it is needed. 0; -ENOMEM, -E2BIG. */
int managed_begin_kind(struct managed_profiles *m, enum managed_kind kind);
/* Finds the stack with one more frame, or one that stands for it if memory is short. */
int managed_put_above(struct managed_profiles *m, uint32_t callers, uint32_t frame,
		      uint32_t *ret_stack);
int managed_add_group(struct managed_profiles *m, struct managed_profile *p, uint32_t thread,
		      uint32_t stack, uint64_t weight, uint64_t events);
/* list: labels or places of a kind. */
int managed_add_sum(struct managed_profiles *m, struct managed_sums *sums, uint64_t list,
		    uint32_t name, uint64_t weight, uint64_t events);

/* A frame with this text, which is freed, and says what a stack is about. 0; -ENOMEM, -E2BIG. */
int managed_text_frame(struct managed_profiles *m, struct outbuf *text, uint32_t *ret_frame);

/* profiles_causes.c: adds the waits that were taken. 0; -ENOMEM, -E2BIG. */
int managed_finish_causes(struct managed_profiles *m);

/* profiles_work.c: adds the CPU samples that were taken. 0; -ENOMEM, -E2BIG. */
int managed_finish_work(struct managed_profiles *m);

#endif
