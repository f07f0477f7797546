#include "base/ranges.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/radix_sort.h"

#include <stdbool.h>

/*
 * The ranges at the sweep's present address, the latest written on top. Ended ranges are removed
 * when they reach the top.
 */
struct sweep {
	const struct range *ranges;
	uint32_t *ids; /* a heap, the largest id first */
	size_t len;
	struct range_pieces *pieces; /* has room for all pieces */
};

static void heap_push(struct sweep *s, uint32_t id)
{
	size_t at = s->len++;

	for (; at && s->ids[(at - 1) / 2] < id; at = (at - 1) / 2)
		s->ids[at] = s->ids[(at - 1) / 2];
	s->ids[at] = id;
}

static void heap_pop(struct sweep *s)
{
	uint32_t id = s->ids[--s->len];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= s->len)
			break;
		if (child + 1 < s->len && s->ids[child + 1] > s->ids[child])
			child++;
		if (s->ids[child] <= id)
			break;
		s->ids[at] = s->ids[child];
		at = child;
	}
	s->ids[at] = id;
}

static void add_piece(struct range_pieces *p, uint64_t start, uint64_t bytes, uint32_t id)
{
	struct range_piece *last = p->pieces.len ? &p->pieces.v[p->pieces.len - 1] : NULL;

	if (last && last->id == id && last->start + last->bytes == start)
		last->bytes += (uint32_t)bytes;
	else
		p->pieces.v[p->pieces.len++] = (struct range_piece){start, (uint32_t)bytes, id};
}

/* Assigns the addresses between `from` and `to` to the topmost range at each. */
static void sweep_to(struct sweep *s, uint64_t from, uint64_t to)
{
	while (s->len && from < to) {
		const struct range *top = &s->ranges[s->ids[0]];
		uint64_t left =
			from - top->start < top->bytes ? top->bytes - (from - top->start) : 0;

		if (!left) {
			heap_pop(s);
			continue;
		}
		if (left > to - from)
			left = to - from;
		add_piece(s->pieces, from, left, s->ids[0]);
		from += left;
	}
}

static int cut_overlapping(const struct range *ranges, const uint32_t *ids, size_t n,
			   struct range_pieces *p)
{
	AUTO_FREE uint32_t *heap = bigmem_alloc(n, sizeof(*heap));
	AUTO_FREE bool *seen = calloc(n, sizeof(*seen));
	struct sweep s = {.ranges = ranges, .ids = heap, .pieces = p};

	if (!heap || !seen)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (i)
			sweep_to(&s, ranges[ids[i - 1]].start, ranges[ids[i]].start);
		heap_push(&s, ids[i]);
	}
	sweep_to(&s, ranges[ids[n - 1]].start, UINT64_MAX);
	p->covered = n;
	for (size_t i = 0; i < p->pieces.len; i++) {
		p->covered -= !seen[p->pieces.v[i].id];
		seen[p->pieces.v[i].id] = true;
	}
	return 0;
}

static bool any_overlap(const struct range *ranges, const uint32_t *ids, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++) {
		if (ranges[ids[i + 1]].start - ranges[ids[i]].start < ranges[ids[i]].bytes)
			return true;
	}
	return false;
}

static int cut_ranges(const struct range *ranges, size_t n, struct range_pieces *p)
{
	AUTO_FREE uint64_t *addrs = bigmem_alloc(n, sizeof(*addrs));
	AUTO_FREE uint32_t *ids = bigmem_alloc(n, sizeof(*ids));

	if (!addrs || !ids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		addrs[i] = ranges[i].start;
	if (radix_sort(addrs, (uint32_t)n, ids))
		return -ENOMEM;
	bool some = any_overlap(ranges, ids, n);

	/* n starts and n ends make at most 2 n - 1 pieces. */
	p->pieces.cap = some ? 2 * n : n;
	p->pieces.v = bigmem_alloc(p->pieces.cap, sizeof(*p->pieces.v));
	if (!p->pieces.v)
		return -ENOMEM;
	if (some)
		return cut_overlapping(ranges, ids, n, p);
	for (size_t i = 0; i < n; i++) {
		const struct range *r = &ranges[ids[i]];

		p->pieces.v[i] = (struct range_piece){r->start, r->bytes, ids[i]};
	}
	p->pieces.len = n;
	return 0;
}

int ranges_split(const struct range *ranges, size_t n, struct range_pieces *ret_pieces)
{
	struct range_pieces p = {0};

	if (n && cut_ranges(ranges, n, &p)) {
		ranges_free(&p);
		return -ENOMEM;
	}
	*ret_pieces = p;
	return 0;
}

void ranges_free(struct range_pieces *p)
{
	vec_free(&p->pieces);
}

const struct range_piece *ranges_find(const struct range_pieces *p, uint64_t addr)
{
	size_t lo = 0, hi = p->pieces.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->pieces.v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && addr - p->pieces.v[lo - 1].start < p->pieces.v[lo - 1].bytes
		       ? &p->pieces.v[lo - 1]
		       : NULL;
}
