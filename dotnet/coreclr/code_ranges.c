#include "dotnet/coreclr/code_ranges.h"

#include "base/hashmap.h"
#include "dotnet/coreclr/batch.h"

#include <errno.h>

/* Levels of tables: 57 address bits in units of 128 KiB. */
#define LEVELS 5
#define SLOTS 256
#define TABLES_MAX 4096   /* tables of one level; each table of the lowest level covers 32 MiB */
#define CHAIN_MAX 64      /* fragments that cover the same 128 KiB */
#define TAG ((uint64_t)1) /* set in pointers to collectible ranges */

#define TABLE_BYTES (SLOTS * 8)

/* Addresses to read next, without duplicates. */
struct wave {
	VEC(uint64_t) addrs;
	struct hashmap seen;
};

static int wave_add(struct wave *w, uint64_t addr, size_t max)
{
	uint32_t *value;
	int fresh, r = 0;

	addr &= ~TAG;
	if (!addr)
		return 0;
	r = hashmap_entry(&w->seen, addr, 0, &value, &fresh);
	if (r || !fresh)
		return r;
	return w->seen.len > max ? -E2BIG : vec_push(&w->addrs, addr);
}

static void wave_free(struct wave *w)
{
	vec_free(&w->addrs);
	hashmap_free(&w->seen);
}

/*
 * Reads `bytes` at each address of the wave into rows of *ret_data. Unreadable rows become 0.
 * Empties the wave.
 */
static int wave_read(const struct clr_io *io, struct wave *w, size_t bytes, size_t *unread,
		     unsigned char **ret_data, size_t *ret_rows)
{
	struct clr_batch batch = {.io = io};
	size_t n = w->addrs.len;
	unsigned char *data = calloc(n + 1, bytes);
	int r = data ? 0 : -ENOMEM;

	for (size_t i = 0; !r && i < n; i++)
		r = clr_batch_add(&batch, w->addrs.v[i], data + i * bytes, (uint32_t)bytes);
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++) {
		if (clr_batch_ok(&batch, i))
			continue;
		memset(data + i * bytes, 0, bytes);
		++*unread;
	}
	clr_batch_free(&batch);
	if (r) {
		free(data);
		return r;
	}
	*ret_data = data;
	*ret_rows = n;
	return 0;
}

/* Walks from the top table down to the fragments. */
static int read_tables(const struct clr_io *io, const struct clr_contract *c, size_t *unread,
		       struct wave *fragments)
{
	struct wave level = {0};
	int r = wave_add(&level, c->code_range_map + c->at[CLR_RANGE_MAP_TOP], TABLES_MAX);

	for (int l = LEVELS; !r && l >= 1; l--) {
		struct wave next = {0};
		unsigned char *data = NULL;
		size_t rows = 0, max = l > 1 ? TABLES_MAX : CLR_CODE_RANGES_MAX;

		r = wave_read(io, &level, TABLE_BYTES, unread, &data, &rows);
		for (size_t i = 0; !r && i < rows * SLOTS; i++)
			r = wave_add(l > 1 ? &next : fragments, clr_u64(data, i * 8), max);
		free(data);
		wave_free(&level);
		level = next;
	}
	wave_free(&level);
	return r;
}

static size_t fields_end(const struct clr_contract *c, const enum clr_field *fields, size_t n)
{
	size_t end = 0;

	for (size_t i = 0; i < n; i++)
		if (c->at[fields[i]] + 8u > end)
			end = c->at[fields[i]] + 8u;
	return end;
}

/* Follows the chains of fragments, one link of all chains at a time. */
static int read_fragments(const struct clr_io *io, const struct clr_contract *c, size_t *unread,
			  struct wave *fragments, struct wave *sections)
{
	static const enum clr_field used[] = {CLR_FRAGMENT_BEGIN, CLR_FRAGMENT_END,
					      CLR_FRAGMENT_SECTION, CLR_FRAGMENT_NEXT};
	size_t bytes = fields_end(c, used, 4);
	int r = 0;

	for (int link = 0; !r && fragments->addrs.len && link < CHAIN_MAX; link++) {
		unsigned char *data = NULL;
		size_t rows = 0;

		r = wave_read(io, fragments, bytes, unread, &data, &rows);
		fragments->addrs.len = 0;
		for (size_t i = 0; !r && i < rows; i++) {
			const unsigned char *row = data + i * bytes;

			r = wave_add(sections, clr_u64(row, c->at[CLR_FRAGMENT_SECTION]),
				     CLR_CODE_RANGES_MAX);
			if (!r)
				r = wave_add(fragments, clr_u64(row, c->at[CLR_FRAGMENT_NEXT]),
					     CLR_CODE_RANGES_MAX);
		}
		free(data);
	}
	*unread += fragments->addrs.len; /* of chains longer than the limit */
	return r;
}

static int read_sections(const struct clr_io *io, const struct clr_contract *c,
			 struct wave *sections, struct clr_code_ranges *ret)
{
	static const enum clr_field used[] = {CLR_SECTION_BEGIN, CLR_SECTION_END, CLR_SECTION_FLAGS,
					      CLR_SECTION_HEAP, CLR_SECTION_R2R};
	size_t bytes = fields_end(c, used, 5), rows = 0;
	unsigned char *data = NULL;
	int r = wave_read(io, sections, bytes, &ret->unread, &data, &rows);

	for (size_t i = 0; !r && i < rows; i++) {
		const unsigned char *row = data + i * bytes;
		struct clr_code_range range = {
			.start = clr_u64(row, c->at[CLR_SECTION_BEGIN]),
			.end = clr_u64(row, c->at[CLR_SECTION_END]),
			.flags = clr_u32(row, c->at[CLR_SECTION_FLAGS]),
			.heap_list = clr_u64(row, c->at[CLR_SECTION_HEAP]),
			.r2r_module = clr_u64(row, c->at[CLR_SECTION_R2R]),
		};

		if (range.start < range.end)
			r = vec_push(&ret->ranges, range);
	}
	free(data);
	return r;
}

int clr_code_ranges_read(const struct clr_io *io, const struct clr_contract *c,
			 struct clr_code_ranges *ret)
{
	struct wave fragments = {0}, sections = {0};
	int r;

	*ret = (struct clr_code_ranges){0};
	r = read_tables(io, c, &ret->unread, &fragments);
	if (!r)
		r = read_fragments(io, c, &ret->unread, &fragments, &sections);
	if (!r)
		r = read_sections(io, c, &sections, ret);
	wave_free(&fragments);
	wave_free(&sections);
	return r;
}

void clr_code_ranges_free(struct clr_code_ranges *r)
{
	vec_free(&r->ranges);
}
