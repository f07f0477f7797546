#include "profcpu/jit_way.h"

#include "base/clock.h"
#include "eventpipe/perf_map.h"
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
};

static void take_line(struct way *w, char *p, char *eol)
{
	struct perfmap_entry entry;
	struct jit_method method = {.source = SYMBOL_PERFMAP};

	if (w->skipping || (!perfmap_line(p, eol, &entry) && !perfmap_line_behind_damage(p, eol, &entry))) {
		w->skipping = false;
		return;
	}
	method.start = entry.start;
	method.bytes = entry.bytes;
	method.name = entry.name;
	method.len = (uint32_t)strlen(entry.name);
	jit_methods_writer_found(w->target->out, &method);
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

/* What the target has written since the last time. 0 or -errno. */
static int take_new(struct way *w, uint64_t now_ns)
{
	bool first = true;

	while (w->offset < WAY_BYTES_MAX) {
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
	/* What could not be undone is found by the next profcpu, by its mark. */
	if (perf_map_end(w->target->opener, w->map, until_ns, &err))
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", err.text);
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
	jit_methods_writer_way(t->out, jit_way_perf_map.name);
	*ret_state = w;
	return 0;
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	int r = take_new(w, now_ns);

	(void)last;
	if (r)
		snprintf(why, JIT_WAY_WHY_BYTES, "its perf map could not be read to the end: %s", strerror(-r));
	return r;
}

const struct jit_way jit_way_perf_map = {
	.name = "perfmap",
	.words = "its perf map",
	.begin = begin,
	.step = step,
	.end = end,
};
