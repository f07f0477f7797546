#include "profcpu/jit_stubs.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/memory.h"
#include "container/proc.h"
#include "symbols/clr_barriers.h"
#include "symbols/clr_process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STUBS_CHUNK ((size_t)1 << 20)
#define STUBS_SEEN (2 * (size_t)CLR_STUB_CODE_MAX) /* so much is in the chunk behind where a look goes on */

/* What a look has in hand. */
struct look {
	struct jit_target *target;
	unsigned char *chunk;
	uint64_t at, end; /* what of memory is in the chunk */
	uint64_t bytes, until_ns;
	bool cut; /* by a limit; what is behind was not looked at */
	VEC(struct clr_stub_code) found;
	uint64_t behind; /* the last one found */
	struct clr_barriers barriers;
	bool has_barriers; /* there is one copy of them */
	bool sought; /* for the runtime's module */
	uint64_t module; /* an addr in it; 0: there is none */
};

static int take_stub(void *ctx, const struct clr_stub_code *stub)
{
	struct look *l = ctx;

	l->behind = stub->start + stub->bytes;
	if (l->found.len >= JIT_STUBS_MAX)
		return -E2BIG;
	return vec_push(&l->found, *stub);
}

/* Puts [at, ...) up to a whole chunk of a mapping that ends at end in hand. 0; -E2BIG: a limit is reached; -ESRCH, -errno. */
static int read_chunk(struct look *l, uint64_t at, uint64_t end)
{
	size_t n = end - at < STUBS_CHUNK ? (size_t)(end - at) : STUBS_CHUNK;
	int r;

	if (l->bytes + n > JIT_STUBS_BYTES_MAX || clock_monotonic_ns() > l->until_ns)
		return -E2BIG;
	r = memory_read_pages(l->target->pid, at, l->chunk, n, NULL);
	l->bytes += n;
	l->at = at;
	l->end = at + n;
	return r;
}

/* Stubs of [start, end), which no method covers, in a mapping that ends at map_end. */
static int look_at_gap(struct look *l, uint64_t start, uint64_t end, uint64_t map_end)
{
	int r = 0;

	for (start = (start + 7) / 8 * 8; !r && start < end;) {
		uint64_t seen = end - start < STUBS_SEEN ? end : start + STUBS_SEEN, stop;

		if (start < l->at || seen > l->end)
			r = read_chunk(l, start, map_end);
		if (r)
			break;
		stop = end < l->end ? end : l->end;
		l->behind = start;
		r = clr_stub_code_scan(l->chunk + (start - l->at), (size_t)(stop - start), start, take_stub, l);
		if (stop == end)
			break;
		/* One that begins near the end of the chunk is not whole in it. */
		start = stop - CLR_STUB_CODE_MAX > l->behind ? stop - CLR_STUB_CODE_MAX : l->behind;
		start = (start + 7) / 8 * 8;
	}
	return r;
}

/* Where the runtime's code can be: in its double mapping, or where that is switched off in memory without a name. */
static bool is_runtime_code(const struct proc_map *map)
{
	static const char doubled[] = "/memfd:doublemapper";

	return (map->prot & PROT_EXEC) && (!map->path_len || !strncmp(map->path, doubled, sizeof(doubled) - 1));
}

/* The runtime's module is looked for once: without it there are no write barriers to compare with. 0; -E2BIG: a limit is reached; -ESRCH,
 * -ENOMEM. */
static int find_module(struct look *l, const char *maps)
{
	AUTO_FREE char *text = NULL;
	struct clr_anchors anchors;
	int r;

	if (l->sought)
		return 0;
	l->sought = true;
	text = strdup(maps);
	r = text ? clr_process_find(l->target->pid, l->until_ns, text, &anchors) : -ENOMEM;
	if (!r)
		l->module = clr_anchors_any(&anchors);
	return r == -ETIMEDOUT ? -E2BIG : r == -ESRCH || r == -ENOMEM ? r : 0;
}

/* The copy of the write barriers is the first that the runtime allocates there, in a mapping of its own. 1, 0; errors of find_module. */
static int is_barriers(struct look *l, const struct jit_known *known, const char *maps, const struct proc_map *map)
{
	struct clr_io io = clr_process_io(l->target->pid);
	uint64_t start, end;
	int r;

	if (l->has_barriers || !map->path_len || map->pgoff || !jit_known_gap(known, map->start, map->end, &start, &end) || start != map->start ||
	    end != map->end)
		return 0;
	r = find_module(l, maps);
	l->has_barriers = !r && l->module && clr_barriers_is(&l->barriers, &io, maps, l->module, start, end);
	return r ? r : l->has_barriers;
}

