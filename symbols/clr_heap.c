#include "symbols/clr_heap_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "symbols/clr_batch.h"

#include <errno.h>

/* A nibble map has 4 bits for each 32 bytes of code, in words of 8 nibbles, the first the highest: 0, or 1 + n where code starts at
 * 4 * n. A word whose last nibble is above 8 points to the start of code that covers all of its 256 bytes. */
#define WORD_CODE_BYTES 256
#define NIBBLE_CODE_BYTES 32
#define NIBBLES 8
#define POINTER_ABOVE 8u
#define ENDS_WORDS 64 /* of the map, in which the next start behind a body is looked for */
#define WORDS_AT_ONCE 4096 /* between two looks at the clock */
#define CANDIDATES_MAX 2048 /* that are read at once */
#define PIECES_AT_ONCE 4096 /* between two looks at the clock: what cannot be read takes a call of the kernel each */

/* Code that the scan has to look at. */
struct pending {
	uint64_t start;
	uint32_t heap;
	bool known; /* was told before, is to be compared */
};

struct scan {
	struct clr_heap *h;
	const struct clr_heap_listener *listener;
	VEC(struct pending) pending;
	bool whole; /* the map of ranges was read completely: what is not in it is gone */
	size_t recheck_at; /* of the heap, once the scan has come to its end */
	uint64_t code_bytes; /* of heaps so far */
};

bool clr_heap_is_late(const struct clr_heap *h)
{
	return clock_monotonic_ns() >= h->until_ns;
}

static int timed_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	const struct clr_heap *h = ctx;

	return clr_heap_is_late(h) ? -ETIMEDOUT : h->target.read(h->target.ctx, addr, buf, len);
}

static int timed_read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	const struct clr_heap *h = ctx;
	int r = 0;

	for (size_t done = 0, some; !r && done < n; done += some) {
		some = n - done < PIECES_AT_ONCE ? n - done : PIECES_AT_ONCE;
		r = clr_heap_is_late(h) ? -ETIMEDOUT : h->target.read_pieces(h->target.ctx, pieces + done, some);
	}
	return r;
}

int clr_heap_new(const struct clr_io *io, const struct clr_anchors *anchors, struct clr_heap **ret, struct parse_error *err)
{
	struct clr_heap *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	h->target = *io;
	h->io = (struct clr_io){.read = timed_read, .read_pieces = timed_read_pieces, .ctx = h};
	h->anchor = clr_anchors_any(anchors);
	r = clr_contract_load(io, anchors, &h->contract, err);
	if (r) {
		free(h);
		return r;
	}
	h->modules.io = h->types.io = &h->io;
	h->modules.contract = h->types.contract = &h->contract;
	h->types.modules = &h->modules;
	*ret = h;
	return 0;
}

void clr_heap_free(struct clr_heap *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->heaps.len; i++)
		vec_free(&h->heaps.v[i].words);
	vec_free(&h->heaps);
	hashmap_free(&h->heaps_by_list);
	vec_free(&h->bodies);
	vec_free(&h->stubs);
	clr_barriers_free(&h->barriers);
	hashmap_free(&h->bodies_by_start);
	vec_free(&h->points);
	intern_free(&h->names);
	clr_types_free(&h->types);
	clr_modules_free(&h->modules);
	free(h);
}

void clr_heap_stats(const struct clr_heap *h, struct clr_heap_stats *ret_stats)
{
	*ret_stats = h->stats;
	ret_stats->bodies += h->stubs.len;
	ret_stats->stubs += h->stubs.len;
	ret_stats->modules = h->modules.modules.len;
	ret_stats->modules_failed = clr_modules_failed(&h->modules);
}

void clr_heap_want_il(struct clr_heap *h)
{
	h->wants_il = true;
}

void clr_heap_compare_all(struct clr_heap *h)
{
	h->compares_all = true;
}

bool clr_heap_is_described(const struct clr_heap *h)
{
	return h->contract.described;
}

static struct clr_body *find_body(struct clr_heap *h, uint64_t start)
{
	const uint32_t *index = hashmap_get(&h->bodies_by_start, start);

	return index && h->bodies.v[*index].here ? &h->bodies.v[*index] : NULL;
}

