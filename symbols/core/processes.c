#include "symbols/core/processes.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

/* One address space. Unused ones form a list. */
struct process_space {
	struct process_maps *maps; /* NULL: nothing mapped */
	uint32_t threads;          /* that have not exited */
	uint32_t refs;             /* threads that refer to it; 0: unused */
	uint32_t next;             /* the next unused one + 1 */
	uint32_t family;           /* 0: none yet */
};

/* An ended thread, unless its tid was used again since. */
struct process_ended {
	uint32_t thread, ended;
};

struct processes {
	struct processes_options options;
	VEC(struct process_thread) threads;
	VEC(struct process_space) spaces;
	uint32_t unused_thread; /* the first unused one + 1; its space links to the next */
	uint32_t unused_space;  /* likewise */
	struct hashmap by_tid;  /* tid -> index into threads */
	struct process_maps_pool maps;
	struct families families;
	/* Ring of PROCESSES_ENDED_KEPT with the numbers from ended_first to ended_next. */
	struct process_ended *ended;
	uint32_t ended_first, ended_next;
};

int processes_new(const struct processes_options *options, struct processes **ret_processes)
{
	struct processes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ended = calloc(PROCESSES_ENDED_KEPT, sizeof(*p->ended));
	if (!p->ended) {
		free(p);
		return -ENOMEM;
	}
	p->options = *options;
	p->ended_first = p->ended_next = 1;
	p->maps.trees.nodes_max = options->maps_bytes / sizeof(struct map_tree_node);
	*ret_processes = p;
	return 0;
}

void processes_free(struct processes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->spaces.len; i++)
		process_maps_put(&p->maps, p->spaces.v[i].maps);
	map_trees_free(&p->maps.trees);
	families_free(&p->families);
	vec_free(&p->spaces);
	vec_free(&p->threads);
	hashmap_free(&p->by_tid);
	free(p->ended);
	free(p);
}

static int process_space_new(struct processes *p, uint32_t *ret_space)
{
	if (p->unused_space) {
		*ret_space = p->unused_space - 1;
		p->unused_space = p->spaces.v[*ret_space].next;
		p->spaces.v[*ret_space] = (struct process_space){0};
		return 0;
	}
	if (vec_push(&p->spaces, ((struct process_space){0})))
		return -ENOMEM;
	*ret_space = (uint32_t)p->spaces.len - 1;
	return 0;
}

static void process_space_drop_maps(struct processes *p, struct process_space *space)
{
	size_t before = map_trees_used(&p->maps.trees);

	process_maps_put(&p->maps, space->maps);
	space->maps = NULL;
	if (space->family)
		p->families.v.v[space->family].nodes -= before - map_trees_used(&p->maps.trees);
}

/* Add the reference of a thread. */
static void process_space_enter(struct processes *p, const struct process_thread *t)
{
	p->spaces.v[t->space].refs++;
	p->spaces.v[t->space].threads += !t->exited;
}

/* Drop the reference of a thread. */
static void process_space_leave(struct processes *p, const struct process_thread *t)
{
	struct process_space *space = &p->spaces.v[t->space];

	space->threads -= !t->exited;
	if (--space->refs)
		return;
	process_space_drop_maps(p, space);
	families_leave(&p->families, space->family);
	space->next = p->unused_space;
	p->unused_space = t->space + 1;
}

/* Find the address space of a thread of pid: its leader's. Make the leader if it was not seen. */
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

/* Set the process of a thread, once. perf sees some threads, by tid only, before their process. */
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
	process_space_leave(p, &p->threads.v[index]);
	p->threads.v[index].space = space;
	process_space_enter(p, &p->threads.v[index]);
	return 0;
}

/* Fill the entry `index` with a new thread. */
static int process_thread_init(struct processes *p, uint32_t index, int32_t pid, int32_t tid)
{
	struct process_thread t = {
		.pid = pid, .tid = tid, .comm = PROCESS_NO_COMM, .cached_id = PROCESS_NO_CACHE};
	int r = process_space_of(p, pid, tid, &t.space);

	if (r)
		return r;
	process_space_enter(p, &t);
	p->threads.v[index] = t;
	return 0;
}

/* Make an entry for a tid that has none. Mark it as exited, so that it counts nowhere yet. */
static int process_thread_entry(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_index)
{
	const struct process_thread blank = {.pid = pid, .tid = tid, .exited = true, .blank = true};
	uint32_t index = p->unused_thread ? p->unused_thread - 1 : (uint32_t)p->threads.len;

	if ((!p->unused_thread && vec_reserve(&p->threads, 1)) ||
	    hashmap_put(&p->by_tid, (uint32_t)tid, index))
		return -ENOMEM;
	if (p->unused_thread)
		p->unused_thread = p->threads.v[index].space;
	else
		p->threads.len++;
	p->threads.v[index] = blank;
	*ret_index = index;
	return 0;
}

