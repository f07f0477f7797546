#include "symbols/processes.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

/* How many maps are moved at most for a new one: most address spaces are one block. */
#define PROCESS_BLOCK_MAPS 1024
/* What a map leaves of the only one below it: a part before it, itself and a part after it. */
#define PROCESS_MAPS_PER_CHANGE 3

struct process_block {
	VEC(struct process_map) maps;
};

/* One state of an address space, sorted by start, without overlaps. Written only while it has one
 * owner. It has a block always, and an empty one only while nothing is mapped. */
struct process_maps {
	uint32_t refs;
	uint32_t generation;
	bool asked_unmapped; /* somebody was told that an address is not mapped: a new map may change that */
	size_t n;
	VEC(struct process_block) blocks;
};

/* Where a map is; behind the last one: the last block and its length. */
struct process_maps_place {
	size_t block, index;
};

/* The maps that a new one is laid over. */
struct process_covered {
	struct process_maps_place first, end;
	size_t n;
	const struct process_map *last; /* NULL: none */
};

struct process_space {
	struct process_maps *maps; /* NULL: nothing mapped */
	uint32_t threads; /* that have not exited */
	uint32_t exits; /* how often the last one has exited; tells stale entries of `ended` */
};

struct process_ended {
	uint32_t space, exits;
};

struct processes {
	processes_unnamed_fn *unnamed;
	void *ctx;
	VEC(struct process_thread) threads;
	VEC(struct process_space) spaces;
	struct hashmap by_tid; /* tid -> index into threads */
	uint32_t generations;
	struct process_ended *ended; /* ring of PROCESS_SPACES_KEPT */
	size_t nended;
};

int processes_new(processes_unnamed_fn *unnamed, void *ctx, struct processes **ret_processes)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ended = calloc(PROCESS_SPACES_KEPT, sizeof(*p->ended));
	if (!p->ended) {
		free(p);
		return -ENOMEM;
	}
	p->unnamed = unnamed;
	p->ctx = ctx;
	*ret_processes = p;
	return 0;
}

static void process_maps_put(struct process_maps *m)
{
	if (!m || --m->refs)
		return;
	for (size_t i = 0; i < m->blocks.len; i++)
		vec_free(&m->blocks.v[i].maps);
	vec_free(&m->blocks);
	free(m);
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->spaces.len; i++)
		process_maps_put(p->spaces.v[i].maps);
	vec_free(&p->spaces);
	vec_free(&p->threads);
	hashmap_free(&p->by_tid);
	free(p->ended);
	free(p);
}

static int process_space_new(struct processes *p, uint32_t *ret_space)
{
	if (vec_push(&p->spaces, ((struct process_space){0})))
		return -ENOMEM;
	*ret_space = (uint32_t)p->spaces.len - 1;
	return 0;
}

/* The space that a thread of pid lives in: its leader's, made when the leader was not seen. */
static int process_space_of(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_space)
{
	struct process_thread *leader;
	int r;

	if (pid == tid || pid == -1)
		return process_space_new(p, ret_space);
	r = processes_thread(p, pid, pid, &leader);
	if (!r)
		*ret_space = leader->space;
	return r;
}

/* perf meets some threads (by tid only) before it knows their process; the process is then filled in, once. */
static int process_thread_join(struct processes *p, uint32_t index, int32_t pid)
{
	uint32_t space;
	int r;

	p->threads.v[index].pid = pid;
	p->threads.v[index].cached_id = PROCESS_NO_CACHE;
	if (pid == p->threads.v[index].tid)
		return 0;
	r = process_space_of(p, pid, p->threads.v[index].tid, &space);
	if (r)
		return r;
	if (!p->threads.v[index].exited) {
		p->spaces.v[p->threads.v[index].space].threads--;
		p->spaces.v[space].threads++;
	}
	p->threads.v[index].space = space;
	return 0;
}

/* Fills the entry `index` with a fresh thread. */
static int process_thread_init(struct processes *p, uint32_t index, int32_t pid, int32_t tid)
{
	struct process_thread t = {.pid = pid, .tid = tid, .cached_id = PROCESS_NO_CACHE};
	int r = p->unnamed(p->ctx, tid, &t.comm);

	if (!r)
		r = process_space_of(p, pid, tid, &t.space);
	if (r)
		return r;
	p->spaces.v[t.space].threads++;
	p->threads.v[index] = t;
	return 0;
}

