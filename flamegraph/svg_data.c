#include "flamegraph/svg_data.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "flamegraph/svg_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define SVG_DATA_SUBBITS 3u
#define SVG_DATA_BUCKETS (64u << SVG_DATA_SUBBITS)

/* The bucket of a weight x > 0. Each power of two has eight buckets. */
static size_t svg_data_bucket(uint64_t x)
{
	unsigned top = 63 - (unsigned)__builtin_clzll(x);
	uint64_t sub = top >= SVG_DATA_SUBBITS ? x >> (top - SVG_DATA_SUBBITS)
					       : x << (SVG_DATA_SUBBITS - top);

	return (size_t)top << SVG_DATA_SUBBITS | (sub & ((1u << SVG_DATA_SUBBITS) - 1));
}

/* The least weight that at most max nodes reach, rounded to a bucket. */
static uint64_t svg_data_find_cut(const struct tree *t, size_t max)
{
	size_t counts[SVG_DATA_BUCKETS] = {0}, kept = 0, bucket = SVG_DATA_BUCKETS;
	uint64_t cut = UINT64_MAX;

	if (t->nodes.len <= max)
		return 1;
	for (size_t i = 0; i < t->nodes.len; i++)
		if (t->nodes.v[i].total)
			counts[svg_data_bucket(t->nodes.v[i].total)]++;
	while (bucket && kept + counts[bucket - 1] <= max)
		kept += counts[--bucket];
	if (!bucket)
		return 1;
	for (size_t i = 0; i < t->nodes.len; i++) {
		uint64_t total = t->nodes.v[i].total;

		if (total && svg_data_bucket(total) >= bucket && total < cut)
			cut = total;
	}
	return cut;
}

static uint64_t svg_data_gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static int svg_data_label(const struct tree *t, uint32_t node, struct palette *palette,
			  struct hashmap *ids, struct svg_data *d)
{
	const struct tree_node *n = &t->nodes.v[node];
	enum palette_slot slot = palette_node_slot(t, node);
	uint64_t key = (uint64_t)n->name << 16 | (uint64_t)slot << 8 | (unsigned char)n->annotation;
	uint32_t *id;
	int fresh;
	int r = hashmap_entry(ids, key, (uint32_t)d->labels.len, &id, &fresh);

	if (!r && fresh) {
		struct svg_label label = {
			.name = n->name, .slot = (uint8_t)slot, .annotation = n->annotation};
		struct palette_frame frame = {
			.name = intern_text(&t->names, n->name),
			.len = slot == PALETTE_ALL
				       ? 0
				       : intern_len(&t->names, n->name), /* like flamegraph.pl */
			.slot = slot,
			.annotation = n->annotation,
		};

		d->name_bytes += intern_len(&t->names, n->name) + 2;
		r = palette_color(palette, &frame, &label.color);
		if (!r)
			r = vec_push(&d->labels, label);
	}
	if (r)
		return r;
	d->labels.v[*id].uses++;
	d->label_of[node] = *id;
	return 0;
}

static int svg_data_compare_uses(const void *a, const void *b)
{
	const struct svg_label *const *x = a, *const *y = b;

	if ((*x)->uses != (*y)->uses)
		return (*x)->uses > (*y)->uses ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

/* The labels in the order of the written table. NULL: out of memory. */
static struct svg_label **svg_data_sorted(const struct svg_data *d)
{
	struct svg_label **sorted = malloc((d->labels.len + 1) * sizeof(struct svg_label *));

	for (size_t i = 0; sorted && i < d->labels.len; i++)
		sorted[i] = &d->labels.v[i];
	if (sorted)
		qsort(sorted, d->labels.len, sizeof(struct svg_label *), svg_data_compare_uses);
	return sorted;
}

static int svg_data_place(struct svg_data *d)
{
	AUTO_FREE struct svg_label **sorted = svg_data_sorted(d);

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < d->labels.len; i++)
		sorted[i]->place = (uint32_t)i;
	return 0;
}

