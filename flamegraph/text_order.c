#include "flamegraph/text_order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct text_order_entry {
	uint64_t head; /* the first 8 bytes, for quick comparison */
	const char *text;
	uint32_t len;
	uint32_t which; /* 2 * text + (1: a ';' follows) */
};

/* The character after the text: ';', or -1 for the end of the line. */
static int text_order_tail(const struct text_order_entry *e)
{
	return e->which & 1 ? ';' : -1;
}

static int text_order_compare(const void *x, const void *y)
{
	const struct text_order_entry *a = x, *b = y;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	uint32_t len = a->len < b->len ? a->len : b->len;
	int r = memcmp(a->text, b->text, len);

	if (r)
		return r;
	int next_a = a->len > len ? (unsigned char)a->text[len] : text_order_tail(a);
	int next_b = b->len > len ? (unsigned char)b->text[len] : text_order_tail(b);

	if (next_a != next_b)
		return next_a < next_b ? -1 : 1;
	return a->len < b->len ? -1 : a->len > b->len;
}

static void text_order_fill(const struct intern *texts, uint32_t which, struct text_order_entry *e)
{
	unsigned char head[8] = {0};

	e->text = intern_text(texts, which / 2);
	e->len = intern_len(texts, which / 2);
	e->which = which;
	memcpy(head, e->text, e->len < 8 ? e->len : 8);
	if (e->len < 8 && (which & 1))
		head[e->len] = ';';
	e->head = 0;
	for (int i = 0; i < 8; i++)
		e->head = e->head << 8 | head[i];
}

int text_order_make(const struct intern *texts, struct text_order *ret_order)
{
	size_t n = texts->len * 2;
	struct text_order_entry *entries = malloc((n + 1) * sizeof(*entries));
	struct text_order o = {malloc((n + 1) * sizeof(*o.place)), malloc((n + 1) * sizeof(*o.at))};

	if (!entries || !o.place || !o.at) {
		free(entries);
		text_order_free(&o);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		text_order_fill(texts, (uint32_t)i, &entries[i]);
	qsort(entries, n, sizeof(*entries), text_order_compare);
	for (size_t i = 0; i < n; i++) {
		o.at[i] = entries[i].which;
		o.place[entries[i].which] = (uint32_t)i;
	}
	free(entries);
	*ret_order = o;
	return 0;
}

void text_order_free(struct text_order *o)
{
	free(o->place);
	free(o->at);
	*o = (struct text_order){0};
}
