#include "dotnet/coreclr/jit_code_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/nibble_map.h"

#include <errno.h>

/* Words of the map searched for the next start after a body. */
#define ENDS_WORDS 64
#define WORDS_AT_ONCE 4096  /* words compared between two checks of the clock */
#define CANDIDATES_MAX 2048 /* bodies read together */
/* Reads between two checks of the clock. Each unreadable piece costs a system call. */
#define PIECES_AT_ONCE 4096

/* Code that the scan must read. */
struct pending {
	uint64_t start;
	uint32_t heap;
	bool known; /* reported before; only compare it */
};

struct scan {
	struct clr_jit_code *j;
	const struct clr_jit_code_listener *listener;
	VEC(struct pending) pending;
	/* The map of ranges was read completely: heaps not in it are gone. */
	bool whole;
	/* Becomes clr_jit_code.recheck_at when the scan succeeds. */
	size_t recheck_at;
	uint64_t code_bytes; /* of the heaps found so far */
};

bool clr_jit_code_is_late(const struct clr_jit_code *j)
{
	return clock_monotonic_ns() >= j->until_ns;
}

static int timed_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct clr_jit_code *j = ctx;

	return clr_jit_code_is_late(j) ? -ETIMEDOUT : j->target.read(j->target.ctx, addr, buf, len);
}

static int timed_read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	const struct clr_jit_code *j = ctx;
	int r = 0;

	for (size_t done = 0, some; !r && done < n; done += some) {
		some = n - done < PIECES_AT_ONCE ? n - done : PIECES_AT_ONCE;
		r = clr_jit_code_is_late(j)
			    ? -ETIMEDOUT
			    : j->target.read_pieces(j->target.ctx, pieces + done, some);
	}
	return r;
}

int clr_jit_code_new(const struct clr_io *io, const struct clr_anchors *anchors,
		     struct clr_jit_code **ret, struct parse_error *err)
{
	struct clr_jit_code *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	j->target = *io;
	j->io = (struct clr_io){.read = timed_read, .read_pieces = timed_read_pieces, .ctx = j};
	j->anchor = clr_anchors_any(anchors);
	r = clr_contract_load(io, anchors, &j->contract, err);
	if (r) {
		free(j);
		return r;
	}
	j->modules.io = j->types.io = &j->io;
	j->modules.contract = j->types.contract = &j->contract;
	j->types.modules = &j->modules;
	*ret = j;
	return 0;
}

void clr_jit_code_free(struct clr_jit_code *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->heaps.len; i++)
		vec_free(&j->heaps.v[i].words);
	vec_free(&j->heaps);
	hashmap_free(&j->heaps_by_list);
	vec_free(&j->bodies);
	vec_free(&j->movable);
	vec_free(&j->stubs);
	clr_barriers_free(&j->barriers);
	hashmap_free(&j->bodies_by_start);
	vec_free(&j->points);
	vec_free(&j->images);
	intern_free(&j->names);
	clr_types_free(&j->types);
	clr_modules_free(&j->modules);
	free(j);
}

static struct clr_body *find_body(struct clr_jit_code *j, uint64_t start)
{
	const uint32_t *index = hashmap_get(&j->bodies_by_start, start);

	return index && j->bodies.v[*index].here ? &j->bodies.v[*index] : NULL;
}

/*
 * Reports a body of a heap as gone. Ignores a body of another heap at the same address, which may
 * replace this heap before the scan notices.
 */
static int report_gone(struct scan *s, uint32_t heap, uint64_t start)
{
	struct clr_body *body = find_body(s->j, start);

	if (!body || body->heap != heap)
		return 0;
	body->here = false;
	s->j->nmovable -= body->movable;
	s->j->stats.gone++;
	s->j->stats.bodies--;
	s->j->stats.stubs -= body->is_stub;
	return s->listener->gone(s->listener->ctx, start,
				 body->movable && body->seen_ns < s->j->before_ns ? body->seen_ns
										  : 0);
}