/* Of a heap: another one may have its place, and a body there, before it is known that this one is gone. */
static int tell_gone(struct scan *s, uint32_t heap, uint64_t start)
{
	struct clr_body *body = find_body(s->h, start);

	if (!body || body->heap != heap)
		return 0;
	body->here = false;
	s->h->movable -= body->may_move;
	s->h->stats.gone++;
	s->h->stats.bodies--;
	s->h->stats.stubs -= body->is_stub;
	return s->listener->gone(s->listener->ctx, start, body->may_move && body->seen_ns < s->h->before_ns ? body->seen_ns : 0);
}

/* Where code starts in a word of the map that begins at base: the number of starts. */
static int starts_of(uint32_t word, uint64_t base, uint64_t starts[NIBBLES])
{
	int n = 0;

	if ((word & 15) > POINTER_ABOVE)
		return 0;
	for (int i = 0; i < NIBBLES; i++) {
		uint32_t nibble = word >> (28 - 4 * i) & 15;

		if (nibble && nibble <= NIBBLES)
			starts[n++] = base + (uint64_t)i * NIBBLE_CODE_BYTES + 4 * (uint64_t)(nibble - 1);
	}
	return n;
}

static int forget_words(struct scan *s, uint32_t index, size_t from)
{
	struct clr_code_heap *heap = &s->h->heaps.v[index];
	uint64_t starts[NIBBLES];
	int r = 0;

	for (size_t i = from; !r && i < heap->words.len; i++) {
		int n = starts_of(heap->words.v[i], heap->base + i * WORD_CODE_BYTES, starts);

		if (i % WORDS_AT_ONCE == 0 && clr_heap_is_late(s->h))
			r = -ETIMEDOUT;
		for (int k = 0; !r && k < n; k++)
			r = tell_gone(s, index, starts[k]);
		/* If the rest is told later, this may have been filled again by then. */
		if (!r)
			heap->words.v[i] = 0;
	}
	if (!r && from < heap->words.len)
		heap->words.len = from;
	return r;
}

static int add_pending(struct scan *s, uint64_t start, uint32_t heap, bool known)
{
	if (s->h->bodies.len + s->pending.len >= CLR_HEAP_BODIES_MAX) {
		s->h->stats.over = true;
		s->h->stats.unread++;
		return 0;
	}
	return vec_push(&s->pending, ((struct pending){.start = start, .heap = heap, .known = known}));
}

/* A word that changed: what it had and has not, and what it has and had not. */
static int compare_word(struct scan *s, uint32_t heap, uint64_t base, uint32_t old, uint32_t new)
{
	uint64_t had[NIBBLES], has[NIBBLES];
	int nhad = starts_of(old, base, had), nhas = starts_of(new, base, has), i = 0, r = 0;

	for (int k = 0; !r && k < nhas; k++) {
		while (!r && i < nhad && had[i] < has[k])
			r = tell_gone(s, heap, had[i++]);
		if (i < nhad && had[i] == has[k])
			i++;
		else if (!r)
			r = add_pending(s, has[k], heap, false);
	}
	while (!r && i < nhad)
		r = tell_gone(s, heap, had[i++]);
	return r;
}

static int compare_map(struct scan *s, uint32_t index, const uint32_t *words, size_t n)
{
	struct clr_code_heap *heap = &s->h->heaps.v[index];
	size_t had = heap->words.len;
	int r = n < had ? forget_words(s, index, n) : 0;

	if (!r && n > had)
		r = vec_reserve(&heap->words, n - had);
	if (r)
		return r;
	for (; heap->words.len < n; heap->words.len++)
		heap->words.v[heap->words.len] = 0;
	for (size_t i = 0; !r && i < n; i++) {
		if (i % WORDS_AT_ONCE == 0 && clr_heap_is_late(s->h))
			r = -ETIMEDOUT;
		if (!r && words[i] != heap->words.v[i])
			r = compare_word(s, index, heap->base + i * WORD_CODE_BYTES, heap->words.v[i], words[i]);
		if (!r)
			heap->words.v[i] = words[i];
	}
	return r;
}

