/* Names from the perf map that the runtime writes on request (dotnet/eventpipe/perf_map.h). */
#include "profcpu/jit/way.h"

#include "base/clock.h"
#include "dotnet/eventpipe/perf_map.h"
#include "profcpu/jit/stubs.h"
#include "symbols/core/symbol.h"
#include "symbols/jit/perfmap.h"
#include "symbols/names/managed_name.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAY_CHUNK ((size_t)1 << 20)
#define WAY_BYTES_MAX ((uint64_t)512 << 20) /* bytes of a map that are read */

struct way {
	struct jit_target *target;
	struct perf_map *map;
	char *chunk;      /* WAY_CHUNK bytes and one more */
	size_t held;      /* bytes of an unfinished line at the start of chunk */
	uint64_t offset;  /* in the map, after the held bytes */
	bool skipping;    /* within a line that is too long */
	uint64_t damaged; /* lines of methods for which the map has no complete line */
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
	whole = perfmap_parse_line(p, eol, &entry);
	w->damaged += !whole;
	if (!whole && !perfmap_parse_damaged_line(p, eol, &entry))
		return;
	method.start = entry.start;
	method.bytes = entry.bytes;
	method.name = entry.name;
	method.len = (uint32_t)strlen(entry.name);
	jit_methods_writer_found(w->target->out, &method);
	/* Stubs do not count as known: the map may have only the first part of one. */
	if (!managed_name_is_stub(entry.name, method.len))
		jit_known_add(&w->known, entry.start, entry.bytes);
}

/* Takes the complete lines of the chunk, and keeps the rest. */
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

/*
 * Takes what the target has written since the last step. Returns 0; -ETIMEDOUT: a part of it;
 * -errno.
 */
static int take_new(struct way *w, uint64_t now_ns)
{
	bool first = true;

	while (w->offset < WAY_BYTES_MAX) {
		if (!first && clock_monotonic_ns() >= w->target->until_ns) {
			jit_methods_writer_partial(w->target->out);
			return -ETIMEDOUT;
		}
		ssize_t n = pread(perf_map_fd(w->map), w->chunk + w->held, WAY_CHUNK - w->held,
				  (off_t)w->offset);

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
		perf_map_set_replaced(w->map);
	bool is_ours = perf_map_way(w->map) == PERF_MAP_OURS;

	/* The next profcpu finds by its mark what could not be undone. */
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
		/* A starting runtime has no port yet. */
		return r == -ENOENT || r == -ECONNREFUSED ? -EAGAIN : r;
	}
	atomic_fetch_add(t->maps_on, perf_map_way(w->map) == PERF_MAP_OURS);
	jit_methods_writer_way(t->out, jit_way_perf_map.name);
	*ret_state = w;
	return 0;
}

/*
 * Reports damaged lines: the runtime damages lines of methods whose names are not all ASCII. Its
 * events have those names. They are not requested here, because listing all methods while the
 * runtime unloads collectible assemblies can crash it.
 */
static void report_damaged(const struct way *w, char *why)
{
	unsigned long long n = w->damaged;

	snprintf(why, JIT_WAY_WHY_BYTES,
		 "%llu line%s of it %s damaged, usually by names that are not ASCII; use "
		 "--jit-names=rundown to get these",
		 n, n == 1 ? "" : "s", n == 1 ? "is" : "are");
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
		/* A killed process leaves half a line. */
		w->damaged += w->held && !w->skipping && !w->target->ended;
		if (w->damaged)
			report_damaged(w, why);
	}
	if (!w->target->ended && (last || !w->stubs.tried)) {
		jit_known_flush(&w->known);
		/* Methods are enough without stubs. */
		r = jit_stubs_search(&w->stubs, w->target, &w->known, now_ns);
		if (last)
			jit_stubs_report(&w->stubs, &w->known, why);
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