static int forget_words(struct scan *s, uint32_t index, size_t from)
{
	struct clr_code_heap *heap = &s->j->heaps.v[index];
	uint64_t starts[CLR_NIBBLE_MAP_STARTS_MAX];
	int r = 0;

	for (size_t i = from; !r && i < heap->words.len; i++) {
		int n = clr_nibble_map_starts(
			heap->words.v[i], heap->base + i * CLR_NIBBLE_MAP_WORD_CODE_BYTES, starts);

		if (i % WORDS_AT_ONCE == 0 && clr_jit_code_is_late(s->j))
			r = -ETIMEDOUT;
		for (int k = 0; !r && k < n; k++)
			r = report_gone(s, index, starts[k]);
		/*
		 * Clear each word at once. If this scan stops here, new code may fill it before the
		 * next scan.
		 */
		if (!r)
			heap->words.v[i] = 0;
	}
	if (!r && from < heap->words.len)
		heap->words.len = from;
	return r;
}

static int add_pending(struct scan *s, uint64_t start, uint32_t heap, bool known)
{
	if (s->j->bodies.len + s->pending.len >= CLR_JIT_CODE_BODIES_MAX) {
		s->j->stats.over = true;
		s->j->stats.unread++;
		return 0;
	}
	return vec_push(&s->pending,
			((struct pending){.start = start, .heap = heap, .known = known}));
}

/* Compares a changed word: reports starts that vanished and adds new ones. */
static int compare_word(struct scan *s, uint32_t heap, uint64_t base, uint32_t old, uint32_t new)
{
	uint64_t had[CLR_NIBBLE_MAP_STARTS_MAX], has[CLR_NIBBLE_MAP_STARTS_MAX];
	int nhad = clr_nibble_map_starts(old, base, had),
	    nhas = clr_nibble_map_starts(new, base, has), i = 0, r = 0;

	for (int k = 0; !r && k < nhas; k++) {
		while (!r && i < nhad && had[i] < has[k])
			r = report_gone(s, heap, had[i++]);
		if (i < nhad && had[i] == has[k])
			i++;
		else if (!r)
			r = add_pending(s, has[k], heap, false);
	}
	while (!r && i < nhad)
		r = report_gone(s, heap, had[i++]);
	return r;
}

static int compare_map(struct scan *s, uint32_t index, const uint32_t *words, size_t n)
{
	struct clr_code_heap *heap = &s->j->heaps.v[index];
	size_t had = heap->words.len;
	int r = n < had ? forget_words(s, index, n) : 0;

	if (!r && n > had)
		r = vec_reserve(&heap->words, n - had);
	if (r)
		return r;
	for (; heap->words.len < n; heap->words.len++)
		heap->words.v[heap->words.len] = 0;
	for (size_t i = 0; !r && i < n; i++) {
		if (i % WORDS_AT_ONCE == 0 && clr_jit_code_is_late(s->j))
			r = -ETIMEDOUT;
		if (!r && words[i] != heap->words.v[i])
			r = compare_word(s, index, heap->base + i * CLR_NIBBLE_MAP_WORD_CODE_BYTES,
					 heap->words.v[i], words[i]);
		if (!r)
			heap->words.v[i] = words[i];
	}
	return r;
}

/* Clears the nibble of a start in our copy of the map, so the next scan finds it as new. */
static void mark_unreported(struct clr_jit_code *j, uint64_t start, uint32_t index)
{
	struct clr_code_heap *heap = &j->heaps.v[index];

	clr_nibble_map_clear(heap->words.v, heap->words.len, heap->base, start);
}

/* Finds the next start after each candidate. Its code ends there at the latest. */
static void find_ends(const struct clr_jit_code *j, struct clr_candidate *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct clr_code_heap *heap = &j->heaps.v[c[i].heap];

		c[i].next = clr_nibble_map_next(heap->words.v, heap->words.len, heap->base,
						c[i].start, heap->end, ENDS_WORDS);
	}
}

