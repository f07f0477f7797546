/* The names of a profile's frames in folded stacks. Each is made once. */
#ifndef FLAMEGRAPH_FRAME_NAMES_H
#define FLAMEGRAPH_FRAME_NAMES_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/outbuf.h"
#include "base/vec.h"
#include "flamegraph/collapse_options.h"
#include "profile/profile.h"

/*
 * Values of of_frame: the id of a frame's only name; FRAME_NAMES_SEVERAL plus an index in lists; or
 * one of the last two.
 */
#define FRAME_NAMES_SEVERAL 0x80000000u
#define FRAME_NAMES_NONE 0xfffffffeu
#define FRAME_NAMES_UNSET 0xffffffffu

/* Borrows options, profile and names. */
struct frame_names {
	const struct profile *profile;
	const struct collapse_options *options;
	bool java;            /* the process's name begins with "java" */
	struct intern *names; /* no text in it has a ';' */
	uint32_t *of_frame;   /* by frame: FRAME_NAMES_* */
	VEC(uint32_t) lists;  /* for frames with several names: their number, then the names */
	/* Symbol and module -> as of_frame, if the name depends on nothing else. */
	struct hashmap pairs;
	struct outbuf line, text;
};

/* Returns 0 or -ENOMEM; call frame_names_free also after a failure. */
int frame_names_init(struct frame_names *f, const struct profile *profile,
		     const struct collapse_options *options, bool java, struct intern *names);
void frame_names_free(struct frame_names *f);

/* The frame's name, if it has exactly one and frame_names_find was called; else UINT32_MAX. */
static inline uint32_t frame_names_single(const struct frame_names *f, uint32_t frame)
{
	uint32_t value = f->of_frame[frame];

	return value < FRAME_NAMES_SEVERAL ? value : UINT32_MAX;
}

/*
 * The ids of a frame's names, root first; valid until the next call. *ret_n can be 0. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int frame_names_find(struct frame_names *f, uint32_t frame, const uint32_t **ret_names,
		     size_t *ret_n);

/*
 * Write a name in the full form for folded text: frame_names_put_full appends its parts, with ':'
 * for ';' and '?' between source lines. frame_names_end_full ends the name, which is all that out
 * holds. A number after white space at its end would read as a count, so '_' replaces that.
 */
void frame_names_put_full(struct outbuf *out, const char *s, size_t len);
void frame_names_end_full(struct outbuf *out);

#endif
