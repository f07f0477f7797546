#include "symbols/store/store_lines.h"

#include "symbols/store/store_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_chain(const void *x, const void *y)
{
	const struct line_cache_place *a = x, *b = y;

	if (a->symbol != b->symbol)
		return a->symbol < b->symbol ? -1 : 1;
	if (a->chain != b->chain)
		return a->chain < b->chain ? -1 : 1;
	return (a->addr > b->addr) - (a->addr < b->addr);
}

int store_lines_begin(struct store_lines *l, const struct lookup_cache *cache)
{
	size_t n = cache->lines.places.len;

	*l = (struct store_lines){.lookup_cache = cache,
				  .places = malloc((n + 1) * sizeof(*l->places))};
	if (!l->places)
		return -ENOMEM;
	if (n) {
		memcpy(l->places, cache->lines.places.v, n * sizeof(*l->places));
		qsort(l->places, n, sizeof(*l->places), by_chain);
	}
	return 0;
}

void store_lines_end(struct store_lines *l)
{
	free(l->places);
	hashmap_free(&l->texts);
}

/* Write a text record, unless the text has a number already. */
static void need_text(struct outbuf *out, struct store_lines *l, uint32_t text)
{
	uint32_t *number;
	int fresh = 0;

	if (text == LOOKUP_NONE)
		return;
	if (hashmap_entry(&l->texts, text, (uint32_t)l->texts.len, &number, &fresh)) {
		out->error = out->error ? out->error : -ENOMEM;
		return;
	}
	if (!fresh)
		return;
	outbuf_str(out, "text ");
	store_text_put_name(out, intern_text(&l->lookup_cache->texts, text),
			    intern_len(&l->lookup_cache->texts, text));
}

static void put_text(struct outbuf *out, const struct store_lines *l, uint32_t text)
{
	const uint32_t *number = text == LOOKUP_NONE ? NULL : hashmap_get(&l->texts, text);

	outbuf_char(out, ' ');
	if (number)
		outbuf_hex(out, *number);
	else
		outbuf_char(out, '-');
}

static void put_chain(struct outbuf *out, struct store_lines *l, uint32_t chain)
{
	const struct line_cache *all = &l->lookup_cache->lines;
	uint32_t n = chain == LOOKUP_NONE ? 0 : all->chains.v[chain].n;
	const struct line_cache_line *lines = n ? all->lines.v + all->chains.v[chain].first : NULL;

	for (uint32_t i = 0; i < n; i++) {
		need_text(out, l, lines[i].function);
		need_text(out, l, lines[i].file);
	}
	outbuf_str(out, "lines");
	for (uint32_t i = 0; i < n; i++) {
		put_text(out, l, lines[i].function);
		put_text(out, l, lines[i].file);
		outbuf_printf(out, " %u", lines[i].line);
	}
	outbuf_str(out, "\nof");
}

void store_lines_put(struct outbuf *out, struct store_lines *l, uint32_t symbol)
{
	size_t lo = 0, n = l->lookup_cache->lines.places.len, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->places[mid].symbol < symbol)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i < n && l->places[i].symbol == symbol; i++) {
		bool new_chain = i == lo || l->places[i].chain != l->places[i - 1].chain;

		if (new_chain && i > lo)
			outbuf_char(out, '\n');
		if (new_chain)
			put_chain(out, l, l->places[i].chain);
		outbuf_char(out, ' ');
		outbuf_hex(out, l->places[i].addr - l->lookup_cache->symbols.v[symbol].start);
	}
	if (lo < n && l->places[lo].symbol == symbol)
		outbuf_char(out, '\n');
}

void store_lines_parser_free(struct store_lines_parser *s)
{
	vec_free(&s->texts);
}

int store_lines_text(struct store_lines_parser *s, struct lookup_cache *cache, char *p)
{
	uint32_t text;
	size_t len;
	int r = store_text_name(p, &len);

	if (!r)
		r = intern_put(&cache->texts, p, len, &text);
	return r ? r : vec_push(&s->texts, text);
}

/* Read the number of a text, or "-". */
static int text_of(const struct store_lines_parser *s, char **p, uint32_t *ret_text)
{
	uint64_t number;

	*ret_text = LOOKUP_NONE;
	if (**p == '-') {
		store_text_field(p);
		return 0;
	}
	if (store_text_hex(p, &number) || number >= s->texts.len)
		return -EBADMSG;
	*ret_text = s->texts.v[number];
	return 0;
}

int store_lines_chain(struct store_lines_parser *s, struct lookup_cache *cache, char *p)
{
	struct line_cache_line lines[LINE_CACHE_CHAIN_MAX];
	size_t n = 0;

	for (; *p; n++) {
		struct line_cache_line *line = &lines[n];
		const char *number;
		char *end;

		if (n == LINE_CACHE_CHAIN_MAX || text_of(s, &p, &line->function) ||
		    text_of(s, &p, &line->file) || !(number = store_text_field(&p)))
			return -EBADMSG;
		unsigned long value = strtoul(number, &end, 10);

		if (*end || *number < '0' || *number > '9' || value > UINT32_MAX)
			return -EBADMSG;
		line->line = (uint32_t)value;
	}
	s->has_chain = true;
	s->chain = LOOKUP_NONE;
	return n ? line_cache_chain(&cache->lines, lines, n, &s->chain) : 0;
}

/* Read the addresses that have the lines above. */
int store_lines_of(struct store_lines_parser *s, struct lookup_cache *cache, uint32_t symbol,
		   char *p)
{
	uint64_t x;
	uint32_t before;
	int r = 0;

	if (symbol == LOOKUP_NONE || !s->has_chain)
		return -EBADMSG;
	while (!r && *p) {
		r = store_text_hex(&p, &x);
		x += cache->symbols.v[symbol].start;
		if (!r && line_cache_get(&cache->lines, symbol, x, &before))
			r = lookup_cache_fits(cache)
				    ? line_cache_put(&cache->lines, symbol, x, s->chain)
				    : -ENOSPC;
	}
	return r;
}
