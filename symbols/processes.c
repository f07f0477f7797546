#include "symbols/processes.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

/* One state of an address space, sorted by start, without overlaps. Written only while it has one owner. */
struct process_maps {
	uint32_t refs;
	uint32_t generation;
	bool asked_unmapped; /* somebody was told that an address is not mapped: a new map may change that */
	VEC(struct process_map) maps;
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
	vec_free(&m->maps);
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
		struct process_thread blank = {.pid = pid, .tid = tid, .exited = true};

		if (vec_push(&p->threads, blank))
			return -ENOMEM;
		r = hashmap_put(&p->by_tid, (uint32_t)tid, index);
		if (r) {
			p->threads.len--;
			return r;
		}
	} else {
		processes_exit(p, tid);
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

	if (!known)
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

/* The index of the first map that ends after addr. */
static size_t process_maps_at(const struct process_maps *m, uint64_t addr)
{
	size_t low = 0, high = m->maps.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->maps.v[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
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
	if (m && vec_reserve(&own->maps, m->maps.len + 1)) {
		free(own);
		return NULL;
	}
	if (m) {
		memcpy(own->maps.v, m->maps.v, m->maps.len * sizeof(*m->maps.v));
		own->maps.len = m->maps.len;
		own->asked_unmapped = m->asked_unmapped;
		process_maps_put(m);
	}
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

/* Replaces maps [first, last) by what is left of them around map, and map. */
static int process_maps_lay(struct process_maps *m, size_t first, size_t last, const struct process_map *map)
{
	struct process_map fresh[3];
	size_t n = 0, tail = m->maps.len - last;

	if (vec_reserve(&m->maps, 3))
		return -ENOMEM;
	if (first < last && m->maps.v[first].start < map->start) {
		fresh[n] = m->maps.v[first];
		fresh[n++].end = map->start;
	}
	fresh[n++] = *map;
	if (first < last && m->maps.v[last - 1].end > map->end)
		fresh[n++] = process_map_tail(&m->maps.v[last - 1], map->end);
	memmove(&m->maps.v[first + n], &m->maps.v[last], tail * sizeof(*m->maps.v));
	memcpy(&m->maps.v[first], fresh, n * sizeof(*fresh));
	m->maps.len = first + n + tail;
	return 0;
}

static int process_space_map(struct processes *p, struct process_space *s, struct process_map *map, bool anonymous)
{
	struct process_maps *m = process_maps_own(p, s);
	size_t first, last;
	int r;

	if (!m)
		return -ENOMEM;
	if (m->maps.len >= PROCESS_MAPS_MAX)
		return -E2BIG;
	first = last = process_maps_at(m, map->start);
	while (last < m->maps.len && m->maps.v[last].start < map->end)
		last++;
	if (last == first + 1 && process_map_same(&m->maps.v[first], map))
		return 0;
	if (last == first + 1 && anonymous && m->maps.v[first].start <= map->start &&
	    m->maps.v[first].end >= map->end) {
		struct process_map below = process_map_tail(&m->maps.v[first], map->start);

		map->under = below.under == PROCESS_NO_IMAGE ? below.image : below.under;
		map->under_pgoff = below.under == PROCESS_NO_IMAGE ? below.pgoff : below.under_pgoff;
	}
	r = process_maps_lay(m, first, last, map);
	if (r)
		return r;
	if (first < last || m->asked_unmapped) {
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
	size_t i;

	if (!m)
		return NULL;
	i = process_maps_at(m, addr);
	if (i < m->maps.len && m->maps.v[i].start <= addr)
		return &m->maps.v[i];
	m->asked_unmapped = true;
	return NULL;
}

uint32_t processes_generation(const struct processes *p, const struct process_thread *t)
{
	const struct process_maps *m = p->spaces.v[t->space].maps;

	return m ? m->generation : 0;
}