static int keep_body(struct clr_jit_code *j, const struct clr_candidate *c, uint32_t name)
{
	uint32_t *index;
	/* Reserve before the tables refer to it. */
	int fresh, r = vec_reserve(&j->bodies, 1) ? -ENOMEM : vec_reserve(&j->movable, 1);

	if (!r)
		r = hashmap_entry(&j->bodies_by_start, c->start, (uint32_t)j->bodies.len, &index,
				  &fresh);
	if (r)
		return r;
	j->bodies.len += fresh != 0;
	bool movable = clr_jit_code_bodies_is_movable(j, c),
	     was_listed = !fresh && j->bodies.v[*index].is_listed;

	if (movable && !was_listed)
		j->movable.v[j->movable.len++] = *index;
	j->bodies.v[*index] = (struct clr_body){
		.start = c->start,
		.fingerprint = c->fingerprint,
		.bytes = c->bytes,
		.name = name,
		.here = true,
		.is_stub = c->is_stub,
		.heap = c->heap,
		.movable = movable,
		.is_listed = movable || was_listed,
		.seen_ns = j->began_ns,
	};
	j->nmovable += movable;
	j->stats.bodies++;
	j->stats.stubs += c->is_stub;
	j->stats.added++;
	return 0;
}

static int report_body(struct scan *s, const struct clr_candidate *c)
{
	struct clr_jit_code *j = s->j;
	struct clr_body *body = find_body(j, c->start);
	struct clr_jit_code_il il;
	uint32_t name;
	int r = 0;

	j->stats.unread += c->failed;
	if (c->known && !body)
		return 0;
	if (c->known && !c->failed && body->fingerprint == c->fingerprint) {
		body->seen_ns = j->began_ns;
		return 0;
	}
	if (body)
		r = report_gone(s, body->heap, c->start);
	if (!r)
		r = c->failed ? -ENOENT : clr_jit_code_bodies_name(j, c, &name);
	if (r == -ENOENT) {
		j->stats.unnamed += !c->failed;
		mark_unreported(j, c->start, c->heap);
		return 0;
	}
	bool wants_il = j->wants_il && !c->is_stub;
	int no_il = wants_il && !r ? clr_jit_code_il_decode(j, c, &il) : -ENOENT;

	if (!r && no_il != -ENOENT)
		r = no_il;
	/* Keep it last, because kept bodies count as reported. */
	if (!r)
		r = keep_body(j, c, name);
	if (r)
		return r;
	j->stats.with_il += !no_il;
	j->stats.without_il += no_il && wants_il;
	struct clr_jit_code_body code = {
		.il = no_il ? NULL : &il,
		.start = c->start,
		.bytes = c->bytes,
		.is_stub = c->is_stub,
		.name = intern_text(&j->names, name),
		.name_len = intern_len(&j->names, name),
		.method = c->method,
		.is_dynamic = clr_jit_code_bodies_is_dynamic(j, c),
	};

	(void)clr_jit_code_bodies_method(j, c, &code.rid, &code.module);
	code.module = clr_jit_code_bodies_module(j, c);
	return s->listener->code(s->listener->ctx, &code);
}

static int report_some(struct scan *s, const struct pending *pending, size_t n,
		       struct clr_candidate *c)
{
	struct arena texts = {0};
	int r;

	for (size_t i = 0; i < n; i++)
		c[i] = (struct clr_candidate){.start = pending[i].start,
					      .heap = pending[i].heap,
					      .known = pending[i].known};
	find_ends(s->j, c, n);
	r = clr_jit_code_bodies_read(s->j, c, n, &texts);
	if (!r && s->j->wants_il)
		r = clr_jit_code_il_read(s->j, c, n, &texts);
	for (size_t i = 0; !r && i < n; i++)
		r = clr_jit_code_is_late(s->j) ? -ETIMEDOUT : report_body(s, &c[i]);
	arena_free(&texts);
	return r;
}

