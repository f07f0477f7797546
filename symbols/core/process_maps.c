#include "symbols/core/process_maps.h"

#include "base/vec.h"

#include <errno.h>
#include <string.h>

/* Maps of a block, the most that an insertion moves. Most address spaces fit into one block. */
#define PROCESS_BLOCK_MAPS 1024
/*
 * Maps that replace one map when another is laid over it: a part before, the new map, a part after.
 */
#define PROCESS_MAPS_PER_CHANGE 3

struct process_block {
	VEC(struct process_map) maps;
};

/*
 * One state of an address space, sorted by start, without overlaps. Written only while it has one
 * owner. It always has a block; a block is empty only while nothing is mapped.
 */
struct process_maps {
	uint32_t refs;
	uint32_t generation;
	bool unmapped_lookup; /* a lookup found no map, so a new map changes results */
	size_t n;
	VEC(struct process_block) blocks;
};

/* The place of a map. Behind the last map: the last block and its length. */
struct process_maps_place {
	size_t block, index;
};

/* Maps that a new map will cover. */
struct process_covered {
	struct process_maps_place first, end;
	size_t n;
	const struct process_map *last; /* NULL: none */
};

void process_maps_put(struct process_maps *m)
{
	if (!m || --m->refs)
		return;
	for (size_t i = 0; i < m->blocks.len; i++)
		vec_free(&m->blocks.v[i].maps);
	vec_free(&m->blocks);
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

/* The first of n sorted maps that ends after addr, or maps + n. */
static inline struct process_map *process_map_search(struct process_map *maps, size_t n,
						     uint64_t addr)
{
	while (n) {
		struct process_map *mid = maps + n / 2;

		if (mid->end <= addr) {
			maps = mid + 1;
			n--;
		}
		n /= 2;
	}
	return maps;
}

/* The block with the first map that ends after addr, or the last block. */
static inline const struct process_block *process_maps_block(const struct process_maps *m,
							     uint64_t addr)
{
	const struct process_block *blocks = m->blocks.v;
	size_t low = 0, high = m->blocks.len - 1;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (blocks[mid].maps.v[blocks[mid].maps.len - 1].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return &blocks[low];
}

/* The place of the first map that ends after addr. */
static struct process_maps_place process_maps_at(const struct process_maps *m, uint64_t addr)
{
	const struct process_block *b = process_maps_block(m, addr);
	struct process_map *map = process_map_search(b->maps.v, b->maps.len, addr);

	return (struct process_maps_place){(size_t)(b - m->blocks.v), (size_t)(map - b->maps.v)};
}

/* The map at a place, or NULL after the last one. */
static struct process_map *process_maps_map_at(const struct process_maps *m,
					       struct process_maps_place at)
{
	const struct process_block *b = &m->blocks.v[at.block];

	return at.index < b->maps.len ? &b->maps.v[at.index] : NULL;
}

/*
 * Find the maps that map will cover, from the first one that ends after its start. All except the
 * first and last will go, so no map is walked over often.
 */
static struct process_covered process_maps_covered(const struct process_maps *m,
						   struct process_maps_place first,
						   const struct process_map *map)
{
	struct process_covered c = {.first = first, .end = first};
	const struct process_map *next;

	while (next = process_maps_map_at(m, c.end), next && next->start < map->end) {
		c.last = next;
		c.n++;
		if (++c.end.index == m->blocks.v[c.end.block].maps.len &&
		    c.end.block + 1 < m->blocks.len)
			c.end = (struct process_maps_place){c.end.block + 1, 0};
	}
	return c;
}

/* Add a block at an index with copies of maps. Returns 0 or -ENOMEM. */
static int process_maps_add_block(struct process_maps *m, size_t index,
				  const struct process_map *maps, size_t n)
{
	struct process_block b = {0};

	/* Reserve room for the change that needs the block. */
	if (vec_reserve(&m->blocks, 1) || vec_reserve(&b.maps, n + PROCESS_MAPS_PER_CHANGE))
		return -ENOMEM;
	if (n)
		memcpy(b.maps.v, maps, n * sizeof(*maps));
	b.maps.len = n;
	memmove(&m->blocks.v[index + 1], &m->blocks.v[index], (m->blocks.len - index) * sizeof(b));
	m->blocks.v[index] = b;
	m->blocks.len++;
	return 0;
}

static int process_maps_copy(const struct process_maps *m, struct process_maps *to)
{
	int r = 0;

	for (size_t i = 0; !r && i < m->blocks.len; i++)
		r = process_maps_add_block(to, i, m->blocks.v[i].maps.v, m->blocks.v[i].maps.len);
	to->n = m->n;
	to->unmapped_lookup = m->unmapped_lookup;
	return r;
}

/*
 * Give a space maps of its own that can be changed: a copy if they are shared. NULL: out of memory.
 */
static struct process_maps *process_maps_own(struct process_maps **maps, uint32_t *generations)
{
	struct process_maps *m = *maps, *own;

	if (m && m->refs == 1)
		return m;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->refs = 1;
	own->generation = ++*generations;
	if (m ? process_maps_copy(m, own) : process_maps_add_block(own, 0, NULL, 0)) {
		process_maps_put(own);
		return NULL;
	}
	process_maps_put(m);
	*maps = own;
	return own;
}

/* The part of `old` from `start` on. */
static struct process_map process_map_tail(const struct process_map *old, uint64_t start)
{
	struct process_map tail = *old;

	tail.start = start;
	tail.pgoff += start - old->start;
	tail.under_pgoff += start - old->start;
	return tail;
}

/*
 * Whether `old`, the only map below, already gives the same result for all addresses of map.
 */
static bool process_map_same(const struct process_map *old, const struct process_map *map)
{
	return old->start <= map->start && map->end <= old->end && old->image == map->image &&
	       old->pgoff + (map->start - old->start) == map->pgoff;
}

/*
 * Find the first map that ends after addr. Make room in its block for a change. Returns 0 or
 * -ENOMEM.
 */
static int process_maps_room(struct process_maps *m, uint64_t addr,
			     struct process_maps_place *ret_at)
{
	struct process_maps_place at = process_maps_at(m, addr);
	struct process_block *b = &m->blocks.v[at.block];
	size_t half = b->maps.len / 2;

	*ret_at = at;
	if (b->maps.len + PROCESS_MAPS_PER_CHANGE <= PROCESS_BLOCK_MAPS)
		return vec_reserve(&b->maps, PROCESS_MAPS_PER_CHANGE);
	if (process_maps_add_block(m, at.block + 1, &b->maps.v[half], b->maps.len - half))
		return -ENOMEM;
	m->blocks.v[at.block].maps.len = half;
	if (at.index >= half)
		*ret_at = (struct process_maps_place){at.block + 1, at.index - half};
	return 0;
}

/* Remove the covered maps in blocks after the first one. */
static void process_maps_cut(struct process_maps *m, const struct process_covered *c)
{
	struct process_block *end = &m->blocks.v[c->end.block];
	size_t first = c->first.block + 1, kept = c->end.block;

	end->maps.len -= c->end.index;
	memmove(end->maps.v, &end->maps.v[c->end.index], end->maps.len * sizeof(*end->maps.v));
	if (!end->maps.len)
		kept++;
	for (size_t i = first; i < kept; i++)
		vec_free(&m->blocks.v[i].maps);
	memmove(&m->blocks.v[first], &m->blocks.v[kept],
		(m->blocks.len - kept) * sizeof(*m->blocks.v));
	m->blocks.len -= kept - first;
}

/*
 * Replace the covered maps by map and by their parts on either side. process_maps_room has made
 * room.
 */
static void process_maps_lay(struct process_maps *m, const struct process_covered *c,
			     const struct process_map *map)
{
	struct process_block *b = &m->blocks.v[c->first.block];
	struct process_map fresh[PROCESS_MAPS_PER_CHANGE], *first = &b->maps.v[c->first.index];
	size_t n = 0, tail = c->end.block > c->first.block ? 0 : b->maps.len - c->end.index;

	if (c->n && first->start < map->start) {
		fresh[n] = *first;
		fresh[n++].end = map->start;
	}
	fresh[n++] = *map;
	if (c->n && c->last->end > map->end)
		fresh[n++] = process_map_tail(c->last, map->end);
	if (c->end.block > c->first.block)
		process_maps_cut(m, c);
	else
		memmove(first + n, &b->maps.v[c->end.index], tail * sizeof(*first));
	memcpy(first, fresh, n * sizeof(*fresh));
	b->maps.len = c->first.index + n + tail;
	m->n += n - c->n;
}

int process_maps_add(struct process_maps **maps, uint32_t *generations,
		     const struct process_map *fresh, bool anonymous)
{
	struct process_maps *m = process_maps_own(maps, generations);
	struct process_maps_place first;
	struct process_covered covered;
	struct process_map map = *fresh;

	map.under = PROCESS_NO_IMAGE;
	map.under_pgoff = 0;
	if (!m || process_maps_room(m, map.start, &first))
		return -ENOMEM;
	if (m->n >= PROCESS_MAPS_MAX)
		return -E2BIG;
	covered = process_maps_covered(m, first, &map);
	if (covered.n == 1 && process_map_same(covered.last, &map))
		return 0;
	if (covered.n == 1 && anonymous && covered.last->start <= map.start &&
	    covered.last->end >= map.end) {
		struct process_map below = process_map_tail(covered.last, map.start);

		map.under = below.under == PROCESS_NO_IMAGE ? below.image : below.under;
		map.under_pgoff = below.under == PROCESS_NO_IMAGE ? below.pgoff : below.under_pgoff;
	}
	process_maps_lay(m, &covered, &map);
	if (covered.n || m->unmapped_lookup) {
		m->generation = ++*generations;
		m->unmapped_lookup = false;
	}
	return 0;
}

const struct process_map *process_maps_find(struct process_maps *m, uint64_t addr)
{
	const struct process_block *b;
	const struct process_map *map;

	if (!m)
		return NULL;
	b = process_maps_block(m, addr);
	map = process_map_search(b->maps.v, b->maps.len, addr);
	if (map < b->maps.v + b->maps.len && map->start <= addr)
		return map;
	m->unmapped_lookup = true;
	return NULL;
}