/* Make a new thread. If the tid is in use, replace the old thread in its entry. */
static int process_thread_make(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_index)
{
	uint32_t *known = hashmap_get(&p->by_tid, (uint32_t)tid);
	uint32_t index = known ? *known : 0;
	int r = known ? 0 : process_thread_entry(p, pid, tid, &index);

	if (known && !p->threads.v[index].blank) {
		/* The old thread is gone even if memory for the new one runs out. */
		processes_exit(p, tid);
		process_space_leave(p, &p->threads.v[index]);
		p->threads.v[index].blank = true;
		p->threads.v[index].ended = 0;
	}
	if (!r)
		r = process_thread_init(p, index, pid, tid);
	if (!r)
		*ret_index = index;
	return r;
}

int processes_thread(struct processes *p, int32_t pid, int32_t tid,
		     struct process_thread **ret_thread)
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

int processes_comm(struct processes *p, int32_t pid, int32_t tid, const char *name)
{
	struct process_thread *t;
	size_t len = strlen(name);
	uint32_t comm = PROCESS_NO_COMM;
	int r = processes_thread(p, pid, tid, &t);

	if (!r && len >= sizeof(t->text) && p->options.comm)
		r = p->options.comm(p->options.ctx, tid, name, &comm);
	if (r)
		return r;
	if (len < sizeof(t->text))
		memcpy(t->text, name, len + 1);
	t->comm = comm;
	t->cached_id = PROCESS_NO_CACHE;
	t->named = true;
	return 0;
}

int processes_comm_of(struct processes *p, struct process_thread *t, uint32_t *ret_comm)
{
	int r = 0;

	if (t->comm == PROCESS_NO_COMM && p->options.comm)
		r = p->options.comm(p->options.ctx, t->tid, t->named ? t->text : NULL, &t->comm);
	if (!r)
		*ret_comm = t->comm;
	return r;
}

/* Make the family of an address space, unless it has one. */
static int process_space_family(struct processes *p, struct process_space *space)
{
	return space->family ? 0 : families_new(&p->families, &space->family);
}

int processes_family(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_family)
{
	struct process_thread *t;
	int r = processes_thread(p, pid, tid, &t);

	if (!r)
		r = process_space_family(p, &p->spaces.v[t->space]);
	if (!r)
		*ret_family = p->spaces.v[t->space].family;
	return r;
}

struct families *processes_families(struct processes *p)
{
	return &p->families;
}

int processes_fork(struct processes *p, int32_t pid, int32_t tid, int32_t ppid, int32_t ptid,
		   bool share_maps)
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
		memcpy(t->text, parent->text, sizeof(t->text));
		t->named = true;
	}
	if (t->pid == parent->pid || !share_maps || t->space == parent->space)
		return 0;
	to = &p->spaces.v[t->space];
	from = &p->spaces.v[parent->space];
	if (to->maps)
		return 0;
	r = process_space_family(p, from);
	if (r)
		return r;
	families_enter(&p->families, from->family);
	families_leave(&p->families, to->family);
	to->family = from->family;
	to->maps = process_maps_share(from->maps);
	return 0;
}

/* Forget an ended thread. The maps of its process stay while other threads run. */
static void process_forget(struct processes *p, uint32_t ended)
{
	const struct process_ended *e = &p->ended[ended % PROCESSES_ENDED_KEPT];
	struct process_thread *t = &p->threads.v[e->thread];
	bool last = t->pid == t->tid || t->pid == -1; /* after all others of its process */

	if (t->ended != e->ended)
		return;
	t->ended = 0;
	if (last && p->spaces.v[t->space].threads)
		return;
	if (last)
		process_space_drop_maps(p, &p->spaces.v[t->space]);
	process_space_leave(p, t);
	hashmap_remove(&p->by_tid, (uint32_t)t->tid);
	t->space = p->unused_thread;
	p->unused_thread = e->thread + 1;
}

/* Remember that a thread ended. */
static void process_note_end(struct processes *p, uint32_t index)
{
	if (p->ended_next - p->ended_first == PROCESSES_ENDED_KEPT)
		process_forget(p, p->ended_first++);
	p->threads.v[index].ended = p->ended_next;
	p->ended[p->ended_next % PROCESSES_ENDED_KEPT] =
		(struct process_ended){index, p->ended_next};
	p->ended_next++;
}