static int look_at_all(struct look *l, const struct jit_known *known, const char *maps)
{
	static const char barriers[] = CLR_BARRIERS_NAME;
	AUTO_FREE char *text = strdup(maps);
	struct proc_map map;
	char *cursor = text;
	int r = text ? 0 : -ENOMEM;

	while (!r && proc_map_next(&cursor, &map)) {
		uint64_t start = map.start, end;

		if (!is_runtime_code(&map))
			continue;
		/* There can be mappings without number. */
		if (clock_monotonic_ns() > l->until_ns) {
			r = -E2BIG;
			break;
		}
		r = is_barriers(l, known, maps, &map);
		if (r < 0)
			break;
		if (r) {
			r = take_stub(l, &(struct clr_stub_code){start, (uint32_t)(map.end - start), barriers});
			continue;
		}
		l->at = l->end = 0;
		for (; !r && jit_known_gap(known, start, map.end, &start, &end); start = end)
			r = look_at_gap(l, start, end, map.end);
	}
	l->cut = r == -E2BIG;
	return l->cut ? 0 : r;
}

static bool is_same(const struct clr_stub_code *a, const struct clr_stub_code *b)
{
	return a->start == b->start && a->bytes == b->bytes && a->name == b->name;
}

/* Both are by address: what is in one only is gone or new. */
static void write_changes(const struct jit_stubs *s, struct look *l, uint64_t now_ns)
{
	struct jit_methods_writer *out = l->target->out;
	size_t n = l->found.len;

	for (size_t i = 0, k = 0; i < s->found.len; i++) {
		const struct clr_stub_code *old = &s->found.v[i];

		while (k < n && l->found.v[k].start < old->start)
			k++;
		if ((k < n && is_same(&l->found.v[k], old)))
			continue;
		if (l->cut && k == n)
			break;
		jit_methods_writer_gone(out, SYMBOL_MEMORY, old->start, now_ns);
	}
	for (size_t i = 0, k = 0; i < n; i++) {
		const struct clr_stub_code *new = &l->found.v[i];
		struct jit_method method = {
			.start = new->start,
			.bytes = new->bytes,
			.source = SYMBOL_MEMORY,
			.from_ns = s->looked_ns,
			.until_ns = UINT64_MAX,
			.name = new->name,
			.len = (uint32_t)strlen(new->name),
		};

		while (k < s->found.len && s->found.v[k].start < new->start)
			k++;
		if (k >= s->found.len || !is_same(&s->found.v[k], new))
			jit_methods_writer_add(out, &method);
	}
}

int jit_stubs_look(struct jit_stubs *s, struct jit_target *t, const struct jit_known *known, uint64_t now_ns)
{
	struct look l = {.target = t, .until_ns = clock_monotonic_ns() + JIT_STUBS_LOOK_NS};
	AUTO_FREE char *maps = NULL;
	size_t len;
	int r;

	if (l.until_ns > t->until_ns)
		l.until_ns = t->until_ns;
	r = proc_read(t->pid, 0, "maps", PROC_MAPS_MAX, &maps, &len);
	l.chunk = r ? NULL : malloc(STUBS_CHUNK);
	if (!r && !l.chunk)
		r = -ENOMEM;
	if (!r)
		r = look_at_all(&l, known, maps);
	free(l.chunk);
	clr_barriers_free(&l.barriers);
	s->tried = true;
	s->error = r;
	if (r) {
		vec_free(&l.found);
		return r;
	}
	write_changes(s, &l, now_ns);
	s->looked_ns = now_ns;
	s->cut = l.cut;
	free(s->found.v);
	s->found.v = l.found.v;
	s->found.len = l.found.len;
	s->found.cap = l.found.cap;
	return 0;
}

void jit_stubs_say(const struct jit_stubs *s, const struct jit_known *known, char *why)
{
	char text[128];

	if (s->error && s->error != -ESRCH) {
		snprintf(text, sizeof(text), "the runtime's stubs could not be looked for: %s", strerror(-s->error));
		jit_way_add_why(why, text);
	}
	if (s->cut || known->over)
		jit_way_add_why(why, "not all of its memory was searched for the runtime's stubs: there is too much of it");
}

void jit_stubs_free(struct jit_stubs *s)
{
	vec_free(&s->found);
}
