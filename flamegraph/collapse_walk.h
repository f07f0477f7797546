/*
 * Writes the stacks of a profile as sorted folded lines, without making a text for each stack: the trie is walked from its
 * root with all stacks of one text side by side, their callees sorted by the places of their names (text_order.h). Private
 * to collapse.c.
 *
 * A frame can have several names (inlining), or none; then its stack is that of its caller. A stack that ends and one that
 * goes on under the same name are two items, because lines with other names can sort between them.
 */
#ifndef FLAMEGRAPH_COLLAPSE_WALK_H
#define FLAMEGRAPH_COLLAPSE_WALK_H

#include "flamegraph/frame_names.h"
#include "flamegraph/text_order.h"

/* What one stack counts. */
struct collapse_stack {
	uint64_t weight;
	uint32_t stack;
};

/* A stack, for the root that is walked; all zero between roots, but for the name. */
struct collapse_node {
	uint32_t first, next; /* callees: a list that ends in COLLAPSE_LIST_END; next 0: not in a list */
	uint32_t line; /* 1 + place in weights: a line ends here */
	uint32_t name; /* the only name of its frame; else COLLAPSE_NO_NAME; valid in a list */
};

struct collapse_item {
	uint32_t place; /* of the name, in order */
	uint32_t stack;
	uint32_t part; /* which of the names of the stack's frame */
};

struct collapse_level {
	size_t first, at, end; /* items */
	size_t prefix_len; /* of path, with the ';' */
};

/* One line that is kept for sorting; see `keep`. */
struct collapse_line {
	size_t at, len; /* in lines_text */
	uint64_t weight;
};

struct collapse_walk {
	struct profile *profile;
	const struct collapse_options *options;
	struct outbuf *out;
	struct intern names;
	struct frame_names plain, java, *now; /* now: that of the root */
	bool has_java;
	struct text_order order;
	struct collapse_node *nodes; /* by stack */
	VEC(uint64_t) weights;
	VEC(struct collapse_item) items;
	VEC(struct collapse_level) levels;
	struct outbuf path;
	/* Names of processes that hold a ';' make lines that sort among those of others: then all lines are kept and sorted. */
	bool keep;
	struct outbuf lines_text;
	VEC(struct collapse_line) lines;
};

/* All borrowed. 0 or -ENOMEM; a failed one is fine for collapse_walk_free. */
int collapse_walk_init(struct collapse_walk *w, struct profile *profile, const struct collapse_options *options,
		       struct outbuf *out);
void collapse_walk_free(struct collapse_walk *w);

/* Writes all lines: the stacks of root i are stacks[starts[i]] up to stacks[starts[i + 1]]. 0, -ENOMEM, -E2BIG. */
int collapse_walk_roots(struct collapse_walk *w, const struct intern *roots, const size_t *starts,
			const struct collapse_stack *stacks);

#endif
