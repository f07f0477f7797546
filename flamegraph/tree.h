/*
 * A call tree with weights, the input of a flame graph. It comes from a profile (tree_profile.h) or
 * from folded text (folded.h).
 */
#ifndef FLAMEGRAPH_TREE_H
#define FLAMEGRAPH_TREE_H

#include "base/intern.h"
#include "base/vec.h"
#include "profile/idle.h"
#include "profile/profile.h"

#define TREE_ROOT 0u
#define TREE_DEPTH_MAX 65536 /* frames of one stack, the thread's name included */
#define TREE_NODES_MAX ((size_t)1 << 27)
#define TREE_WEIGHT_MAX ((uint64_t)1 << 62) /* of the whole tree; the rest is cut off */

/* Bits of the kind argument of tree_child. */
#define TREE_KIND_MASK 0x0fu
#define TREE_INLINED 0x10u /* a function inlined into its parent */
#define TREE_COMM 0x20u    /* a thread's name, not a function */

struct tree_node {
	uint32_t name;   /* in tree.names */
	uint32_t parent; /* index below its own; TREE_ROOT is its own parent */
	uint32_t depth;  /* the root has 0 */
	uint8_t kind;    /* enum frame_kind */
	bool inlined : 1;
	bool is_comm : 1;  /* a thread's name, not a function */
	bool in_table : 1; /* private: find its children by the table */
	/* The letter of folded text's _[k] _[j] _[i] _[w]; 0: none. Does not distinguish nodes. */
	char annotation;
	bool unsorted_children; /* private: children did not come in byte order of their names */
	/* Children in reverse order of arrival; TREE_ROOT ends the list. */
	uint32_t last_child, prev_sibling;
	uint64_t self, total;
	/* Weight to the left of it. node_order_make sets it; building does if in_order. */
	uint64_t start;
};

/* The weights of the first counts of differential input. */
struct tree_before {
	uint64_t self, total;
};

struct tree {
	struct intern names;
	VEC(struct tree_node) nodes; /* nodes.v[TREE_ROOT] is the root "all" */
	uint32_t depth;              /* of the deepest node; the root has 0 */
	/* Weights are in units of 1/scale: 1, or 1000 for folded text with decimals. */
	uint32_t scale;
	uint32_t event; /* of the profile; PROFILE_NONE: without samples, or from text */
	VEC(struct tree_before) before; /* by node; empty unless differential */
	bool differential;
	/* A flame chart: nodes are in the order of their stacks; only neighbours are merged. */
	bool in_order;
	/* Lines of folded text that are not empty; those of them that cannot be used (folded.h). */
	uint64_t lines, bad_lines;
	uint32_t cut_names; /* distinct long names of folded text, which were cut (folded.h) */
	/* The last line of folded text has no newline: digits of its count may be missing. */
	bool unended;
	/*
	 * Stacks for which options.memory_max had no room, or of more than TREE_DEPTH_MAX frames.
	 * They are under TREE_CUT, with only the last frame that was added, or without it. In a
	 * flame chart they end at a caller. Names without room are PROFILE_LEFT_OUT.
	 */
	uint64_t cut;
	/* private */
	uint64_t room, cut_room;  /* bytes: of nodes and names; of nodes under TREE_CUT */
	uint32_t cut_root;        /* the node TREE_CUT; TREE_ROOT: none */
	bool cut_now;             /* the current stack did not fit */
	uint64_t sum, before_sum; /* of the self weights of all nodes */
	struct tree_slot *slots;  /* table of the children of nodes with many of them */
	size_t nslots, used_slots;
	VEC(uint32_t) path; /* if in_order: the nodes that can still grow, by depth */
};

#define TREE_CUT PROFILE_TRUNCATED

/* Makes the root. Returns 0 or -ENOMEM. tree_free also accepts a zeroed struct. */
int tree_init(struct tree *t, bool in_order);

/* Limits the memory of the tree and its picture; 0: no limit. */
void tree_limit(struct tree *t, uint64_t bytes);

/* Takes the room of a node. Returns whether there was any. */
bool tree_take_node(struct tree *t);

/* Whether a node stands for stacks that did not fit. */
static inline bool tree_is_cut(const struct tree *t, uint32_t node)
{
	return t->cut_root != TREE_ROOT &&
	       (node == t->cut_root || t->nodes.v[node].parent == t->cut_root);
}
void tree_free(struct tree *t);

/*
 * Finds or adds a name in t->names. If there is no room, it is PROFILE_LEFT_OUT, and the next stack
 * counts as cut. 0, -ENOMEM, -E2BIG.
 */
int tree_name(struct tree *t, const char *text, size_t len, uint32_t *ret_name);

/*
 * Finds or adds the child of parent with this name and kind (enum frame_kind and TREE_* bits).
 * Returns 0, -ENOMEM, -E2BIG.
 */
int tree_child(struct tree *t, uint32_t parent, const char *name, size_t len, uint8_t kind,
	       uint32_t *ret_node);

/* Does the same for a name in t->names. */
int tree_child_of_name(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
		       uint32_t *ret_node);

/* Adds to a node's self weight. tree_finish makes the totals. */
void tree_add(struct tree *t, uint32_t node, uint64_t weight);

/* Adds to a node's previous weight; makes the tree differential. Returns 0 or -ENOMEM. */
int tree_add_before(struct tree *t, uint32_t node, uint64_t weight);

/* Multiplies all weights and the scale. Returns 0; -E2BIG: a result would pass TREE_WEIGHT_MAX. */
int tree_rescale(struct tree *t, uint32_t factor);

/*
 * Sums the totals, sets the tree's depth and frees memory that only building needs. Call it once,
 * after the last tree_add. Returns 0 or -ENOMEM (differential trees only).
 */
int tree_finish(struct tree *t);

/* Present minus previous self weight; 0 if the tree is not differential. */
double tree_delta_self(const struct tree *t, uint32_t node);

struct tree_options {
	uint32_t event; /* of the profile; PROFILE_NONE: the first with samples, off-CPU excluded */
	bool reverse;   /* leaves at the root, their callers above */
	bool with_tids; /* comm-PID/TID at the root instead of comm */
	bool in_order;  /* a flame chart, see struct tree */
	/* Borrowed. Use these groups, not with in_order. NULL: those of the profile. */
	const struct profile_group *groups;
	size_t ngroups;
	/*
	 * With groups: for each, its index in part_names, of a node above the thread's name. NULL:
	 * no such nodes. Not with reverse. Borrowed.
	 */
	const uint8_t *parts;
	const char *const *part_names;
	struct idle *idle;   /* of the profile; borrowed; NULL: idle waits keep their stack */
	uint64_t memory_max; /* bytes of the tree and its picture; 0: no limit */
};

#endif
