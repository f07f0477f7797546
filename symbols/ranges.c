#include "symbols/ranges.h"

#include "base/cleanup.h"
#include "symbols/keysort.h"

#include <stdbool.h>

/* The ranges under the sweep's present address, the latest written on top. Those that ended are taken off late. */
struct heap {
	uint32_t *ids;
	size_t len;
};

static void heap_push(struct heap *h, uint32_t id)
{
	size_t at = h->len++;

	for (; at && h->ids[(at - 1) / 2] < id; at = (at - 1) / 2)
		h->ids[at] = h->ids[(at - 1) / 2];
	h->ids[at] = id;
}

static void heap_pop(struct heap *h)
{
	uint32_t id = h->ids[--h->len];
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= h->len)
			break;
		if (child + 1 < h->len && h->ids[child + 1] > h->ids[child])
			child++;
		if (h->ids[child] <= id)
			break;
		h->ids[at] = h->ids[child];
		at = child;
	}
	h->ids[at] = id;
}

static int add_piece(struct range_pieces *p, uint64_t start, uint64_t end, uint32_t id)
{
	struct range_piece *last = p->pieces.len ? &p->pieces.v[p->pieces.len - 1] : NULL;

	if (last && last->id == id && last->end == start) {
		last->end = end;
		return 0;
	}
	return vec_push(&p->pieces, ((struct range_piece){start, end, id, 0}));
}

/* Gives the addresses from `from` up to `to` to what lies on top of each. */
static int sweep_to(const struct range *ranges, struct heap *h, struct range_pieces *p, uint64_t from,
		    uint64_t to)
{
	while (h->len && from < to) {
		const struct range *top = &ranges[h->ids[0]];

		if (top->end <= from) {
			heap_pop(h);
			continue;
		}
		uint64_t end = top->end < to ? top->end : to;

		if (add_piece(p, from, end, h->ids[0]))
			return -ENOMEM;
		from = end;
	}
	return 0;
}

static int cut_overlapping(const struct range *ranges, const struct keysort_key *keys, size_t n,
			   struct range_pieces *p)
{
	AUTO_FREE uint32_t *ids = reallocarray(NULL, n, sizeof(*ids));
	AUTO_FREE bool *seen = calloc(n, sizeof(*seen));
	struct heap heap = {.ids = ids};

	if (!ids || !seen)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (i && sweep_to(ranges, &heap, p, keys[i - 1].addr, keys[i].addr))
			return -ENOMEM;
		heap_push(&heap, keys[i].id);
	}
	if (sweep_to(ranges, &heap, p, keys[n - 1].addr, UINT64_MAX))
		return -ENOMEM;
	p->covered = n;
	for (size_t i = 0; i < p->pieces.len; i++) {
		p->covered -= !seen[p->pieces.v[i].id];
		seen[p->pieces.v[i].id] = true;
	}
	return 0;
}

static int cut(const struct range *ranges, size_t n, struct range_pieces *p)
{
	AUTO_FREE struct keysort_key *keys = reallocarray(NULL, n, sizeof(*keys));
	bool overlap = false;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct keysort_key){ranges[i].start, (uint32_t)i, 0};
	if (keysort(keys, n) || vec_reserve(&p->pieces, n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct range *r = &ranges[keys[i].id];

		overlap |= i + 1 < n && r->end > keys[i + 1].addr;
		p->pieces.v[i] = (struct range_piece){r->start, r->end, keys[i].id, 0};
	}
	if (overlap)
		return cut_overlapping(ranges, keys, n, p);
	p->pieces.len = n;
	return 0;
}

int ranges_cut(const struct range *ranges, size_t n, struct range_pieces *ret_pieces)
{
	struct range_pieces p = {0};

	if (n && cut(ranges, n, &p)) {
		vec_free(&p.pieces);
		return -ENOMEM;
	}
	*ret_pieces = p;
	return 0;
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
	return lo && addr < p->pieces.v[lo - 1].end ? &p->pieces.v[lo - 1] : NULL;
}