/* A new thread under a tid that may be in use; an earlier entry is taken over. */
static int process_thread_make(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_index)
{
	uint32_t *known = hashmap_get(&p->by_tid, (uint32_t)tid);
	uint32_t index = known ? *known : (uint32_t)p->threads.len;
	int r;

	if (!known) {
		/* Counted nowhere until it is filled in. */
		struct process_thread blank = {.pid = pid, .tid = tid, .exited = true, .blank = true};

		if (vec_push(&p->threads, blank))
			return -ENOMEM;
		r = hashmap_put(&p->by_tid, (uint32_t)tid, index);
		if (r) {
			p->threads.len--;
			return r;
		}
	} else {
		processes_exit(p, tid);
		p->threads.v[index].blank = true; /* what it was is over, whether or not there is memory for what it is */
	}
	r = process_thread_init(p, index, pid, tid);
	if (!r)
		*ret_index = index;
	return r;
}

int processes_thread(struct processes *p, int32_t pid, int32_t tid, struct process_thread **ret_thread)
{
	uint32_t *known = hashmap_get(&p->by_tid, (uint32_t)tid);
	uint32_t index;
	int r = 0;

	if (!known || p->threads.v[*known].blank)
		r = process_thread_make(p, pid, tid, &index);
	else if (index = *known, p->threads.v[index].pid == -1 && pid != -1)
		r = process_thread_join(p, index, pid);
	if (!r)
		*ret_thread = &p->threads.v[index];
	return r;
}

int processes_comm(struct processes *p, int32_t pid, int32_t tid, uint32_t comm)
{
	struct process_thread *t;
	int r = processes_thread(p, pid, tid, &t);

	if (r)
		return r;
	if (t->comm != comm)
		t->cached_id = PROCESS_NO_CACHE;
	t->comm = comm;
	t->named = true;
	return 0;
}

int processes_fork(struct processes *p, int32_t pid, int32_t tid, int32_t ppid, int32_t ptid, bool share_maps)
{
	struct process_thread *parent, *t;
	struct process_space *to, *from;
	uint32_t index;
	int r = processes_thread(p, ppid, ptid, &parent);

	if (!r && parent->pid != ppid)
		r = process_thread_make(p, ppid, ptid, &index);
	if (!r && tid != ptid)
		r = process_thread_make(p, pid, tid, &index);
	if (!r)
		r = processes_thread(p, ppid, ptid, &parent);
	if (r || tid == ptid)
		return r;
	t = &p->threads.v[index];
	if (parent->named) {
		t->comm = parent->comm;
		t->named = true;
	}
	if (t->pid == parent->pid || !share_maps || t->space == parent->space)
		return 0;
	to = &p->spaces.v[t->space];
	from = &p->spaces.v[parent->space];
	if (to->maps || !from->maps)
		return 0;
	to->maps = from->maps;
	to->maps->refs++;
	return 0;
}

/* Remembers an ended process and lets the address space of one that ended long ago go. */
static void process_space_ended(struct processes *p, uint32_t space)
{
	struct process_ended *e = &p->ended[p->nended++ % PROCESS_SPACES_KEPT];

	if (p->nended > PROCESS_SPACES_KEPT) {
		struct process_space *old = &p->spaces.v[e->space];

		if (!old->threads && old->exits == e->exits) {
			process_maps_put(old->maps);
			old->maps = NULL;
		}
	}
	*e = (struct process_ended){space, ++p->spaces.v[space].exits};
}

void processes_exit(struct processes *p, int32_t tid)
{
	uint32_t *index = hashmap_get(&p->by_tid, (uint32_t)tid);
	struct process_thread *t = index ? &p->threads.v[*index] : NULL;

	if (!t || t->exited)
		return;
	t->exited = true;
	if (!--p->spaces.v[t->space].threads)
		process_space_ended(p, t->space);
}

/* The first of n sorted maps that ends after addr; maps + n: none. */
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

/* The block with the first map that ends after addr, or the last one. */
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

/* The first map that ends after addr. */
static struct process_maps_place process_maps_at(const struct process_maps *m, uint64_t addr)
{
	const struct process_block *b = process_maps_block(m, addr);
	struct process_map *map = process_map_search(b->maps.v, b->maps.len, addr);

	return (struct process_maps_place){(size_t)(b - m->blocks.v), (size_t)(map - b->maps.v)};
}

/* The map at a place, or NULL behind the last one. */
static struct process_map *process_maps_get(const struct process_maps *m,
					    struct process_maps_place at)
{
	const struct process_block *b = &m->blocks.v[at.block];

	return at.index < b->maps.len ? &b->maps.v[at.index] : NULL;
}

/* The maps that map will be laid over, from the first that ends after its start. All but the first
 * and the last of them will go: no map is walked over often. */