void processes_exit(struct processes *p, int32_t tid)
{
	uint32_t *index = hashmap_get(&p->by_tid, (uint32_t)tid), *leader;
	struct process_thread *t = index ? &p->threads.v[*index] : NULL;

	if (!t || t->exited)
		return;
	t->exited = true;
	p->spaces.v[t->space].threads--;
	leader = t->pid == -1 ? NULL : hashmap_get(&p->by_tid, (uint32_t)t->pid);
	if (t->pid != t->tid)
		process_note_end(p, *index);
	/* Threads find their address space at the first thread of the process, so it ends last. */
	if (leader && p->threads.v[*leader].space == t->space && !p->spaces.v[t->space].threads)
		process_note_end(p, *leader);
}

bool processes_has_ended(const struct processes *p, int32_t pid)
{
	const uint32_t *leader = hashmap_get(&p->by_tid, (uint32_t)pid);

	return leader && !p->threads.v[*leader].blank &&
	       !p->spaces.v[p->threads.v[*leader].space].threads;
}

/*
 * Forget the next ended thread of this family, or of one that has taken no less: a large family
 * takes no maps of small ones. Each family looks once at each ended thread. False: none is left.
 */
static bool process_forget_next(struct processes *p, uint32_t family)
{
	struct family *mine = &p->families.v.v[family];
	uint32_t at = mine->ended_next, other;

	if (at - p->ended_first > p->ended_next - p->ended_first)
		at = p->ended_first;
	for (mine->ended_next = p->ended_next; at != p->ended_next; at++) {
		const struct process_ended *e = &p->ended[at % PROCESSES_ENDED_KEPT];
		const struct process_thread *t = &p->threads.v[e->thread];

		if (t->ended != e->ended)
			continue;
		other = p->spaces.v[t->space].family;
		if (!other || p->families.v.v[other].nodes < mine->nodes)
			continue;
		process_forget(p, at);
		mine->ended_next = at + 1;
		return true;
	}
	return false;
}

/* Make room for a change of maps, if necessary instead of maps of ended processes. */
static int process_make_room(struct processes *p, uint32_t family)
{
	struct map_trees *trees = &p->maps.trees;

	while (!family_has_room(p->families.v.v[family].nodes,
				map_trees_used(trees) + MAP_TREE_CHANGE_NODES, trees->nodes_max))
		if (!process_forget_next(p, family))
			return -E2BIG;
	return map_trees_reserve(trees);
}

/* Add a map to an address space, and count its nodes for the family. */
static int process_space_add(struct processes *p, struct process_space *space,
			     const struct process_map *map, bool anonymous)
{
	size_t before = map_trees_used(&p->maps.trees);
	int r = process_maps_add(&p->maps, &space->maps, map, anonymous);

	p->families.v.v[space->family].nodes += map_trees_used(&p->maps.trees) - before;
	return r;
}

int processes_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map,
		  bool anonymous)
{
	struct process_thread *t;
	uint32_t family;
	int r;

	if (map->end <= map->start)
		return -EINVAL;
	r = processes_family(p, pid, tid, &family);
	if (r)
		return r;
	families_enter(&p->families, family);
	r = process_make_room(p, family);
	if (!r)
		r = processes_thread(p, pid, tid, &t);
	/* To make room may have forgotten the thread. */
	if (!r)
		r = process_space_family(p, &p->spaces.v[t->space]);
	if (!r)
		r = process_space_add(p, &p->spaces.v[t->space], map, anonymous);
	families_leave(&p->families, family);
	return r == -E2BIG ? processes_lose_map(p, pid, tid, map) : r;
}

int processes_lose_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map)
{
	struct process_thread *t;
	uint32_t family;
	int r = processes_family(p, pid, tid, &family);

	if (!r)
		r = processes_thread(p, pid, tid, &t);
	if (r)
		return r;
	families_drop_map(&p->families, family, pid);
	r = process_maps_lose(&p->maps, &p->spaces.v[t->space].maps, map);
	return r ? r : -E2BIG;
}

const struct process_map *processes_find_map(struct processes *p, const struct process_thread *t,
					     uint64_t addr)
{
	return process_maps_find(&p->maps, p->spaces.v[t->space].maps, addr);
}

uint32_t processes_generation(const struct processes *p, const struct process_thread *t)
{
	return process_maps_generation(p->spaces.v[t->space].maps);
}

void processes_forget_ended(struct processes *p)
{
	while (p->ended_first != p->ended_next)
		process_forget(p, p->ended_first++);
}

struct process_map *processes_next_map(struct processes *p, uint32_t *at)
{
	return map_trees_next(&p->maps.trees, at);
}
