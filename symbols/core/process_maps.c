#include "symbols/core/process_maps.h"

#include <errno.h>
#include <stdlib.h>

/* One state of an address space. Written only while it has one owner. */
struct process_maps {
	uint32_t refs;
	uint32_t generation;
	uint32_t root;                 /* map_tree */
	bool unmapped_lookup;          /* a lookup found no map, so a new map changes results */
	uint64_t lost_start, lost_end; /* process_maps_lose; equal: none */
	uint32_t losses;               /* with the newest of them */
};

void process_maps_put(struct process_maps_pool *pool, struct process_maps *m)
{
	if (!m || --m->refs)
		return;
	map_tree_drop(&pool->trees, m->root);
	free(m);
}

struct process_maps *process_maps_share(struct process_maps *m)
{
	if (m)
		m->refs++;
	return m;
}

uint32_t process_maps_generation(const struct process_maps *m)
{
	return m ? m->generation : 0;
}

/* Give a space a state of its own that can be changed. NULL: out of memory. */
static struct process_maps *process_maps_own(struct process_maps_pool *pool,
					     struct process_maps **maps)
{
	struct process_maps *m = *maps, *own;

	if (m && m->refs == 1)
		return m;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->refs = 1;
	own->generation = ++pool->generations;
	if (m) {
		own->root = map_tree_share(&pool->trees, m->root);
		own->unmapped_lookup = m->unmapped_lookup;
		own->lost_start = m->lost_start;
		own->lost_end = m->lost_end;
		own->losses = m->losses;
		m->refs--;
	}
	*maps = own;
	return own;
}

/* Whether `old`, the only map below, already gives the same result for all addresses of map. */
static bool process_map_same(const struct process_map *old, const struct process_map *map)
{
	return old->image == map->image && old->pgoff + (map->start - old->start) == map->pgoff;
}

/* Set the image and file offset under an anonymous map, from the only map below. */
static void process_map_set_under(const struct process_map *old, struct process_map *map)
{
	struct process_map below = map_tree_tail(old, map->start);

	map->under = below.under == PROCESS_NO_IMAGE ? below.image : below.under;
	map->under_pgoff = below.under == PROCESS_NO_IMAGE ? below.pgoff : below.under_pgoff;
}

static bool process_map_is_lost(const struct process_maps *m, const struct process_map *map)
{
	return map->losses < m->losses && map->start < m->lost_end && map->end > m->lost_start;
}

/* No earlier map is left where the new one is. */
static void process_maps_regain(struct process_maps *m, const struct process_map *map)
{
	if (map->start <= m->lost_start && map->end > m->lost_start)
		m->lost_start = map->end < m->lost_end ? map->end : m->lost_end;
	if (map->end >= m->lost_end && map->start < m->lost_end)
		m->lost_end = map->start > m->lost_start ? map->start : m->lost_start;
}

int process_maps_lose(struct process_maps_pool *pool, struct process_maps **maps,
		      const struct process_map *lost)
{
	struct process_maps *m = *maps;
	const struct process_map *old =
		m ? map_tree_find(&pool->trees, m->root, lost->start) : NULL;

	if (!old || old->start >= lost->end ||
	    (old->start <= lost->start && old->end >= lost->end && process_map_same(old, lost)))
		return 0;
	m = process_maps_own(pool, maps);
	if (!m)
		return -ENOMEM;
	bool first = m->lost_start == m->lost_end;

	if (first || lost->start < m->lost_start)
		m->lost_start = lost->start;
	if (first || lost->end > m->lost_end)
		m->lost_end = lost->end;
	m->losses = ++pool->losses;
	m->generation = ++pool->generations;
	return 0;
}

int process_maps_add(struct process_maps_pool *pool, struct process_maps **maps,
		     const struct process_map *fresh, bool anonymous)
{
	struct process_maps *m;
	const struct process_map *old;
	struct process_map map = *fresh;
	bool covers;
	int r = map_trees_reserve(&pool->trees);

	map.under = PROCESS_NO_IMAGE;
	map.under_pgoff = 0;
	map.losses = pool->losses;
	if (r)
		return r;
	m = process_maps_own(pool, maps);
	if (!m)
		return -ENOMEM;
	if (map_tree_maps(&pool->trees, m->root) >= PROCESS_MAPS_MAX)
		return -E2BIG;
	old = map_tree_find(&pool->trees, m->root, map.start);
	covers = old && old->start < map.end;
	if (covers && old->start <= map.start && old->end >= map.end) {
		if (process_map_same(old, &map) && !process_map_is_lost(m, old))
			return 0;
		if (anonymous)
			process_map_set_under(old, &map);
	}
	m->root = map_tree_replace(&pool->trees, m->root, map.start, map.end, &map);
	process_maps_regain(m, &map);
	if (covers || m->unmapped_lookup) {
		m->generation = ++pool->generations;
		m->unmapped_lookup = false;
	}
	return 0;
}

const struct process_map *process_maps_find(const struct process_maps_pool *pool,
					    struct process_maps *m, uint64_t addr)
{
	const struct process_map *map = m ? map_tree_find(&pool->trees, m->root, addr) : NULL;

	if (map && map->start <= addr && !process_map_is_lost(m, map))
		return map;
	if (m)
		m->unmapped_lookup = true;
	return NULL;
}