/* Makes the data with max frames at most. */
static int svg_data_try(const struct tree *t, const struct layout *layout, struct palette *palette,
			size_t max, struct svg_data *ret_data)
{
	struct svg_data d = {.cut = svg_data_find_cut(t, max), .max_delta = 1};
	struct hashmap ids = {0};
	int r = 0;

	d.label_of = malloc(t->nodes.len * sizeof(*d.label_of));
	if (!d.label_of)
		return -ENOMEM;
	for (size_t i = 0; !r && i < layout->n; i++) {
		uint32_t node = layout->order[i];
		const struct tree_node *n = &t->nodes.v[node];
		double delta = fabs(tree_delta_self(t, node));

		if (delta > d.max_delta)
			d.max_delta = delta;
		if (n->total < d.cut)
			continue;
		if (d.unit != 1)
			d.unit = svg_data_gcd(svg_data_gcd(n->total, d.unit), n->start);
		d.nodes++;
		r = svg_data_label(t, node, palette, &ids, &d);
	}
	hashmap_free(&ids);
	if (!d.unit)
		d.unit = 1;
	if (r)
		svg_data_free(&d);
	else
		*ret_data = d;
	return r;
}

int svg_data_make(const struct tree *t, const struct layout *layout, struct palette *palette,
		  struct svg_data *ret_data)
{
	struct svg_data d = {0};
	int r = svg_data_try(t, layout, palette, SVG_DATA_NODES_MAX, &d);

	/* Long or mostly different names need too much space: try with fewer frames. */
	while (!r && d.name_bytes > SVG_DATA_NAMES_MAX && d.nodes > 1) {
		size_t fewer = d.nodes / 2;

		svg_data_free(&d);
		r = svg_data_try(t, layout, palette, fewer, &d);
	}
	if (!r)
		r = svg_data_place(&d);
	if (r)
		svg_data_free(&d);
	else
		*ret_data = d;
	return r;
}

void svg_data_free(struct svg_data *d)
{
	vec_free(&d->labels);
	free(d->label_of);
	*d = (struct svg_data){0};
}

/* Writes at most 13 characters. */
static char *svg_data_number(char *p, uint64_t x)
{
	for (; x >= 32; x >>= 5)
		*p++ = (char)(63 + 32 + (x & 31));
	*p++ = (char)(63 + x);
	return p;
}

static char *svg_data_signed(char *p, uint64_t after, uint64_t before)
{
	return svg_data_number(p,
			       after >= before ? (after - before) * 2 : (before - after) * 2 + 1);
}

void svg_data_write_labels(const struct tree *t, const struct svg_data *d, struct outbuf *out,
			   bool ascii)
{
	AUTO_FREE struct svg_label **sorted = svg_data_sorted(d);

	if (!sorted) {
		out->error = out->error ? out->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < d->labels.len; i++) {
		const struct svg_label *l = sorted[i];

		outbuf_char(out, palette_slot_letters[l->slot]);
		svg_text_put(out, intern_text(&t->names, l->name), intern_len(&t->names, l->name),
			     SIZE_MAX, ascii);
		outbuf_char(out, '\n');
	}
}

void svg_data_write_colors(const struct svg_data *d, struct outbuf *out)
{
	AUTO_FREE struct svg_label **sorted = svg_data_sorted(d);
	char buf[16];

	if (!sorted) {
		out->error = out->error ? out->error : -ENOMEM;
		return;
	}
	for (size_t i = 0; i < d->labels.len; i++)
		outbuf_put(out, buf,
			   (size_t)(svg_data_number(buf, sorted[i]->color & ~PALETTE_CLASS) - buf));
}

int svg_data_write_frames(const struct tree *t, const struct layout *layout,
			  const struct svg_data *d, struct outbuf *out)
{
	/* By depth: the start of the next node. */
	AUTO_FREE uint64_t *ends = calloc((size_t)t->depth + 2, sizeof(*ends));
	uint32_t level = 0;
	char buf[96];

	if (!ends)
		return -ENOMEM;
	for (size_t i = 0; i < layout->n; i++) {
		uint32_t node = layout->order[i];
		const struct tree_node *n = &t->nodes.v[node];

		if (n->total < d->cut)
			continue;
		bool same = node != TREE_ROOT && n->total == t->nodes.v[n->parent].total;
		uint64_t gap = n->start - ends[n->depth];
		char *p = svg_data_number(buf,
					  (uint64_t)(level - n->depth) * 4 + same * 2 + (gap != 0));

		if (gap)
			p = svg_data_number(p, gap / d->unit);
		p = svg_data_number(p, d->labels.v[d->label_of[node]].place);
		if (!same)
			p = svg_data_number(p, n->total / d->unit);
		if (t->differential) {
			p = svg_data_signed(p, n->self, t->before.v[node].self);
			p = svg_data_signed(p, n->total, t->before.v[node].total);
		}
		outbuf_put(out, buf, (size_t)(p - buf));
		ends[n->depth] = n->start + n->total;
		ends[n->depth + 1] = n->start;
		level = n->depth + 1;
	}
	return 0;
}
