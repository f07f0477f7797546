#include "symbols/store/line_cache.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

#define IDS_MAX ((size_t)INT32_MAX)

void line_cache_free(struct line_cache *l)
{
	vec_free(&l->lines);
	vec_free(&l->chains);
	vec_free(&l->places);
	hashmap_free(&l->chain_ids);
	hashmap_free(&l->place_ids);
	*l = (struct line_cache){0};
}

static uint64_t chain_hash(const struct line_cache_line *lines, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = hash_mix(hash_mix(h, (uint64_t)lines[i].function << 32 | lines[i].file),
			     lines[i].line);
	return h;
}

int line_cache_chain(struct line_cache *l, const struct line_cache_line *lines, size_t n,
		     uint32_t *ret_chain)
{
	uint64_t key = chain_hash(lines, n);
	const uint32_t *known;

	for (; (known = hashmap_get(&l->chain_ids, key)); key++) {
		const struct line_cache_chain *c = &l->chains.v[*known];

		if (c->n == n && !memcmp(l->lines.v + c->first, lines, n * sizeof(*lines))) {
			*ret_chain = *known;
			return 0;
		}
	}
	if (l->lines.len + n > IDS_MAX)
		return -E2BIG;
	if (vec_reserve(&l->lines, n) || vec_reserve(&l->chains, 1))
		return -ENOMEM;
	int r = hashmap_put(&l->chain_ids, key, (uint32_t)l->chains.len);

	if (r)
		return r;
	*ret_chain = (uint32_t)l->chains.len;
	l->chains.v[l->chains.len++] =
		(struct line_cache_chain){(uint32_t)l->lines.len, (uint32_t)n};
	if (n)
		memcpy(l->lines.v + l->lines.len, lines, n * sizeof(*lines));
	l->lines.len += n;
	return 0;
}

static uint64_t place_hash(uint32_t symbol, uint64_t addr)
{
	return hash_mix(addr, symbol);
}

int line_cache_get(const struct line_cache *l, uint32_t symbol, uint64_t addr, uint32_t *ret_chain)
{
	const uint32_t *known;

	for (uint64_t key = place_hash(symbol, addr); (known = hashmap_get(&l->place_ids, key));
	     key++) {
		const struct line_cache_place *p = &l->places.v[*known];

		if (p->addr == addr && p->symbol == symbol) {
			*ret_chain = p->chain;
			return 0;
		}
	}
	return -ENOENT;
}

int line_cache_put(struct line_cache *l, uint32_t symbol, uint64_t addr, uint32_t chain)
{
	uint64_t key = place_hash(symbol, addr);

	if (l->places.len >= IDS_MAX)
		return -E2BIG;
	for (const uint32_t *known; (known = hashmap_get(&l->place_ids, key)); key++) {
		struct line_cache_place *p = &l->places.v[*known];

		if (p->addr == addr && p->symbol == symbol) {
			p->chain = chain;
			return 0;
		}
	}
	int r = vec_reserve(&l->places, 1);

	if (!r)
		r = hashmap_put(&l->place_ids, key, (uint32_t)l->places.len);
	if (!r)
		l->places.v[l->places.len++] = (struct line_cache_place){addr, symbol, chain};
	return r;
}