static int report_pending(struct scan *s)
{
	AUTO_FREE struct clr_candidate *c = malloc(CANDIDATES_MAX * sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	for (size_t done = 0; !r && done < s->pending.len; done += CANDIDATES_MAX) {
		size_t left = s->pending.len - done;

		r = report_some(s, s->pending.v + done,
				left < CANDIDATES_MAX ? left : CANDIDATES_MAX, c);
	}
	return r;
}

/*
 * Number of movable bodies to compare in this scan. All are compared in CLR_JIT_CODE_RECHECK_NS,
 * independent of the number of scans. Comparing costs more than finding new bodies, which may be
 * gone soon.
 */
static size_t recheck_count(const struct clr_jit_code *j)
{
	uint64_t passed = j->began_ns - j->before_ns;
	size_t n = j->nmovable;

	if (j->compares_all)
		return SIZE_MAX;
	if (passed < CLR_JIT_CODE_RECHECK_NS)
		n = (size_t)((uint64_t)n * passed / CLR_JIT_CODE_RECHECK_NS) +
		    CLR_JIT_CODE_RECHECK_MIN;
	return n < CLR_JIT_CODE_RECHECK_MAX ? n : CLR_JIT_CODE_RECHECK_MAX;
}

/*
 * Adds movable bodies to compare, in turns, and drops those that are gone from the list. Heaps that
 * free single bodies may place another one at the same address.
 */
static int add_rechecks(struct scan *s)
{
	struct clr_jit_code *j = s->j;
	size_t at = j->recheck_at, most = recheck_count(j);
	int r = 0;

	for (size_t visited = 0; !r && visited < j->movable.len && j->stats.rechecked < most;) {
		at = at < j->movable.len ? at : 0;
		struct clr_body *body = &j->bodies.v[j->movable.v[at]];
		if (!body->here || !body->movable) {
			body->is_listed = false;
			j->movable.v[at] = j->movable.v[--j->movable.len];
			continue;
		}
		visited++;
		at++;
		bool is_seen = j->heaps.v[body->heap].seen == j->scan;

		j->stats.rechecked += is_seen;
		r = is_seen ? add_pending(s, body->start, body->heap, true) : 0;
	}
	s->recheck_at = at;
	return r;
}

/* Reads the maps of all heaps of this scan and compares each with its last state. */
static int read_maps(struct scan *s)
{
	struct clr_jit_code *j = s->j;
	int r = 0;

	for (uint32_t i = 0; !r && i < j->heaps.len; i++) {
		struct clr_code_heap *heap = &j->heaps.v[i];
		size_t n = (size_t)((heap->end - heap->base + CLR_NIBBLE_MAP_WORD_CODE_BYTES - 1) /
				    CLR_NIBBLE_MAP_WORD_CODE_BYTES);

		if (heap->seen != j->scan)
			continue;
		AUTO_FREE uint32_t *words = malloc(n * sizeof(*words) + 1);

		if (!words)
			return -ENOMEM;
		r = j->io.read(j->io.ctx, heap->map, words, n * sizeof(*words));
		if (!r)
			r = compare_map(s, i, words, n);
		else if (r == -EFAULT) {
			j->stats.unread++;
			r = 0;
		}
	}
	return r;
}

static int add_heap(struct scan *s, const struct clr_code_range *range, const unsigned char *node)
{
	struct clr_jit_code *j = s->j;
	const uint32_t *at = j->contract.at;
	uint64_t base = clr_u64(node, at[CLR_JIT_CODE_MAP_BASE]),
		 end = clr_u64(node, at[CLR_JIT_CODE_END]);
	uint64_t start = clr_u64(node, at[CLR_JIT_CODE_START]),
		 map = clr_u64(node, at[CLR_JIT_CODE_MAP]);
	uint32_t *index;
	int fresh, r = 0;

	if (base > start || start - base > 65536 || start > end || start < range->start ||
	    end > range->end || !map || base < 65536 ||
	    end - base > CLR_JIT_CODE_CODE_BYTES_MAX - s->code_bytes) {
		j->stats.unread++;
		return 0;
	}
	if (j->heaps.len >= CLR_CODE_RANGES_MAX &&
	    !hashmap_get(&j->heaps_by_list, range->heap_list)) {
		j->stats.unread++;
		return 0;
	}
	s->code_bytes += end - base;
	r = vec_reserve(&j->heaps, 1); /* before the table refers to it */
	if (!r)
		r = hashmap_entry(&j->heaps_by_list, range->heap_list, (uint32_t)j->heaps.len,
				  &index, &fresh);
	if (r)
		return r;
	if (fresh)
		j->heaps.v[j->heaps.len++] = (struct clr_code_heap){.list = range->heap_list};
	struct clr_code_heap *heap = &j->heaps.v[*index];

	if (heap->base != base || heap->map != map || heap->section != range->start)
		r = forget_words(s, *index, 0);
	if (r)
		return r;
	heap->base = base;
	heap->end = end;
	heap->map = map;
	heap->section = range->start;
	heap->collectible = range->flags & CLR_RANGE_COLLECTIBLE;
	heap->seen = j->scan;
	return 0;
}

static int read_heaps(struct scan *s, const struct clr_code_ranges *ranges)
{
	struct clr_jit_code *j = s->j;
	const uint32_t *at = j->contract.at;
	struct clr_batch batch = {.io = &j->io};
	size_t n = ranges->ranges.len, bytes = 0;
	int r = 0;

	for (int f = CLR_JIT_CODE_START; f <= CLR_JIT_CODE_MAP; f++)
		bytes = at[f] + 8u > bytes ? at[f] + 8u : bytes;
	AUTO_FREE unsigned char *nodes = calloc(n + 1, bytes);

	for (size_t i = 0; nodes && !r && i < n; i++)
		r = clr_batch_add(&batch, ranges->ranges.v[i].heap_list, nodes + i * bytes,
				  ranges->ranges.v[i].flags & CLR_RANGE_CODE_HEAP ? (uint32_t)bytes
										  : 0);
	if (!nodes)
		r = -ENOMEM;
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++) {
		const struct clr_code_range *range = &ranges->ranges.v[i];

		if (!(range->flags & CLR_RANGE_CODE_HEAP) || range->r2r_module || !range->heap_list)
			continue;
		if (clr_batch_ok(&batch, i))
			r = add_heap(s, range, nodes + i * bytes);
		else
			s->whole = false;
	}
	clr_batch_free(&batch);
	return r;
}

