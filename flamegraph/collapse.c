#include "flamegraph/collapse.h"

#include "base/cleanup.h"
#include "flamegraph/collapse_walk.h"
#include "profile/script_line.h"

#include <errno.h>
#include <string.h>

#define COLLAPSE_NO_ROOT UINT32_MAX /* leave out the thread's samples */

enum collapse_event {
	COLLAPSE_EVENT_UNSEEN, /* the script sees no event: it passes each filter and counts 1 */
	COLLAPSE_EVENT_FOLDED,
	COLLAPSE_EVENT_FILTERED,
};

struct collapse {
	struct profile *profile;
	const struct collapse_options *options;
	struct collapse_stats *stats;
	const struct profile_group *groups;
	size_t ngroups;
	uint8_t *events;     /* enum collapse_event by event */
	struct intern roots; /* names of processes at the start of lines */
	uint32_t *root_of;   /* by thread: index of roots, or COLLAPSE_NO_ROOT */
	/* Some event has stacks. Events without stacks are then folded only on request. */
	bool has_stacks;
	struct outbuf scratch;
};

/* The event's name as the script sees it, in scratch; len 0: none. */
static struct script_part collapse_event_name(struct collapse *c, uint32_t event)
{
	const struct profile_event *e = profile_event_of(c->profile, event);
	struct script_event seen;

	c->scratch.len = 0;
	if (c->options->names == COLLAPSE_FULL) {
		uint32_t len;
		const char *name = profile_text_of(c->profile, e->name, &len);

		return (struct script_part){name, len};
	}
	if (!e->timeless)
		outbuf_char(&c->scratch, ':');
	script_line_put_event(&c->scratch, c->profile, e, 1);
	if (c->scratch.error || !script_line_event(c->scratch.data, c->scratch.len, &seen))
		return (struct script_part){0};
	return seen.name;
}

