#include "profcpu/jit_way.h"

#include "base/clock.h"
#include "eventpipe/perf_map.h"
#include "profcpu/jit_stubs.h"
#include "symbols/managed_name.h"
#include "symbols/perfmap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAY_CHUNK ((size_t)1 << 20)
#define WAY_BYTES_MAX ((uint64_t)512 << 20) /* of a map that are taken over */

struct way {
	struct jit_target *target;
	struct perf_map *map;
	char *chunk; /* of WAY_CHUNK bytes and one more */
	size_t held; /* bytes of it: the beginning of a line whose end is not written yet */
	uint64_t offset; /* in the map, behind what is held */
	bool skipping; /* in a line that is too long */
	uint64_t damaged; /* lines: methods of which the map has no whole one */
	struct jit_known known;
	struct jit_stubs stubs;
};

static void take_line(struct way *w, char *p, char *eol)
{
	struct perfmap_entry entry;
	struct jit_method method = {.source = SYMBOL_PERFMAP};
	bool whole;

	if (w->skipping) {
		w->skipping = false;
		return;
	}
	whole = perfmap_line(p, eol, &entry);
	w->damaged += !whole;
	if (!whole && !perfmap_line_behind_damage(p, eol, &entry))
		return;
	method.start = entry.start;
	method.bytes = entry.bytes;
	method.name = entry.name;
	method.len = (uint32_t)strlen(entry.name);
	jit_methods_writer_found(w->target->out, &method);
	/* Stubs are not: what the map has of one may be its beginning only. */
	if (!managed_name_is_stub(entry.name, method.len))
		jit_known_add(&w->known, entry.start, entry.bytes);
}

/* Takes the whole lines of the chunk, and keeps the rest of it. */
static void take_lines(struct way *w)
{
	char *p = w->chunk, *end = w->chunk + w->held, *eol;

	for (; (eol = memchr(p, '\n', (size_t)(end - p))); p = eol + 1)
		take_line(w, p, eol);
	w->held = (size_t)(end - p);
	if (w->held == WAY_CHUNK) {
		w->skipping = true;
		w->held = 0;
	}
	memmove(w->chunk, p, w->held);
}

/* What the target has written since the last time. 0; -ETIMEDOUT: not all of it; -errno. */
static int take_new(struct way *w, uint64_t now_ns)
{
	bool first = true;

	while (w->offset < WAY_BYTES_MAX) {
		if (!first && clock_monotonic_ns() >= w->target->until_ns) {
			jit_methods_writer_partial(w->target->out);
			return -ETIMEDOUT;
		}
		ssize_t n = pread(perf_map_fd(w->map), w->chunk + w->held, WAY_CHUNK - w->held, (off_t)w->offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		if (first)
			jit_methods_writer_scan(w->target->out, now_ns);
		first = false;
		w->offset += (size_t)n;
		w->held += (size_t)n;
		take_lines(w);
	}
	return w->offset < WAY_BYTES_MAX ? 0 : -EFBIG;
}

static void end(void *state, uint64_t until_ns, char *why)
{
	struct way *w = state;
	struct perf_map_error err = {0};

	if (!w)
		return;
	if (w->target->replaced)
		perf_map_is_replaced(w->map);
	bool is_ours = perf_map_way(w->map) == PERF_MAP_OURS;

	/* What could not be undone is found by the next profcpu, by its mark. */
	if (perf_map_end(w->target->opener, w->map, until_ns, &err))
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", err.text);
	else
		atomic_fetch_sub(w->target->maps_on, is_ours);
	jit_known_free(&w->known);
	jit_stubs_free(&w->stubs);
	free(w->chunk);
	free(w);
}

static int begin(struct jit_target *t, void **ret_state, char *why)
{
	struct perf_map_error err = {0};
	struct way *w = calloc(1, sizeof(*w));
	int r = w ? 0 : -ENOMEM;

	if (w)
		w->chunk = malloc(WAY_CHUNK + 1);
	if (!r && !w->chunk)
		r = -ENOMEM;
	if (!r) {
		w->target = t;
		r = perf_map_begin(t->opener, t->pid, t->until_ns, &w->map, &err);
	}
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", err.text[0] ? err.text : strerror(-r));
		if (w)
			free(w->chunk);
		free(w);
		/* A runtime that starts has no port yet. */
		return r == -ENOENT || r == -ECONNREFUSED ? -EAGAIN : r;
	}
	atomic_fetch_add(t->maps_on, perf_map_way(w->map) == PERF_MAP_OURS);
	jit_methods_writer_way(t->out, jit_way_perf_map.name);
	*ret_state = w;
	return 0;
}

/*
 * The runtime damages lines of methods with names of other letters than ASCII. Its events have them, but it is not made to go through all
 * its methods once more without need: while it unloads collectible assemblies that can crash it.
 */
static void say_damaged(const struct way *w, char *why)
{
	unsigned long long n = w->damaged;

	snprintf(why, JIT_WAY_WHY_BYTES, "%llu line%s of it %s damaged, as by names that are not ASCII; --jit-names=rundown has them", n,
		 n == 1 ? "" : "s", n == 1 ? "is" : "are");
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	int r = take_new(w, now_ns);

	/* The next step takes the rest. */
	if (r == -ETIMEDOUT && !last)
		return 0;
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "its perf map could not be read to the end: %s",
			 r == -ETIMEDOUT ? "there was no time" : strerror(-r));
		return r;
	}
	if (last) {
		/* One that was killed leaves half a line. */
		w->damaged += w->held && !w->skipping && !w->target->ended;
		if (w->damaged)
			say_damaged(w, why);
	}
	if (!w->target->ended && (last || !w->stubs.tried)) {
		jit_known_settle(&w->known);
		/* Without them there are the methods. */
		r = jit_stubs_look(&w->stubs, w->target, &w->known, now_ns);
		if (last)
			jit_stubs_say(&w->stubs, &w->known, why);
	}
	return r == -ESRCH ? r : 0;
}

const struct jit_way jit_way_perf_map = {
	.name = "perfmap",
	.outlives = true,
	.words = "its perf map",
	.begin = begin,
	.step = step,
	.end = end,
};
