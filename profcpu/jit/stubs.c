#include "profcpu/jit/stubs.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "container/memory.h"
#include "container/proc.h"
#include "dotnet/coreclr/barriers.h"
#include "dotnet/coreclr/runtime.h"
#include "symbols/core/symbol.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STUBS_CHUNK ((size_t)1 << 20)
/* Bytes that the chunk must hold from the place where the search continues; else it is read anew.
 */
#define STUBS_SEEN (2 * (size_t)CLR_STUB_CODE_MAX)

/* State of one search. */
struct search {
	struct jit_target *target;
	unsigned char *chunk;
	uint64_t at, end; /* addresses that the chunk holds */
	uint64_t bytes, until_ns;
	bool cut; /* a limit ended it before the end of memory */
	VEC(struct clr_stub_code) found;
	uint64_t last_end; /* end of the last stub found */
	struct clr_barriers barriers;
	bool has_barriers;    /* the one copy of the write barriers was found */
	bool module_searched; /* the runtime's module was searched for */
	uint64_t module;      /* an addr in the runtime's module; 0: not found */
};

static int take_stub(void *ctx, const struct clr_stub_code *stub)
{
	struct search *l = ctx;

	l->last_end = stub->start + stub->bytes;
	if (l->found.len >= JIT_STUBS_MAX)
		return -E2BIG;
	return vec_push(&l->found, *stub);
}

/*
 * Reads a chunk at [at, ...) from a mapping that ends at end. Returns 0; -E2BIG: a limit is
 * reached; -ESRCH, -errno.
 */
static int read_chunk(struct search *l, uint64_t at, uint64_t end)
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

/* Finds stubs in [start, end), which no method covers, in a mapping that ends at map_end. */
static int search_gap(struct search *l, uint64_t start, uint64_t end, uint64_t map_end)
{
	int r = 0;

	for (start = (start + 7) / 8 * 8; !r && start < end;) {
		uint64_t seen = end - start < STUBS_SEEN ? end : start + STUBS_SEEN, stop;

		if (start < l->at || seen > l->end)
			r = read_chunk(l, start, map_end);
		if (r)
			break;
		stop = end < l->end ? end : l->end;
		l->last_end = start;
		r = clr_stub_code_scan(l->chunk + (start - l->at), (size_t)(stop - start), start,
				       take_stub, l);
		if (stop == end)
			break;
		/* A stub that begins near the end of the chunk is not whole in it. */
		start = stop - CLR_STUB_CODE_MAX > l->last_end ? stop - CLR_STUB_CODE_MAX
							       : l->last_end;
		start = (start + 7) / 8 * 8;
	}
	return r;
}

/*
 * Whether a mapping may hold the runtime's code: its double mapping, or without that, memory
 * without a name.
 */
static bool is_runtime_code(const struct proc_map *map)
{
	static const char doubled[] = "/memfd:doublemapper";

	return (map->prot & PROT_EXEC) &&
	       (!map->path_len || !strncmp(map->path, doubled, sizeof(doubled) - 1));
}

/*
 * Finds the runtime's module, once; without it no write barriers can be compared. Returns 0;
 * -E2BIG: a limit is reached; -ESRCH, -ENOMEM.
 */
static int find_module(struct search *l, const char *maps)
{
	AUTO_FREE char *text = NULL;
	struct clr_anchors anchors;
	int r;

	if (l->module_searched)
		return 0;
	l->module_searched = true;
	text = strdup(maps);
	r = text ? clr_runtime_locate(l->target->pid, l->until_ns, text, &anchors) : -ENOMEM;
	if (!r)
		l->module = clr_anchors_any(&anchors);
	return r == -ETIMEDOUT ? -E2BIG : r == -ESRCH || r == -ENOMEM ? r : 0;
}

/*
 * Whether a mapping is the copy of the write barriers, the first that the runtime allocates there,
 * in a mapping of its own. 1, 0; errors of find_module.
 */
static int find_barriers(struct search *l, const struct jit_known *known, const char *maps,
			 const struct proc_map *map)
{
	struct clr_io io = clr_runtime_io(l->target->pid);
	uint64_t start, end;
	int r;

	if (l->has_barriers || !map->path_len || map->pgoff ||
	    !jit_known_find_gap(known, map->start, map->end, &start, &end) || start != map->start ||
	    end != map->end)
		return 0;
	r = find_module(l, maps);
	l->has_barriers = !r && l->module &&
			  clr_barriers_is_copy(&l->barriers, &io, maps, l->module, start, end);
	return r ? r : l->has_barriers;
}

static int search_all(struct search *l, const struct jit_known *known, const char *maps)
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
		/* The number of mappings has no limit. */
		if (clock_monotonic_ns() > l->until_ns) {
			r = -E2BIG;
			break;
		}
		r = find_barriers(l, known, maps, &map);
		if (r < 0)
			break;
		if (r) {
			r = take_stub(l, &(struct clr_stub_code){start, (uint32_t)(map.end - start),
								 barriers});
			continue;
		}
		l->at = l->end = 0;
		for (; !r && jit_known_find_gap(known, start, map.end, &start, &end); start = end)
			r = search_gap(l, start, end, map.end);
	}
	l->cut = r == -E2BIG;
	return l->cut ? 0 : r;
}

static bool is_same(const struct clr_stub_code *a, const struct clr_stub_code *b)
{
	return a->start == b->start && a->bytes == b->bytes && a->name == b->name;
}

/* Writes the stubs that are new and gone. Both lists are sorted by address. */
static void write_changes(const struct jit_stubs *s, struct search *l, uint64_t now_ns)
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
			.from_ns = s->searched_ns,
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

int jit_stubs_search(struct jit_stubs *s, struct jit_target *t, const struct jit_known *known,
		     uint64_t now_ns)
{
	struct search l = {.target = t, .until_ns = clock_monotonic_ns() + JIT_STUBS_SEARCH_NS};
	AUTO_FREE char *maps = NULL;
	int r;

	if (l.until_ns > t->until_ns)
		l.until_ns = t->until_ns;
	r = proc_read_maps(t->pid, &maps);
	l.chunk = r ? NULL : malloc(STUBS_CHUNK);
	if (!r && !l.chunk)
		r = -ENOMEM;
	if (!r)
		r = search_all(&l, known, maps);
	free(l.chunk);
	clr_barriers_free(&l.barriers);
	s->tried = true;
	s->error = r;
	if (r) {
		vec_free(&l.found);
		return r;
	}
	write_changes(s, &l, now_ns);
	s->searched_ns = now_ns;
	s->cut = l.cut;
	free(s->found.v);
	s->found.v = l.found.v;
	s->found.len = l.found.len;
	s->found.cap = l.found.cap;
	return 0;
}

void jit_stubs_report(const struct jit_stubs *s, const struct jit_known *known, char *why)
{
	char text[128];

	if (s->error && s->error != -ESRCH) {
		snprintf(text, sizeof(text), "the runtime's stubs could not be searched: %s",
			 strerror(-s->error));
		jit_way_add_why(why, text);
	}
	if (s->cut || known->over)
		jit_way_add_why(why, "not all of its memory was searched for the runtime's stubs: "
				     "there is too much of it");
}

void jit_stubs_free(struct jit_stubs *s)
{
	vec_free(&s->found);
}
