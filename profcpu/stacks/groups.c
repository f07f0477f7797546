#include "profcpu/stacks/groups.h"

#include "profcpu/stacks/syscall_name.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

/* A thread may be about to run when its wait is read. */
static char shown_state(const struct stacks_thread *thread)
{
	return thread->how == STACKS_RUNNING                           ? 'R'
	       : thread->how == STACKS_WAITING && thread->state == 'R' ? 'S'
								       : thread->state;
}

/* 0: the same group. */
static int compare_stacks(const struct stacks_thread *x, const struct stacks_thread *y)
{
	if (x->how != y->how)
		return x->how < y->how ? -1 : 1;
	if (x->equal != y->equal)
		return x->equal < y->equal ? -1 : 1;
	if (shown_state(x) != shown_state(y))
		return shown_state(x) < shown_state(y) ? -1 : 1;
	if (x->how == STACKS_WAITING && x->number != y->number)
		return x->number < y->number ? -1 : 1;
	int r = compare_texts(x->kernel, y->kernel);

	return r ? r : compare_texts(x->why, y->why);
}

static int by_stack(const void *a, const void *b)
{
	const struct stacks_thread *x = *(const struct stacks_thread *const *)a,
				   *y = *(const struct stacks_thread *const *)b;
	int r = compare_stacks(x, y);

	if (!r)
		r = strcmp(x->name, y->name);
	return r ? r : (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_count(const void *a, const void *b)
{
	const struct stacks_group *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	bool runs = x->threads[0]->how == STACKS_RUNNING;

	if (runs != (y->threads[0]->how == STACKS_RUNNING))
		return runs ? -1 : 1;
	return x->threads[0]->tid < y->threads[0]->tid ? -1 : 1;
}

/* Adds `part` to the chain with this id. *ret_id: the same for equal chains, from 1 on. */
static int extend(struct hashmap *chains, uint32_t chain, uint32_t part, uint32_t *ret_id)
{
	uint32_t *id;
	int r = hashmap_entry(chains, (uint64_t)chain << 32 | part, (uint32_t)chains->len + 1, &id,
			      NULL);

	if (!r)
		*ret_id = *id;
	return r;
}

/* Sets thread->equal. 0 or -ENOMEM. */
static int find_equal(const struct profile *p, struct stacks_threads *threads)
{
	uint32_t n = profile_nstacks(p), *equal = calloc(n + 1, sizeof(*equal));
	struct hashmap names = {0}, lines = {0};
	int r = equal ? 0 : -ENOMEM;

	/* A stack's callers have smaller ids. */
	for (uint32_t i = 1; i < n && !r; i++) {
		const struct profile_frame *f = profile_frame_of(p, profile_stack_frame(p, i));
		uint32_t named = 0;

		r = extend(&names, equal[profile_stack_parent(p, i)], f->name, &named);
		if (!r)
			r = extend(&lines, named, f->srcline, &equal[i]);
	}
	for (size_t i = 0; i < threads->list.len && !r; i++)
		threads->list.v[i].equal = equal[threads->list.v[i].stack];
	hashmap_free(&names);
	hashmap_free(&lines);
	free(equal);
	return r;
}

int stacks_groups_make(const struct profile *profile, struct stacks_threads *threads,
		       struct stacks_groups *ret_groups)
{
	struct stacks_groups g = {.threads = calloc(threads->list.len, sizeof(*g.threads))};
	size_t n = 0;
	int r = g.threads ? find_equal(profile, threads) : -ENOMEM;

	for (size_t i = 0; i < threads->list.len && !r; i++)
		if (!threads->list.v[i].ended)
			g.threads[n++] = &threads->list.v[i];
	if (n)
		qsort(g.threads, n, sizeof(*g.threads), by_stack);
	for (size_t i = 0; i < n && !r; i++) {
		if (g.list.len && !compare_stacks(g.threads[i - 1], g.threads[i]))
			g.list.v[g.list.len - 1].n++;
		else
			r = vec_push(&g.list, ((struct stacks_group){g.threads + i, 1}));
	}
	if (r) {
		stacks_groups_free(&g);
		return r;
	}
	if (g.list.len)
		qsort(g.list.v, g.list.len, sizeof(*g.list.v), by_count);
	*ret_groups = g;
	return 0;
}

void stacks_groups_free(struct stacks_groups *g)
{
	free(g->threads);
	vec_free(&g->list);
}

static const char *state_word(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'T':
		return "stopped";
	case 't':
		return "stopped by a debugger";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "waiting";
	}
}

void stacks_group_state(const struct stacks_thread *thread, char text[STACKS_STATE_BYTES])
{
	bool waits = thread->how == STACKS_WAITING;
	char state = shown_state(thread);
	const char *word = state_word(state), *call = waits ? syscall_name(thread->number) : NULL,
		   *uninterruptible = state == 'D' ? " (uninterruptible)" : "";

	if (call)
		snprintf(text, STACKS_STATE_BYTES, "%s in %s%s", word, call, uninterruptible);
	else if (waits && thread->number >= 0)
		snprintf(text, STACKS_STATE_BYTES, "%s in system call %" PRId64 "%s", word,
			 thread->number, uninterruptible);
	else
		snprintf(text, STACKS_STATE_BYTES, "%s%s%s", word,
			 waits && strchr("SD", state) ? " for a page of memory" : "",
			 uninterruptible);
}