static bool collapse_part_is(struct script_part p, const char *text)
{
	return p.at && p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

/* The event to fold by default. */
static const char *collapse_first_event(struct collapse *c)
{
	if (c->options->default_event)
		return c->options->default_event;
	for (size_t i = 0; i < c->ngroups; i++) {
		const struct profile_event *e = profile_event_of(c->profile, c->groups[i].event);

		if (collapse_event_name(c, c->groups[i].event).at && !e->off_cpu &&
		    !(e->stackless && c->has_stacks))
			return profile_text_of(c->profile, e->name, NULL);
	}
	return NULL;
}

static int collapse_choose_events(struct collapse *c)
{
	const char *filter = c->options->event_filter;

	bool requested = filter && *filter;

	c->has_stacks = profile_has_stacks(c->profile);
	if (!requested)
		filter = collapse_first_event(c);
	c->stats->event = filter;
	for (uint32_t e = 0; e < profile_nevents(c->profile); e++) {
		struct script_part name = collapse_event_name(c, e);

		if (c->has_stacks && !requested && profile_event_of(c->profile, e)->stackless)
			c->events[e] = COLLAPSE_EVENT_FILTERED;
		else if (!name.at)
			c->events[e] = COLLAPSE_EVENT_UNSEEN;
		else if (filter && collapse_part_is(name, filter))
			c->events[e] = COLLAPSE_EVENT_FOLDED;
		else
			c->events[e] = COLLAPSE_EVENT_FILTERED;
	}
	return c->scratch.error;
}

static void collapse_put_full_comm(struct collapse *c, const struct profile_thread *thread)
{
	uint32_t len;
	const char *comm = profile_text_of(c->profile, thread->comm, &len);
	struct outbuf *out = &c->scratch;

	if (thread->other_pid_ns)
		outbuf_str(out, PROFILE_OTHER_PID_NS);
	else
		frame_names_put_full(out, comm, len);
	if (c->options->include_tid)
		outbuf_printf(out, "-%d/%d", thread->pid, thread->tid);
	else if (c->options->include_pid)
		outbuf_printf(out, "-%d", thread->pid);
	frame_names_end_full(out);
}

static void collapse_put_part(struct outbuf *out, char before, struct script_part part)
{
	outbuf_char(out, before);
	outbuf_put(out, part.at, part.len);
}

/* Writes the process name that the script shows for a thread. False: it shows none. */
static bool collapse_put_perf_comm(struct collapse *c, const struct profile_thread *thread)
{
	struct outbuf *out = &c->scratch, line = outbuf_to(-1);
	struct script_header h;
	bool is_header;

	script_line_put_thread(&line, c->profile, thread);
	is_header = !line.error && *line.data != '#' && script_line_header(line.data, line.len, &h);
	if (is_header) {
		outbuf_put(out, h.comm.at, h.comm.len);
		if (c->options->include_pid || c->options->include_tid)
			collapse_put_part(out, '-', h.pid);
		if (c->options->include_tid)
			collapse_put_part(out, '/', h.tid);
	}
	for (size_t i = 0; !out->error && i < out->len; i++)
		if (out->data[i] == ' ')
			out->data[i] = '_';
	if (line.error)
		out->error = line.error;
	outbuf_close(&line);
	return is_header;
}

/* Finds the root of a thread: the process name at the start of its lines. */
static int collapse_root(struct collapse *c, uint32_t thread, uint32_t *ret_root)
{
	const struct profile_thread *t = profile_thread_of(c->profile, thread);
	bool has_name = true;

	c->scratch.len = 0;
	if (c->options->names == COLLAPSE_FULL)
		collapse_put_full_comm(c, t);
	else
		has_name = collapse_put_perf_comm(c, t);
	*ret_root = COLLAPSE_NO_ROOT;
	if (c->scratch.error || !has_name)
		return c->scratch.error;
	return intern_put(&c->roots, c->scratch.len ? c->scratch.data : "", c->scratch.len,
			  ret_root);
}

static uint64_t collapse_add(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* The root of a group's lines; COLLAPSE_NO_ROOT: it is not folded. */
static uint32_t collapse_root_of(const struct collapse *c, const struct profile_group *g)
{
	return c->events[g->event] == COLLAPSE_EVENT_FILTERED ? COLLAPSE_NO_ROOT
							      : c->root_of[g->thread];
}

static uint64_t collapse_weight(const struct collapse *c, const struct profile_group *g)
{
	return c->events[g->event] == COLLAPSE_EVENT_UNSEEN ||
			       !profile_event_of(c->profile, g->event)->has_period
		       ? g->samples
		       : g->weight;
}

static void collapse_count(struct collapse *c, const struct profile_group *g)
{
	const struct profile_event *event = profile_event_of(c->profile, g->event);
	struct collapse_stats *stats = c->stats;

	if (collapse_root_of(c, g) != COLLAPSE_NO_ROOT) {
		stats->samples += g->samples;
		stats->weight = collapse_add(stats->weight, collapse_weight(c, g));
	} else if (c->events[g->event] != COLLAPSE_EVENT_FILTERED) {
		stats->nameless_samples += g->samples;
	} else if (!event->wakeup) { /* wakeups repeat the waits of another event */
		stats->filtered_samples += g->samples;
		stats->other_event = profile_text_of(c->profile, event->name, NULL);
	}
}

static int collapse_prepare(struct collapse *c)
{
	uint32_t nthreads = profile_nthreads(c->profile);
	int r = 0;

	c->root_of = malloc(((size_t)nthreads + 1) * sizeof(*c->root_of));
	c->events = malloc((size_t)profile_nevents(c->profile) + 1);
	if (!c->root_of || !c->events)
		return -ENOMEM;
	c->groups = c->options->groups;
	c->ngroups = c->options->ngroups;
	if (!c->groups)
		c->groups = profile_groups(c->profile, &c->ngroups);
	for (uint32_t i = 0; i < nthreads && !r; i++)
		r = collapse_root(c, i, &c->root_of[i]);
	if (!r)
		r = collapse_choose_events(c);
	for (size_t i = 0; i < c->ngroups && !r; i++)
		collapse_count(c, &c->groups[i]);
	return r;
}

/* Sorts the groups by root and passes them to the walk. */
static int collapse_roots(struct collapse *c, struct collapse_walk *walk)
{
	size_t nroots = c->roots.len;
	AUTO_FREE size_t *starts = calloc(nroots + 2, sizeof(*starts));
	AUTO_FREE struct collapse_stack *stacks = malloc((c->ngroups + 1) * sizeof(*stacks));

	if (!starts || !stacks)
		return -ENOMEM;
	for (size_t i = 0; i < c->ngroups; i++) {
		uint32_t root = collapse_root_of(c, &c->groups[i]);

		if (root != COLLAPSE_NO_ROOT)
			starts[root + 2]++;
	}
	for (size_t i = 2; i < nroots + 2; i++)
		starts[i] += starts[i - 1];
	for (size_t i = 0; i < c->ngroups; i++) {
		const struct profile_group *g = &c->groups[i];
		uint32_t root = collapse_root_of(c, g);

		if (root != COLLAPSE_NO_ROOT)
			stacks[starts[root + 1]++] = (struct collapse_stack){
				collapse_weight(c, g),
				idle_stack(c->options->idle, g->event, g->thread, g->stack)};
	}
	return collapse_walk_roots(walk, &c->roots, starts, stacks);
}

int collapse_write(struct profile *profile, const struct collapse_options *options,
		   struct outbuf *out, struct collapse_stats *ret_stats)
{
	struct collapse_stats stats = {0};
	struct collapse c = {
		.profile = profile, .options = options, .stats = &stats, .scratch = outbuf_to(-1)};
	struct collapse_walk walk;
	int r = collapse_prepare(&c);

	if (!r) {
		r = collapse_walk_init(&walk, profile, options, out);
		if (!r)
			r = collapse_roots(&c, &walk);
		collapse_walk_free(&walk);
	}
	free(c.events);
	free(c.root_of);
	intern_free(&c.roots);
	outbuf_close(&c.scratch);
	if (!r)
		*ret_stats = stats;
	return r ? r : out->error;
}
