/* A call tree with weights: what a flame graph draws. */
#ifndef FLAMEGRAPH_TREE_H
#define FLAMEGRAPH_TREE_H

#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "profile/profile.h"

#define TREE_ROOT 0u
#define TREE_DEPTH_MAX 65536

struct tree_node {
	uint32_t name; /* in tree.names */
	uint32_t parent; /* TREE_ROOT for itself; parent < own index always */
	uint8_t kind; /* enum frame_kind */
	bool inlined;
	bool is_comm; /* a thread's name, not a function */
	uint8_t depth_pad;
	uint64_t self, total;
	uint64_t before_self, before_total; /* of the first file of a diff; else 0 */
};

struct tree {
	struct intern names;
	VEC(struct tree_node) nodes; /* nodes.v[TREE_ROOT] is the root "all" */
	uint32_t depth; /* of the deepest node; the root has 0 */
	uint64_t bad_lines; /* of folded text: no count at the end */
	/* private: child lookup */
	void *lookup;
};

int tree_init(struct tree *t); /* makes the root; 0 or -ENOMEM */
void tree_free(struct tree *t);

/* The child of parent with this name and kind, made if it is new. 0, -ENOMEM, -E2BIG. */
int tree_child(struct tree *t, uint32_t parent, const char *name, size_t len, uint8_t kind, uint32_t *ret_node);

/* Adds weight to a node's self. Totals are made by tree_finish. */
void tree_add(struct tree *t, uint32_t node, uint64_t weight);

/* Sums totals bottom up and sets depth. Call once after the last tree_add. */
void tree_finish(struct tree *t);

struct tree_options {
	uint32_t event; /* of the profile; PROFILE_NONE: the first that has samples */
	bool reverse; /* leaves at the root: who is called how, from where */
	bool with_tids; /* comm-PID/TID at the root instead of comm */
};

/* From a profile, in the full form of names; cost follows the stack trie, not samples x depth. 0 or -errno. */
int tree_from_profile(struct tree *t, struct profile *profile, const struct tree_options *options);

/*
 * From folded text on fd: "a;b;c 12" lines, the annotations _[k] _[j] _[i] become kinds; a line with two counts
 * fills before_* as flamegraph.pl's differential input. reverse as above. 0; -EBADMSG where no line has a count; -errno.
 */
int tree_from_folded(struct tree *t, int fd, bool reverse, struct parse_error *err);

#endif