/*
 * Drops heaps that this scan did not find. After an incomplete read of the ranges it keeps them,
 * within the limit of code bytes.
 */
static int drop_heaps(struct scan *s)
{
	struct clr_jit_code *j = s->j;
	uint64_t bytes = s->code_bytes;
	int r = 0;

	for (size_t i = 0; i < j->heaps.len; i++)
		if (j->heaps.v[i].seen != j->scan)
			bytes += j->heaps.v[i].words.len * (uint64_t)CLR_NIBBLE_MAP_WORD_CODE_BYTES;
	if (!s->whole && bytes <= CLR_JIT_CODE_CODE_BYTES_MAX)
		return 0;
	for (uint32_t i = 0; !r && i < j->heaps.len; i++) {
		if (j->heaps.v[i].seen == j->scan)
			continue;
		r = forget_words(s, i, 0);
		if (!r)
			vec_free(&j->heaps.v[i].words);
	}
	return r;
}

int clr_jit_code_scan(struct clr_jit_code *j, const struct clr_jit_code_listener *l,
		      uint64_t until_ns)
{
	struct clr_jit_code_stats *stats = &j->stats;
	struct scan s = {.j = j, .listener = l, .whole = true};
	struct clr_code_ranges ranges = {0};
	AUTO_FREE char *maps = NULL;
	int r = 0;

	j->before_ns = j->began_ns;
	j->began_ns = clock_monotonic_ns();
	/* Only stubs need the list, which takes a quarter of a scan's time. */
	if (j->contract.described && j->target.maps)
		r = j->target.maps(j->target.ctx, &maps);
	j->until_ns = until_ns;
	j->scan++;
	j->modules.scan = j->types.scan = j->scan;
	stats->added = stats->gone = stats->unread = stats->unnamed = stats->rechecked = 0;
	if (r != -ENOMEM && r != -ESRCH) /* an unreadable list costs only some stubs */
		r = clr_code_ranges_read(&j->io, &j->contract, &ranges);
	if (!r) {
		s.whole = !ranges.unread;
		stats->unread += ranges.unread;
		r = read_heaps(&s, &ranges);
	}
	if (!r)
		r = clr_jit_code_keep_images(j, &ranges);
	if (!r && s.whole && j->contract.described)
		r = clr_jit_code_stubs_scan(j, &ranges, maps, l);
	clr_code_ranges_free(&ranges);
	if (!r)
		r = drop_heaps(&s);
	if (!r)
		r = add_rechecks(&s);
	if (!r)
		r = read_maps(&s);
	if (!r)
		r = report_pending(&s);
	if (!r)
		j->recheck_at = s.recheck_at;
	for (size_t i = 0; r && i < s.pending.len; i++) {
		const struct pending *p = &s.pending.v[i];
		const struct clr_body *body = find_body(j, p->start);

		if (!body || body->heap != p->heap)
			mark_unreported(j, p->start, p->heap);
	}
	vec_free(&s.pending);
	return r;
}
