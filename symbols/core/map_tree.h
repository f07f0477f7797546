/*
 * Ranges of addresses, sorted and without overlaps, in trees that share their equal parts. A fork
 * shares the whole tree; a change then copies only the nodes on its way. A later range replaces the
 * parts of earlier ones that it covers. Recordings may be hostile, so each change and lookup takes
 * logarithmic time, whatever the order of the ranges.
 */
#ifndef SYMBOLS_CORE_MAP_TREE_H
#define SYMBOLS_CORE_MAP_TREE_H

#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Upper bound of nodes for one change. So the last 1,024 nodes of a limit stay unused. */
#define MAP_TREE_CHANGE_NODES ((size_t)1024)

/* One mapping. The file offset of addr is addr - start + pgoff. */
struct process_map {
	uint64_t start, end, pgoff;
	uint32_t image; /* the caller's id */
	/*
	 * The image under an anonymous mapping that lies wholly inside it (code copied to huge
	 * pages), or PROCESS_NO_IMAGE. under_pgoff is its file offset at start.
	 */
	uint32_t under;
	uint64_t under_pgoff;
	uint32_t losses; /* of maps, in all address spaces, before this one; process_maps sets it */
};
#define PROCESS_NO_IMAGE UINT32_MAX

/* Private. */
struct map_tree_node {
	struct process_map map;
	uint32_t child[2]; /* lower and higher maps; [0] of an unused node: the next unused one */
	uint32_t refs;     /* parents and roots; more than one: must not change */
	uint32_t n;        /* maps in the tree below and here, for balance */
};

/* The memory of trees that may share nodes. Zeroed, with nodes_max set, it is empty. */
struct map_trees {
	VEC(struct map_tree_node) nodes; /* node 0 means none */
	uint32_t unused;                 /* the first unused node */
	size_t nunused;
	size_t nodes_max; /* limit of all trees together */
};

void map_trees_free(struct map_trees *t);

/*
 * Makes room for one change. Returns 0, -E2BIG (nodes_max) or -ENOMEM.
 */
int map_trees_reserve(struct map_trees *t);

/* A tree is the id of its root; 0: it is empty. Takes a further reference for another owner. */
uint32_t map_tree_share(struct map_trees *t, uint32_t root);

/* Drops a reference, and with the last one all nodes that no other tree shares. */
void map_tree_drop(struct map_trees *t, uint32_t root);

/* Nodes in use. */
static inline size_t map_trees_used(const struct map_trees *t)
{
	return t->nodes.len - t->nunused;
}

static inline size_t map_tree_maps(const struct map_trees *t, uint32_t root)
{
	return root ? t->nodes.v[root].n : 0;
}

/* The first map that ends after addr, or NULL. Valid until the next change of any tree. */
static inline const struct process_map *map_tree_find(const struct map_trees *t, uint32_t root,
						      uint64_t addr)
{
	const struct process_map *found = NULL;

	while (root) {
		const struct map_tree_node *node = &t->nodes.v[root];

		if (addr < node->map.end) {
			found = &node->map;
			if (addr >= node->map.start)
				break;
		}
		root = node->child[addr >= node->map.end];
	}
	return found;
}

/*
 * The next map of any tree after *at, which is 0 before the first one, or NULL. Shared ones come
 * once. The caller may change its images.
 */
struct process_map *map_trees_next(struct map_trees *t, uint32_t *at);

/* The part of `old` from `start` on. */
struct process_map map_tree_tail(const struct process_map *old, uint64_t start);

/*
 * Replaces everything from start to end, by map unless it is NULL. Takes the caller's reference of
 * root and returns the new root. map_trees_reserve must have succeeded since the last change.
 */
uint32_t map_tree_replace(struct map_trees *t, uint32_t root, uint64_t start, uint64_t end,
			  const struct process_map *map);

#endif