/* The start has no nibble in our copy, so that it is new to the next scan. */
static void take_back(struct clr_heap *h, uint64_t start, uint32_t index)
{
	struct clr_code_heap *heap = &h->heaps.v[index];
	uint64_t at = start - heap->base, word = at / WORD_CODE_BYTES;
	unsigned shift = (unsigned)(28 - 4 * (at / NIBBLE_CODE_BYTES % NIBBLES));

	/* Another start of the same 32 bytes may stand there, that is still to be told gone. */
	if (word < heap->words.len && (heap->words.v[word] >> shift & 15) == 1 + at % NIBBLE_CODE_BYTES / 4)
		heap->words.v[word] &= ~(15u << shift);
}

/* The next start behind each candidate: code ends there at the latest. */
static void find_ends(const struct clr_heap *h, struct clr_candidate *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct clr_code_heap *heap = &h->heaps.v[c[i].heap];
		size_t at = (size_t)((c[i].start - heap->base) / WORD_CODE_BYTES);
		uint64_t starts[NIBBLES];

		c[i].next = heap->end;
		c[i].looked = heap->base + (at + ENDS_WORDS) * WORD_CODE_BYTES;
		for (size_t w = at; w < heap->words.len && w < at + ENDS_WORDS && c[i].next == heap->end; w++) {
			int found = starts_of(heap->words.v[w], heap->base + w * WORD_CODE_BYTES, starts);

			for (int k = 0; k < found; k++)
				if (starts[k] > c[i].start && starts[k] < c[i].next)
					c[i].next = starts[k];
		}
	}
}

static int keep_body(struct clr_heap *h, const struct clr_candidate *c, uint32_t name)
{
	uint32_t *index;
	int fresh, r = vec_reserve(&h->bodies, 1); /* before the table has an entry of it */

	if (!r)
		r = hashmap_entry(&h->bodies_by_start, c->start, (uint32_t)h->bodies.len, &index, &fresh);
	if (r)
		return r;
	h->bodies.len += fresh != 0;
	h->bodies.v[*index] = (struct clr_body){
		.start = c->start,
		.print = c->print,
		.bytes = c->bytes,
		.name = name,
		.here = true,
		.is_stub = c->is_stub,
		.heap = c->heap,
		.may_move = clr_candidate_may_move(h, c),
		.seen_ns = h->began_ns,
	};
	h->movable += h->bodies.v[*index].may_move;
	h->stats.bodies++;
	h->stats.stubs += c->is_stub;
	h->stats.added++;
	return 0;
}

static int tell(struct scan *s, const struct clr_candidate *c)
{
	struct clr_heap *h = s->h;
	struct clr_body *body = find_body(h, c->start);
	struct clr_heap_il il;
	uint32_t name;
	int r = 0;

	h->stats.unread += c->failed;
	if (c->known && !body)
		return 0;
	if (c->known && !c->failed && body->print == c->print) {
		body->seen_ns = h->began_ns;
		return 0;
	}
	if (body)
		r = tell_gone(s, body->heap, c->start);
	if (!r)
		r = c->failed ? -ENOENT : clr_candidate_name(h, c, &name);
	if (r == -ENOENT) {
		h->stats.unnamed += !c->failed;
		take_back(h, c->start, c->heap);
		return 0;
	}
	bool wants_il = h->wants_il && !c->is_stub;
	int no_il = wants_il && !r ? clr_candidate_il(h, c, &il) : -ENOENT;

	if (!r && no_il != -ENOENT)
		r = no_il;
	/* Kept last: what is kept has been told. */
	if (!r)
		r = keep_body(h, c, name);
	if (r)
		return r;
	h->stats.with_il += !no_il;
	h->stats.without_il += no_il && wants_il;
	struct clr_heap_code code = {
		.il = no_il ? NULL : &il,
		.start = c->start,
		.bytes = c->bytes,
		.is_stub = c->is_stub,
		.name = intern_text(&h->names, name),
		.name_len = intern_len(&h->names, name),
	};

	return s->listener->code(s->listener->ctx, &code);
}

static int tell_some(struct scan *s, const struct pending *pending, size_t n, struct clr_candidate *c)
{
	struct arena texts = {0};
	int r;

	for (size_t i = 0; i < n; i++)
		c[i] = (struct clr_candidate){.start = pending[i].start, .heap = pending[i].heap, .known = pending[i].known};
	find_ends(s->h, c, n);
	r = clr_candidates_read(s->h, c, n, &texts);
	if (!r && s->h->wants_il)
		r = clr_candidates_read_il(s->h, c, n, &texts);
	for (size_t i = 0; !r && i < n; i++)
		r = clr_heap_is_late(s->h) ? -ETIMEDOUT : tell(s, &c[i]);
	arena_free(&texts);
	return r;
}

