/*
 * Writes the stacks of a profile as sorted folded lines. It makes no text for each stack: it walks
 * the trie of stacks from the root, and handles all stacks with the same text together. Callees are
 * sorted by the places of their names (text_order.h). Private to collapse.c.
 *
 * A frame can have several names (inlining), or none; then its stack is that of its caller. A stack
 * that ends and one that continues under the same name are two items, because lines with other
 * names can sort between them.
 */
#ifndef FLAMEGRAPH_COLLAPSE_WALK_H
#define FLAMEGRAPH_COLLAPSE_WALK_H

#include "flamegraph/frame_names.h"
#include "flamegraph/text_order.h"

/* One stack and its weight. */
struct collapse_stack {
	uint64_t weight;
	uint32_t stack;
};

/* A stack, for the current root. All members except the name are 0 between roots. */
struct collapse_node {
	uint32_t first; /* the first callee in a list that ends with COLLAPSE_LIST_END */
	uint32_t next;  /* the next stack in the caller's list; 0: in no list */
	uint32_t line;  /* 1 + index in weights: a line ends here */
	uint32_t name;  /* the frame's only name, else COLLAPSE_NO_NAME; valid in a list */
};

struct collapse_item {
	uint32_t place; /* of the name, in text order */
	uint32_t stack;
	uint32_t part; /* index of the name, if the stack's frame has several */
};

struct collapse_level {
	size_t first, at, end; /* indices of items */
	size_t prefix_len;     /* of path, with the ';' */
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
	struct frame_names plain, java, *now; /* now: that of the current root */
	bool has_java;
	struct text_order order;
	struct collapse_node *nodes; /* by stack */
	VEC(uint64_t) weights;
	VEC(struct collapse_item) items;
	VEC(struct collapse_level) levels;
	struct outbuf path;
	/*
	 * A process name with a ';' makes lines that sort among those of other processes. Then all
	 * lines are kept and sorted at the end.
	 */
	bool keep;
	struct outbuf lines_text;
	VEC(struct collapse_line) lines;
};

/* Borrows all arguments. Returns 0 or -ENOMEM; call collapse_walk_free also after a failure. */
int collapse_walk_init(struct collapse_walk *w, struct profile *profile,
		       const struct collapse_options *options, struct outbuf *out);
void collapse_walk_free(struct collapse_walk *w);

/*
 * Writes all lines. The stacks of root i are stacks[starts[i]] to stacks[starts[i + 1] - 1].
 * Returns 0, -ENOMEM, -E2BIG.
 */
int collapse_walk_roots(struct collapse_walk *w, const struct intern *roots, const size_t *starts,
			const struct collapse_stack *stacks);

#endif
