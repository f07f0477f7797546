/*
 * The maps of one address space: which image and file offset belong to an address. A new map
 * replaces the parts of earlier ones that it covers. Processes can share one state; a change makes
 * a state of its own first, which still shares all other maps (symbols/core/map_tree.h).
 */
#ifndef SYMBOLS_CORE_PROCESS_MAPS_H
#define SYMBOLS_CORE_PROCESS_MAPS_H

#include "symbols/core/map_tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps of one address space; further ones are dropped and counted */
#define PROCESS_MAPS_MAX ((size_t)1 << 18)

/* Shared by all address spaces. Zeroed, with trees.nodes_max set, it is empty. */
struct process_maps_pool {
	struct map_trees trees;
	uint32_t generations; /* handed out so far */
	uint32_t losses;      /* process_maps_lose; a wrapped count costs single maps */
};

/* One state of an address space. NULL: nothing is mapped. */
struct process_maps;

/* Takes a further reference for another owner. */
struct process_maps *process_maps_share(struct process_maps *m);

/* Drops a reference and frees the maps with the last one. */
void process_maps_put(struct process_maps_pool *pool, struct process_maps *m);

/*
 * Lays a map over earlier ones. Leaves a shared state as it is and replaces *maps. For an anonymous
 * map, finds its under and under_pgoff. Returns 0, -E2BIG (dropped: over PROCESS_MAPS_MAX, or the
 * pool is full) or -ENOMEM.
 */
int process_maps_add(struct process_maps_pool *pool, struct process_maps **maps,
		     const struct process_map *fresh, bool anonymous);

/*
 * Notes that a map of [start, end) could not be added. Earlier maps that have a part of this range
 * are no longer right, so they are not found from now on, until they are added again. Only the hull
 * of such ranges is kept, until new maps cover it from one of its ends. 0 or -ENOMEM.
 */
int process_maps_lose(struct process_maps_pool *pool, struct process_maps **maps,
		      const struct process_map *lost);

/* The map that covers addr, or NULL. Valid until the next change. */
const struct process_map *process_maps_find(const struct process_maps_pool *pool,
					    struct process_maps *m, uint64_t addr);

/* A number that changes whenever an address may get another map; 0: nothing is mapped. */
uint32_t process_maps_generation(const struct process_maps *m);

#endif