static int tell_pending(struct scan *s)
{
	AUTO_FREE struct clr_candidate *c = malloc(CANDIDATES_MAX * sizeof(*c));
	int r = c ? 0 : -ENOMEM;

	for (size_t done = 0; !r && done < s->pending.len; done += CANDIDATES_MAX) {
		size_t left = s->pending.len - done;

		r = tell_some(s, s->pending.v + done, left < CANDIDATES_MAX ? left : CANDIDATES_MAX, c);
	}
	return r;
}

/* How many bodies that may move are compared: all of them in CLR_HEAP_RECHECK_NS, whatever the scans' number. It costs more than to see what
 * is new, and new ones may be gone soon. */
static size_t rechecks_of(const struct clr_heap *h)
{
	uint64_t passed = h->began_ns - h->before_ns;
	size_t n = h->movable;

	if (h->compares_all)
		return SIZE_MAX;
	if (passed < CLR_HEAP_RECHECK_NS)
		n = (size_t)((uint64_t)n * passed / CLR_HEAP_RECHECK_NS) + CLR_HEAP_RECHECK_MIN;
	return n < CLR_HEAP_RECHECK_MAX ? n : CLR_HEAP_RECHECK_MAX;
}

/* Heaps that free single bodies give their place to others, perhaps at the same address: those bodies are looked at again, in turns. */
static int add_rechecks(struct scan *s)
{
	struct clr_heap *h = s->h;
	size_t n = h->bodies.len, at = h->recheck_at < n ? h->recheck_at : 0, most = rechecks_of(h);
	int r = 0;

	for (size_t i = 0; !r && i < n && h->stats.rechecked < most; i++, at = at + 1 < n ? at + 1 : 0) {
		const struct clr_body *body = &h->bodies.v[at];

		if (!body->here || !body->may_move || h->heaps.v[body->heap].seen != h->scan)
			continue;
		h->stats.rechecked++;
		r = add_pending(s, body->start, body->heap, true);
	}
	s->recheck_at = at;
	return r;
}

/* Reads the maps of all heaps of this scan and compares each with what it was. */
static int read_maps(struct scan *s)
{
	struct clr_heap *h = s->h;
	int r = 0;

	for (uint32_t i = 0; !r && i < h->heaps.len; i++) {
		struct clr_code_heap *heap = &h->heaps.v[i];
		size_t n = (size_t)((heap->end - heap->base + WORD_CODE_BYTES - 1) / WORD_CODE_BYTES);

		if (heap->seen != h->scan)
			continue;
		AUTO_FREE uint32_t *words = malloc(n * sizeof(*words) + 1);

		if (!words)
			return -ENOMEM;
		r = h->io.read(h->io.ctx, heap->map, words, n * sizeof(*words));
		if (!r)
			r = compare_map(s, i, words, n);
		else if (r == -EFAULT) {
			h->stats.unread++;
			r = 0;
		}
	}
	return r;
}

static int add_heap(struct scan *s, const struct clr_range *range, const unsigned char *node)
{
	struct clr_heap *h = s->h;
	const uint32_t *at = h->contract.at;
	uint64_t base = clr_u64(node, at[CLR_HEAP_MAP_BASE]), end = clr_u64(node, at[CLR_HEAP_END]);
	uint64_t start = clr_u64(node, at[CLR_HEAP_START]), map = clr_u64(node, at[CLR_HEAP_MAP]);
	uint32_t *index;
	int fresh, r = 0;

	if (base > start || start - base > 65536 || start > end || start < range->start || end > range->end || !map ||
	    base < 65536 || end - base > CLR_HEAP_CODE_BYTES_MAX - s->code_bytes) {
		h->stats.unread++;
		return 0;
	}
	if (h->heaps.len >= CLR_RANGES_MAX && !hashmap_get(&h->heaps_by_list, range->heap_list)) {
		h->stats.unread++;
		return 0;
	}
	s->code_bytes += end - base;
	r = vec_reserve(&h->heaps, 1); /* before the table has an entry of it */
	if (!r)
		r = hashmap_entry(&h->heaps_by_list, range->heap_list, (uint32_t)h->heaps.len, &index, &fresh);
	if (r)
		return r;
	if (fresh)
		h->heaps.v[h->heaps.len++] = (struct clr_code_heap){.list = range->heap_list};
	struct clr_code_heap *heap = &h->heaps.v[*index];

	if (heap->base != base || heap->map != map || heap->section != range->start)
		r = forget_words(s, *index, 0);
	if (r)
		return r;
	heap->base = base;
	heap->end = end;
	heap->map = map;
	heap->section = range->start;
	heap->collectible = range->flags & CLR_RANGE_COLLECTIBLE;
	heap->seen = h->scan;
	return 0;
}

