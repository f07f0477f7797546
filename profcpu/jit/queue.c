#include "profcpu/jit/queue.h"

static void queue_place(struct jit_queue *q, size_t at, struct jit_process *p)
{
	q->heap.v[at] = p;
	*hashmap_get(&q->places, (uint32_t)p->pid) = (uint32_t)at;
}

/* Puts a process into an empty place, or moves it up or down from there. */
static void queue_settle(struct jit_queue *q, size_t at, struct jit_process *p)
{
	struct jit_process **v = q->heap.v;

	for (; at && v[(at - 1) / 2]->next_ns > p->next_ns; at = (at - 1) / 2)
		queue_place(q, at, v[(at - 1) / 2]);
	for (size_t child; (child = 2 * at + 1) < q->heap.len; at = child) {
		if (child + 1 < q->heap.len && v[child + 1]->next_ns < v[child]->next_ns)
			child++;
		if (v[child]->next_ns >= p->next_ns)
			break;
		queue_place(q, at, v[child]);
	}
	queue_place(q, at, p);
}

int jit_queue_add(struct jit_queue *q, struct jit_process *p)
{
	if (vec_reserve(&q->heap, 1) || hashmap_put(&q->places, (uint32_t)p->pid, 0))
		return -ENOMEM;
	q->heap.v[q->heap.len++] = p;
	queue_settle(q, q->heap.len - 1, p);
	return 0;
}

struct jit_process *jit_queue_find(const struct jit_queue *q, pid_t pid)
{
	const uint32_t *place = hashmap_get(&q->places, (uint32_t)pid);

	return place ? q->heap.v[*place] : NULL;
}

void jit_queue_update(struct jit_queue *q, const struct jit_process *p)
{
	uint32_t at = *hashmap_get(&q->places, (uint32_t)p->pid);

	queue_settle(q, at, q->heap.v[at]);
}

void jit_queue_remove(struct jit_queue *q, const struct jit_process *p)
{
	uint32_t at = *hashmap_get(&q->places, (uint32_t)p->pid);
	struct jit_process *last = q->heap.v[--q->heap.len];

	hashmap_remove(&q->places, (uint32_t)p->pid);
	if (last != p)
		queue_settle(q, at, last);
}

void jit_queue_free(struct jit_queue *q)
{
	vec_free(&q->heap);
	hashmap_free(&q->places);
}
