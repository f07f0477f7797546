/* Names from the events with which the runtime lists its methods (dotnet/eventpipe/rundown.h). */
#include "profcpu/jit/way.h"

#include "profcpu/jit/collectible.h"
#include "profcpu/jit/events.h"
#include "profcpu/jit/stubs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct way {
	struct jit_target *target;
	struct jit_known known;
	struct jit_stubs stubs;
	struct jit_events *events;
	struct rundown *rundown; /* owned by events */
	bool listening;
	bool cut; /* its events have ended, though the process seemed to live */
};

static void end(void *state, uint64_t until_ns)
{
	struct way *w = state;
	struct port_error err;

	if (!w)
		return;
	/* A session also ends with its connection. */
	if (w->listening)
		(void)rundown_live_end(w->rundown, until_ns, &err);
	jit_events_free(w->events);
	jit_known_free(&w->known);
	jit_stubs_free(&w->stubs);
	free(w);
}

/* 0; -EBUSY: a list of all methods could crash the process; errors of jit_collectible. */
static int check_collectible(struct way *w, struct port_error *err, char *why)
{
	char what[JIT_COLLECTIBLE_BYTES];
	int r = jit_collectible(w->rundown, w->target->pid, w->target->until_ns, what, sizeof(what),
				err);

	if (r || !*what)
		return r;
	snprintf(why, JIT_WAY_WHY_BYTES,
		 "%s, and listing its methods could crash it then; --jit-names=rundown lists them "
		 "in any case, for 2 to 9 ms of its CPU time per thousand methods",
		 what);
	return -EBUSY;
}

/*
 * Requests code compiled from now on, then the code from before, so that nothing is missed between.
 */
static int begin_listening(struct way *w, struct port_error *err)
{
	int r = rundown_live_begin(w->rundown, w->target->lines, w->target->until_ns, err);

	w->listening = !r;
	return r ? r : rundown_snapshot(w->rundown, w->target->lines, w->target->until_ns, err);
}

static int begin(struct jit_target *t, void **ret_state, char *why)
{
	struct way *w = calloc(1, sizeof(*w));
	struct port_error err = {0};
	int r = w ? jit_events_new(t, &w->known, &w->events) : -ENOMEM;

	if (!r) {
		w->target = t;
		w->rundown = jit_events_rundown(w->events);
		r = t->automatic ? check_collectible(w, &err, why) : 0;
	}
	if (!r) {
		jit_methods_writer_way(t->out, jit_way_rundown.name);
		r = begin_listening(w, &err);
	}
	if (r) {
		end(w, t->until_ns);
		if (r != -EBUSY)
			(void)jit_events_explain(r, &err, why);
		/* A starting runtime has no port yet. */
		return r == -ENOENT || r == -ECONNREFUSED ? -EAGAIN : r;
	}
	*ret_state = w;
	return 0;
}

/* Reports events that were lost, damaged or not kept. */
static void report_lost(const struct way *w, char *why)
{
	struct rundown_stats stats = rundown_stats(w->rundown);
	char text[128];

	if (stats.refused)
		jit_way_add_why(why, "too little memory was left for its events: names may lack "
				     "assemblies; record with more memory");
	if (!stats.stream.lost && !stats.bad)
		return;
	snprintf(text, sizeof(text),
		 "%llu of its events were lost and %llu were damaged: names may be missing",
		 (unsigned long long)stats.stream.lost, (unsigned long long)stats.bad);
	jit_way_add_why(why, text);
}

/*
 * Handles the end of the events. A process that ends closes the connection slightly earlier; the
 * next step then sees its end.
 */
static int stream_ended(struct way *w, bool last)
{
	bool again = w->cut;

	w->cut = true;
	if (w->target->ended)
		return 0;
	return again ? -ENODATA : last ? -ESRCH : 0;
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	struct port_error err = {0};
	int r = rundown_live_read(w->rundown, &err);

	w->target->more = !r && rundown_live_has_more(w->rundown);
	if (!r && last && !w->target->ended) {
		w->listening = false;
		r = rundown_live_end(w->rundown, w->target->until_ns, &err);
	}
	if (r == -ENODATA)
		r = stream_ended(w, last);
	if (r == -ENODATA) {
		snprintf(why, JIT_WAY_WHY_BYTES, "its events have ended, though it runs on");
		return r;
	}
	if (!r && !w->target->ended && (last || !w->stubs.tried)) {
		jit_known_flush(&w->known);
		/* Methods are enough without stubs. */
		(void)jit_stubs_search(&w->stubs, w->target, &w->known, now_ns);
		if (last)
			jit_stubs_report(&w->stubs, &w->known, why);
	}
	if (!r && last)
		report_lost(w, why);
	return r && r != -ESRCH ? jit_events_explain(r, &err, why) : r;
}

const struct jit_way jit_way_rundown = {
	.name = "rundown",
	.outlives = true,
	.words = "the runtime's events",
	.begin = begin,
	.step = step,
	.end = end,
};
