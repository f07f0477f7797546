/* The names that a profile's frames have in folded stacks, each made once. */
#ifndef FLAMEGRAPH_FRAME_NAMES_H
#define FLAMEGRAPH_FRAME_NAMES_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/outbuf.h"
#include "base/vec.h"
#include "flamegraph/collapse.h"
#include "profile/profile.h"

/* What of_frame holds: a name; several, in lists from this place on; or one of these. */
#define FRAME_NAMES_SEVERAL 0x80000000u
#define FRAME_NAMES_NONE 0xfffffffeu
#define FRAME_NAMES_UNSET 0xffffffffu

/* Options, profile and names are borrowed. */
struct frame_names {
	const struct profile *profile;
	const struct collapse_options *options;
	bool java; /* the process's name begins with "java" */
	struct intern *names; /* no text in it holds a ';' */
	uint32_t *of_frame; /* by frame: FRAME_NAMES_* */
	VEC(uint32_t) lists; /* of frames with several names: their number, then the names */
	struct hashmap pairs; /* symbol and module -> as of_frame, where the name depends on nothing else */
	struct outbuf line, text;
};

/* 0 or -ENOMEM; a failed one is fine for frame_names_free. */
int frame_names_init(struct frame_names *f, const struct profile *profile, const struct collapse_options *options,
		     bool java, struct intern *names);
void frame_names_free(struct frame_names *f);

/* The name of a frame that has exactly one and was asked for before; else UINT32_MAX. */
static inline uint32_t frame_names_single(const struct frame_names *f, uint32_t frame)
{
	uint32_t value = f->of_frame[frame];

	return value < FRAME_NAMES_SEVERAL ? value : UINT32_MAX;
}

/* The names of a frame, root first, ids of names; valid until the next call. *ret_n can be 0. 0, -ENOMEM, -E2BIG. */
int frame_names_of(struct frame_names *f, uint32_t frame, const uint32_t **ret_names, size_t *ret_n);

#endif
