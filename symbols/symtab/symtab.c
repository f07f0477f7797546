#include "symbols/symtab/symtab.h"

#include "base/bigmem.h"

#include <stdlib.h>
#include <string.h>

#define SYMTAB_INDEX_MIN 64 /* with fewer pieces there is no index */

static const struct symtab_piece *piece_at(const struct symtab *t, uint64_t addr)
{
	size_t lo = 0, hi = t->pieces.len;

	if (t->nstarts && addr >= t->base) {
		uint64_t at = (addr - t->base) >> t->shift;

		if (at + 1 < t->nstarts) {
			lo = t->starts[at];
			hi = t->starts[at + 1];
			hi += hi < t->pieces.len;
		}
	}
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->pieces.v[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->pieces.len && t->pieces.v[lo].start <= addr && addr < t->pieces.v[lo].end
		       ? &t->pieces.v[lo]
		       : NULL;
}

/* The index has about as many steps as there are pieces. */
int symtab_index_pieces(struct symtab *t)
{
	size_t n = t->pieces.len, at = 0;
	uint64_t span;

	if (n < SYMTAB_INDEX_MIN)
		return 0;
	t->base = t->pieces.v[0].start;
	span = t->pieces.v[n - 1].end - t->base;
	while (span >> t->shift > n)
		t->shift++;
	t->nstarts = (size_t)(span >> t->shift) + 2;
	t->starts = bigmem_alloc(t->nstarts, sizeof(*t->starts));
	if (!t->starts)
		return -ENOMEM;
	for (size_t i = 0; i < t->nstarts; i++) {
		while (at < n && (t->pieces.v[at].end - 1 - t->base) >> t->shift < i)
			at++;
		t->starts[i] = (uint32_t)at;
	}
	return 0;
}

const struct symtab_entry *symtab_entry_at(const struct symtab *t, uint64_t addr)
{
	const struct symtab_piece *piece = piece_at(t, addr);

	return piece ? &t->entries.v[piece->entry] : NULL;
}

/* Measure a name at its first use. Cut an enormous one, so that later buffers can hold it. */
static int measure(struct symtab *t, struct symtab_entry *e)
{
	size_t len = strnlen(e->name, SYMTAB_NAME_MAX + 1);

	if (len > SYMTAB_NAME_MAX) {
		len = SYMTAB_NAME_MAX;
		char *cut = arena_strndup(&t->names, e->name, len);

		if (!cut)
			return -ENOMEM;
		e->name = cut;
	}
	e->name_len = (uint32_t)len;
	return 0;
}

static int symtab_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		       struct symbol *ret_symbol)
{
	struct symtab *t = (struct symtab *)p;
	const struct symtab_piece *piece = piece_at(t, addr);

	(void)time_ns;
	if (!piece)
		return -ENOENT;
	struct symtab_entry *e = &t->entries.v[piece->entry];

	if (e->name_len == SYMTAB_LEN_UNKNOWN && measure(t, e))
		return -ENOMEM;
	*ret_symbol = (struct symbol){
		.name = e->name,
		.name_len = e->name_len,
		.source = e->source,
		.start = piece->start,
		.end = piece->end,
		.base = e->start,
		.piece = (uint32_t)(piece - t->pieces.v),
		.until_ns = UINT64_MAX,
	};
	return 0;
}

static uint32_t symtab_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	const struct symtab *t = (const struct symtab *)p;
	const struct symtab_piece *piece = piece_at(t, addr);

	(void)time_ns;
	return piece ? (uint32_t)(piece - t->pieces.v) : SYMBOL_NO_PIECE;
}

static void symtab_free(struct symbol_provider *p)
{
	struct symtab *t = (struct symtab *)p;

	arena_free(&t->names);
	vec_free(&t->entries);
	vec_free(&t->pieces);
	free(t->starts);
	free(t);
}

static const struct symbol_provider_ops symtab_ops = {
	.name = "symtab",
	.find = symtab_find,
	.piece = symtab_piece,
	.free = symtab_free,
};

int symtab_new(struct symtab **ret_table)
{
	struct symtab *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->provider.ops = &symtab_ops;
	*ret_table = t;
	return 0;
}

int symtab_reserve(struct symtab *t, size_t n)
{
	if (n > SYMTAB_ENTRIES_MAX)
		n = SYMTAB_ENTRIES_MAX;
	if (t->entries.cap || !n)
		return 0;
	t->entries.v = bigmem_alloc(n, sizeof(*t->entries.v));
	if (!t->entries.v)
		return -ENOMEM;
	t->entries.cap = n;
	return 0;
}

int symtab_add(struct symtab *t, const struct symtab_entry *entry, int copy_name)
{
	if (t->entries.len >= SYMTAB_ENTRIES_MAX)
		return -E2BIG;
	if (vec_push(&t->entries, *entry))
		return -ENOMEM;
	if (!copy_name)
		return 0;
	struct symtab_entry *e = &t->entries.v[t->entries.len - 1];
	size_t len = e->name_len == SYMTAB_LEN_UNKNOWN ? strlen(e->name) : e->name_len;

	if (len > SYMTAB_NAME_MAX)
		len = SYMTAB_NAME_MAX;
	e->name = arena_strndup(&t->names, entry->name, len);
	e->name_len = (uint32_t)len;
	if (!e->name) {
		t->entries.len--;
		return -ENOMEM;
	}
	return 0;
}

void symtab_end_pass(struct symtab *t, bool fix_up)
{
	if (t->npasses < SYMTAB_PASSES_MAX)
		t->passes[t->npasses++] = (struct symtab_pass){(uint32_t)t->entries.len, fix_up};
}
