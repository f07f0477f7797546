/* A call tree with weights: what a flame graph draws. */
#ifndef FLAMEGRAPH_TREE_H
#define FLAMEGRAPH_TREE_H

#include "base/intern.h"
#include "base/vec.h"
#include "profile/profile.h"

#define TREE_ROOT 0u
#define TREE_DEPTH_MAX 65536 /* frames of one stack */
#define TREE_NODES_MAX ((size_t)1 << 27)
#define TREE_WEIGHT_MAX ((uint64_t)1 << 62) /* of the whole tree; what would pass it is cut off */

/* Or-ed to the kind that tree_child takes. */
#define TREE_KIND_MASK 0x0fu
#define TREE_INLINED 0x10u /* a body inlined into its parent */
#define TREE_COMM 0x20u /* a thread's name, not a function */

struct tree_node {
	uint32_t name; /* in tree.names */
	uint32_t parent; /* TREE_ROOT for itself; parent < own index always */
	uint32_t depth; /* the root has 0 */
	uint8_t kind; /* enum frame_kind */
	bool inlined : 1;
	bool is_comm : 1; /* a thread's name, not a function */
	bool in_table : 1; /* private: its children are found by the table */
	char annotation; /* of folded text, without its _[ ]: 'k' 'j' 'i' 'w'; else 0. Not part of what tells nodes apart */
	bool unsorted_children; /* private: children did not all come in the order of their names' bytes */
	uint32_t last_child, prev_sibling; /* children in reverse order of arrival; TREE_ROOT ends the list */
	uint64_t self, total;
	uint64_t start; /* weight to the left of it; set by layout_make, or while building where in_order */
};

/* The weights of the first count of differential input. */
struct tree_before {
	uint64_t self, total;
};

struct tree {
	struct intern names;
	VEC(struct tree_node) nodes; /* nodes.v[TREE_ROOT] is the root "all" */
	uint32_t depth; /* of the deepest node; the root has 0 */
	uint32_t scale; /* weights are in units of 1/scale: 1, or 1000 where folded text had decimal counts */
	uint32_t event; /* of the profile that it was made from; PROFILE_NONE: it had no samples, or was text */
	VEC(struct tree_before) before; /* by node; empty unless differential */
	bool differential;
	bool in_order; /* a flame chart: nodes follow each other as their stacks came, only neighbours are merged */
	uint64_t lines, bad_lines; /* of folded text: all that are not empty; those without a count at the end */
	bool unended; /* folded text whose last line has no end: digits of its count may be missing */
	/* private */
	uint64_t sum, before_sum; /* of all self */
	struct tree_slot *slots; /* the children of nodes with long lists */
	size_t nslots, used_slots;
	VEC(uint32_t) path; /* in_order: the nodes that are still open, by depth */
};

/* Makes the root; in_order as in the struct. 0 or -ENOMEM. A zeroed struct is fine for tree_free. */
int tree_init(struct tree *t, bool in_order);
void tree_free(struct tree *t);

/* The child of parent with this name and kind (enum frame_kind, with TREE_* bits), made if it is new. 0, -ENOMEM, -E2BIG. */
int tree_child(struct tree *t, uint32_t parent, const char *name, size_t len, uint8_t kind, uint32_t *ret_node);

/* The same for a name that is in t->names. */
int tree_child_of_name(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, uint32_t *ret_node);

/* Adds weight to a node's self. Totals are made by tree_finish. */
void tree_add(struct tree *t, uint32_t node, uint64_t weight);

/* Adds to the node's weight before, which makes the tree differential. 0 or -ENOMEM. */
int tree_add_before(struct tree *t, uint32_t node, uint64_t weight);

/* Multiplies all weights and the scale by factor. 0, or -E2BIG where they would pass TREE_WEIGHT_MAX. */
int tree_rescale(struct tree *t, uint32_t factor);

/* Sums totals bottom up, sets the tree's depth, frees what only building needs. Call once after the last tree_add.
 * 0 or -ENOMEM (differential trees only). */
int tree_finish(struct tree *t);

/* self after less before; 0 in a tree that is not differential. */
double tree_delta_self(const struct tree *t, uint32_t node);

struct tree_options {
	uint32_t event; /* of the profile; PROFILE_NONE: the first that has samples, but off_cpu */
	bool reverse; /* leaves at the root: who is called how, from where */
	bool with_tids; /* comm-PID/TID at the root instead of comm */
	bool in_order; /* a flame chart, see struct tree */
	const struct profile_group *groups; /* borrowed: these, as if the profile's samples made them, not with in_order; NULL: they do */
	size_t ngroups;
	bool show_idle; /* waits that are idle have their stack, and not IDLE_NAME (profile/idle.h) */
};

#endif
