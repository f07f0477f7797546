/*
 * The maps of one address space: which image and file offset belong to an address. A new map
 * replaces the parts of earlier ones that it covers. Processes can share one state; a change makes
 * a copy first. Maps lie sorted in blocks, so a change moves few of them and a lookup is a binary
 * search.
 */
#ifndef SYMBOLS_CORE_PROCESS_MAPS_H
#define SYMBOLS_CORE_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maps of one address space; further ones are dropped and counted */
#define PROCESS_MAPS_MAX ((size_t)1 << 18)

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
};
#define PROCESS_NO_IMAGE UINT32_MAX

/* One state of an address space. NULL: nothing is mapped. */
struct process_maps;

/* Takes a further reference for another owner. */
struct process_maps *process_maps_share(struct process_maps *m);

/* Drops a reference and frees the maps with the last one. */
void process_maps_put(struct process_maps *m);

/*
 * Lays a map over earlier ones. Copies a shared state first and then replaces *maps. For an
 * anonymous map, finds its under and under_pgoff. Takes new generations from *generations, a
 * counter of the caller. Returns 0, -E2BIG (dropped: over PROCESS_MAPS_MAX) or -ENOMEM.
 */
int process_maps_add(struct process_maps **maps, uint32_t *generations,
		     const struct process_map *fresh, bool anonymous);

/* The map that covers addr, or NULL. Valid until the next change. */
const struct process_map *process_maps_find(struct process_maps *m, uint64_t addr);

/* A number that changes whenever an address may get another map; 0: nothing is mapped. */
uint32_t process_maps_generation(const struct process_maps *m);

#endif
