#include "symbols/core/processes.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>

struct process_space {
	struct process_maps *maps; /* NULL: nothing mapped */
	uint32_t threads;          /* that have not exited */
	uint32_t exits; /* times that the last thread exited; detects stale entries of `ended` */
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
	if (!p->threads.v[index].exited) {
		p->spaces.v[p->threads.v[index].space].threads--;
		p->spaces.v[space].threads++;
	}
	p->threads.v[index].space = space;
	return 0;
}

/* Fill the entry `index` with a new thread. */
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

/* Make a new thread. If the tid is in use, replace the old thread in its entry. */
static int process_thread_make(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_index)
{
	uint32_t *known = hashmap_get(&p->by_tid, (uint32_t)tid);
	uint32_t index = known ? *known : (uint32_t)p->threads.len;
	int r;

	if (!known) {
		/* Mark it as exited, so that it counts nowhere until it is filled in. */
		struct process_thread blank = {
			.pid = pid, .tid = tid, .exited = true, .blank = true};

		if (vec_push(&p->threads, blank))
			return -ENOMEM;
		r = hashmap_put(&p->by_tid, (uint32_t)tid, index);
		if (r) {
			p->threads.len--;
			return r;
		}
	} else {
		processes_exit(p, tid);
		/* The old thread is gone even if memory for the new one runs out. */
		p->threads.v[index].blank = true;
	}
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
		t->named = true;
	}
	if (t->pid == parent->pid || !share_maps || t->space == parent->space)
		return 0;
	to = &p->spaces.v[t->space];
	from = &p->spaces.v[parent->space];
	if (to->maps || !from->maps)
		return 0;
	to->maps = process_maps_share(from->maps);
	return 0;
}

/* Remember an ended process. Free the address space of a process that ended long ago. */
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

int processes_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map,
		  bool anonymous)
{
	struct process_thread *t;
	int r;

	if (map->end <= map->start)
		return -EINVAL;
	r = processes_thread(p, pid, tid, &t);
	return r ? r
		 : process_maps_add(&p->spaces.v[t->space].maps, &p->generations, map, anonymous);
}

const struct process_map *processes_find_map(struct processes *p, const struct process_thread *t,
					     uint64_t addr)
{
	return process_maps_find(p->spaces.v[t->space].maps, addr);
}

uint32_t processes_generation(const struct processes *p, const struct process_thread *t)
{
	return process_maps_generation(p->spaces.v[t->space].maps);
}