static struct process_covered process_maps_covered(const struct process_maps *m,
						   struct process_maps_place first,
						   const struct process_map *map)
{
	struct process_covered c = {.first = first, .end = first};
	const struct process_map *next;

	while (next = process_maps_get(m, c.end), next && next->start < map->end) {
		c.last = next;
		c.n++;
		if (++c.end.index == m->blocks.v[c.end.block].maps.len &&
		    c.end.block + 1 < m->blocks.len)
			c.end = (struct process_maps_place){c.end.block + 1, 0};
	}
	return c;
}

/* Adds a block at an index, of maps that are copied. 0 or -ENOMEM. */
static int process_maps_add_block(struct process_maps *m, size_t index,
				  const struct process_map *maps, size_t n)
{
	struct process_block b = {0};

	/* With room for the change that it is made for. */
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
	to->asked_unmapped = m->asked_unmapped;
	return r;
}

/* The maps of a space, owned by it alone, so that they can be changed. NULL when memory is out. */
static struct process_maps *process_maps_own(struct processes *p, struct process_space *s)
{
	struct process_maps *m = s->maps, *own;

	if (m && m->refs == 1)
		return m;
	own = calloc(1, sizeof(*own));
	if (!own)
		return NULL;
	own->refs = 1;
	own->generation = ++p->generations;
	if (m ? process_maps_copy(m, own) : process_maps_add_block(own, 0, NULL, 0)) {
		process_maps_put(own);
		return NULL;
	}
	process_maps_put(m);
	s->maps = own;
	return own;
}

/* What is left of `old` at addresses from `start` on. */
static struct process_map process_map_tail(const struct process_map *old, uint64_t start)
{
	struct process_map tail = *old;

	tail.start = start;
	tail.pgoff += start - old->start;
	tail.under_pgoff += start - old->start;
	return tail;
}

/* Whether map says of its addresses what the only map below it, old, says already. */
static bool process_map_same(const struct process_map *old, const struct process_map *map)
{
	return old->start <= map->start && map->end <= old->end && old->image == map->image &&
	       old->pgoff + (map->start - old->start) == map->pgoff;
}

/* The first map that ends after addr, in a block with room for a change. 0 or -ENOMEM. */
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

/* Takes out what is covered in blocks after the first one. */
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

/* Replaces the covered maps by what is left of them around map, and map. process_maps_room has made
 * room. */
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

static int process_space_map(struct processes *p, struct process_space *s, struct process_map *map, bool anonymous)
{
	struct process_maps *m = process_maps_own(p, s);
	struct process_maps_place first;
	struct process_covered covered;

	if (!m || process_maps_room(m, map->start, &first))
		return -ENOMEM;
	if (m->n >= PROCESS_MAPS_MAX)
		return -E2BIG;
	covered = process_maps_covered(m, first, map);
	if (covered.n == 1 && process_map_same(covered.last, map))
		return 0;
	if (covered.n == 1 && anonymous && covered.last->start <= map->start &&
	    covered.last->end >= map->end) {
		struct process_map below = process_map_tail(covered.last, map->start);

		map->under = below.under == PROCESS_NO_IMAGE ? below.image : below.under;
		map->under_pgoff = below.under == PROCESS_NO_IMAGE ? below.pgoff : below.under_pgoff;
	}
	process_maps_lay(m, &covered, map);
	if (covered.n || m->asked_unmapped) {
		m->generation = ++p->generations;
		m->asked_unmapped = false;
	}
	return 0;
}

int processes_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map, bool anonymous)
{
	struct process_map fresh = *map;
	struct process_thread *t;
	int r;

	if (map->end <= map->start)
		return -EINVAL;
	r = processes_thread(p, pid, tid, &t);
	if (r)
		return r;
	fresh.under = PROCESS_NO_IMAGE;
	fresh.under_pgoff = 0;
	return process_space_map(p, &p->spaces.v[t->space], &fresh, anonymous);
}

const struct process_map *processes_find_map(struct processes *p, const struct process_thread *t, uint64_t addr)
{
	struct process_maps *m = p->spaces.v[t->space].maps;
	const struct process_block *b;
	const struct process_map *map;

	if (!m)
		return NULL;
	b = process_maps_block(m, addr);
	map = process_map_search(b->maps.v, b->maps.len, addr);
	if (map < b->maps.v + b->maps.len && map->start <= addr)
		return map;
	m->asked_unmapped = true;
	return NULL;
}

uint32_t processes_generation(const struct processes *p, const struct process_thread *t)
{
	const struct process_maps *m = p->spaces.v[t->space].maps;

	return m ? m->generation : 0;
}