static int read_heaps(struct scan *s, const struct clr_ranges *ranges)
{
	struct clr_heap *h = s->h;
	const uint32_t *at = h->contract.at;
	struct clr_batch batch = {.io = &h->io};
	size_t n = ranges->ranges.len, bytes = 0;
	int r = 0;

	for (int f = CLR_HEAP_START; f <= CLR_HEAP_MAP; f++)
		bytes = at[f] + 8u > bytes ? at[f] + 8u : bytes;
	AUTO_FREE unsigned char *nodes = calloc(n + 1, bytes);

	for (size_t i = 0; nodes && !r && i < n; i++)
		r = clr_batch_add(&batch, ranges->ranges.v[i].heap_list, nodes + i * bytes,
				  ranges->ranges.v[i].flags & CLR_RANGE_CODE_HEAP ? (uint32_t)bytes : 0);
	if (!nodes)
		r = -ENOMEM;
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++) {
		const struct clr_range *range = &ranges->ranges.v[i];

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

/* Where the map of ranges was not read completely, what is not in it may be there still, but not in any number. */
static int drop_heaps(struct scan *s)
{
	struct clr_heap *h = s->h;
	uint64_t bytes = s->code_bytes;
	int r = 0;

	for (size_t i = 0; i < h->heaps.len; i++)
		if (h->heaps.v[i].seen != h->scan)
			bytes += h->heaps.v[i].words.len * (uint64_t)WORD_CODE_BYTES;
	if (!s->whole && bytes <= CLR_HEAP_CODE_BYTES_MAX)
		return 0;
	for (uint32_t i = 0; !r && i < h->heaps.len; i++) {
		if (h->heaps.v[i].seen == h->scan)
			continue;
		r = forget_words(s, i, 0);
		if (!r)
			vec_free(&h->heaps.v[i].words);
	}
	return r;
}

int clr_heap_scan(struct clr_heap *h, const struct clr_heap_listener *l, uint64_t until_ns)
{
	struct clr_heap_stats *stats = &h->stats;
	struct scan s = {.h = h, .listener = l, .whole = true};
	struct clr_ranges ranges = {0};
	AUTO_FREE char *maps = NULL;
	int r = 0;

	h->before_ns = h->began_ns;
	h->began_ns = clock_monotonic_ns();
	/* Only stubs need the list, which takes a fourth of a scan's time. */
	if (h->contract.described && h->target.maps)
		r = h->target.maps(h->target.ctx, &maps);
	h->until_ns = until_ns;
	h->scan++;
	h->modules.scan = h->types.scan = h->scan;
	stats->added = stats->gone = stats->unread = stats->unnamed = stats->rechecked = 0;
	if (r != -ENOMEM && r != -ESRCH) /* a list that may not be read costs some stubs */
		r = clr_ranges_read(&h->io, &h->contract, &ranges);
	if (!r) {
		s.whole = !ranges.unread;
		stats->unread += ranges.unread;
		r = read_heaps(&s, &ranges);
	}
	if (!r && s.whole && h->contract.described)
		r = clr_stubs_scan(h, &ranges, maps, l);
	clr_ranges_free(&ranges);
	if (!r)
		r = drop_heaps(&s);
	if (!r)
		r = add_rechecks(&s);
	if (!r)
		r = read_maps(&s);
	if (!r)
		r = tell_pending(&s);
	if (!r)
		h->recheck_at = s.recheck_at;
	for (size_t i = 0; r && i < s.pending.len; i++) {
		const struct pending *p = &s.pending.v[i];
		const struct clr_body *body = find_body(h, p->start);

		if (!body || body->heap != p->heap)
			take_back(h, p->start, p->heap);
	}
	vec_free(&s.pending);
	return r;
}
