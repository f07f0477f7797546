#include "profcpu/post/wall.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wall_thread {
	int32_t pid, tid;
	uint32_t thread; /* of the profile; PROFILE_NONE: not known yet */
	/* Sums of its rows; off_ns is without short_ns. */
	uint64_t running_ns, off_ns, short_ns, unknown_ns;
	uint64_t sampled;  /* weight of its samples */
	uint64_t shared;   /* weight of samples that have got their part of running_ns */
	uint64_t given_ns; /* sum of these parts */
	uint64_t waits_ns;
};

struct wall {
	struct profile *profile;
	VEC(struct wall_thread) threads;
	struct hashmap by_id;                                 /* pid and tid -> index of threads */
	uint32_t waits, on_cpu;                               /* events; PROFILE_NONE: none */
	uint32_t not_sampled, no_stack, short_waits, unknown; /* stacks */
	const struct profile_group *groups;                   /* of the profile */
	size_t ngroups;
	VEC(struct profile_group) out;
};

static uint64_t wall_key_of(int32_t pid, int32_t tid)
{
	return (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
}

static int wall_add_rows(struct wall *w, const struct offcpu_idx *offcpu)
{
	for (size_t i = 0; i < offcpu->nthreads; i++) {
		const struct offcpu_idx_thread *row = &offcpu->threads[i];
		uint64_t off_ns = row->blocked_ns + row->runnable_ns;
		uint32_t *index;
		int fresh, r = hashmap_entry(&w->by_id, wall_key_of(row->pid, row->tid),
					     (uint32_t)w->threads.len, &index, &fresh);

		if (!r && fresh)
			r = vec_push(&w->threads, ((struct wall_thread){.pid = row->pid,
									.tid = row->tid,
									.thread = PROFILE_NONE}));
		if (r)
			return r;
		struct wall_thread *t = &w->threads.v[*index];

		t->running_ns += row->running_ns;
		t->unknown_ns += row->unknown_ns;
		t->short_ns += row->short_ns;
		t->off_ns += off_ns > row->short_ns ? off_ns - row->short_ns : 0;
	}
	return 0;
}

static struct wall_thread *wall_thread_of(const struct wall *w, uint32_t thread)
{
	const struct profile_thread *t = profile_thread_of(w->profile, thread);
	const uint32_t *index = hashmap_get(&w->by_id, wall_key_of(t->pid, t->tid));

	return index ? &w->threads.v[*index] : NULL;
}

/*
 * Gives each thread of the rows a thread of the profile. One without samples and waits gets the
 * name
 * ":TID", as perf names threads without a name.
 */
static int wall_name_threads(struct wall *w)
{
	int r = 0;

	for (uint32_t i = 0; i < profile_nthreads(w->profile); i++) {
		struct wall_thread *t = wall_thread_of(w, i);

		if (t)
			t->thread = i;
	}
	for (size_t i = 0; i < w->threads.len && !r; i++) {
		struct wall_thread *t = &w->threads.v[i];
		struct profile_thread fresh = {.pid = t->pid, .tid = t->tid};
		char comm[16];
		int n = snprintf(comm, sizeof(comm), ":%d", t->tid);

		if (t->thread != PROFILE_NONE)
			continue;
		profile_taker(w->profile, t->pid);
		r = profile_text(w->profile, comm, (size_t)n, &fresh.comm);
		if (!r)
			r = profile_thread(w->profile, &fresh, &t->thread);
	}
	return r;
}

/* Whether the event follows the time on a CPU. */
static bool wall_is_time_event(const char *name)
{
	static const char *const begins[] = {
		"cpu-clock",       "task-clock",         "cycles",         "cpu-cycles",
		"ref-cycles",      "cpu/cycles",         "cpu/cpu-cycles", "cpu/ref-cycles",
		"cpu_core/cycles", "cpu_core/cpu-cycles"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static void wall_choose_event(struct wall *w)
{
	w->waits = profile_off_cpu_event(w->profile);
	w->on_cpu = PROFILE_NONE;
	for (uint32_t i = 0; i < profile_nevents(w->profile) && w->on_cpu == PROFILE_NONE; i++)
		if (i != w->waits &&
		    wall_is_time_event(profile_text_of(
			    w->profile, profile_event_of(w->profile, i)->name, NULL)))
			w->on_cpu = i;
}

static uint64_t wall_weight_of(const struct wall *w, const struct profile_group *g)
{
	return profile_event_of(w->profile, g->event)->has_period ? g->weight : g->samples;
}

static void wall_sum_up(struct wall *w)
{
	for (size_t i = 0; i < w->ngroups; i++) {
		const struct profile_group *g = &w->groups[i];
		struct wall_thread *t = wall_thread_of(w, g->thread);

		if (t && g->event == w->waits)
			t->waits_ns += g->weight;
		else if (t && g->event == w->on_cpu)
			t->sampled += wall_weight_of(w, g);
	}
}

static int wall_put(struct wall *w, const struct wall_thread *t, uint32_t stack, uint64_t ns,
		    uint32_t samples)
{
	return ns ? vec_push(&w->out,
			     ((struct profile_group){ns, samples, w->waits, t->thread, stack}))
		  : 0;
}

/*
 * The part of running_ns for samples of this weight. Rounds so that all parts sum up to running_ns.
 */
static uint64_t wall_share(struct wall_thread *t, uint64_t weight)
{
	t->shared += weight;
	uint64_t upto =
		t->sampled ? (uint64_t)((unsigned __int128)t->running_ns * t->shared / t->sampled)
			   : 0;
	uint64_t mine = upto - t->given_ns;

	t->given_ns = upto;
	return mine;
}

static int wall_put_groups(struct wall *w, struct idle *idle)
{
	int r = 0;

	for (size_t i = 0; i < w->ngroups && !r; i++) {
		const struct profile_group *g = &w->groups[i];
		struct wall_thread *t = wall_thread_of(w, g->thread);
		uint32_t stack = idle_stack(idle, g->event, g->thread, g->stack);

		stack = stack ? stack : w->no_stack;
		if (!t || (g->event != w->waits && g->event != w->on_cpu))
			continue;
		if (g->event == w->on_cpu)
			r = wall_put(w, t, stack, wall_share(t, wall_weight_of(w, g)), g->samples);
		else
			r = wall_put(w, t, stack, g->weight, g->samples);
	}
	return r;
}

/* Adds the time without samples. */
static int wall_put_rest(struct wall *w)
{
	int r = 0;

	for (size_t i = 0; i < w->threads.len && !r; i++) {
		const struct wall_thread *t = &w->threads.v[i];
		uint64_t missing_ns = t->off_ns > t->waits_ns ? t->off_ns - t->waits_ns : 0;

		r = wall_put(w, t, w->not_sampled, t->running_ns - t->given_ns, 1);
		if (!r)
			r = wall_put(w, t, w->short_waits, t->short_ns, 1);
		if (!r)
			r = wall_put(w, t, w->unknown, t->unknown_ns + missing_ns, 1);
	}
	return r;
}

static int wall_name_rest(struct wall *w)
{
	int r = profile_label(w->profile, WALL_NOT_SAMPLED, FRAME_LABEL, &w->not_sampled);

	if (!r)
		r = profile_label(w->profile, PROFILE_NO_STACK, FRAME_LABEL, &w->no_stack);
	if (!r)
		r = profile_label(w->profile, WALL_SHORT, FRAME_LABEL, &w->short_waits);
	return r ? r : profile_label(w->profile, WALL_UNKNOWN, FRAME_LABEL, &w->unknown);
}

int post_wall_groups(struct profile *profile, const struct offcpu_idx *offcpu, struct idle *idle,
		     struct profile_group **ret_groups, size_t *ret_n)
{
	struct wall w = {.profile = profile};
	int r = wall_add_rows(&w, offcpu);

	wall_choose_event(&w);
	if (!r)
		r = wall_name_threads(&w);
	if (!r)
		r = wall_name_rest(&w);
	w.groups = profile_groups(profile, &w.ngroups);
	if (!r) {
		wall_sum_up(&w);
		r = wall_put_groups(&w, idle);
	}
	if (!r)
		r = wall_put_rest(&w);
	hashmap_free(&w.by_id);
	vec_free(&w.threads);
	if (r) {
		vec_free(&w.out);
		return r;
	}
	*ret_groups = w.out.v;
	*ret_n = w.out.len;
	return 0;
}
