#include "profcpu/jit/known.h"

#include "symbols/jit/methods.h"

/* A split takes so many bytes for each byte of methods. */
#define KNOWN_SPLIT 5

void jit_known_free(struct jit_known *k)
{
	vec_free(&k->methods);
	ranges_free(&k->pieces);
	share_release(k->memory, &k->counted);
}

/* Makes room for one more method, with the memory to split all of them. */
static bool has_room(struct jit_known *k)
{
	return k->methods.len < JIT_METHODS_MAX && !vec_reserve(&k->methods, 1) &&
	       !share_count(k->memory, &k->counted, KNOWN_SPLIT * vec_bytes(&k->methods));
}

void jit_known_add(struct jit_known *k, uint64_t start, uint32_t bytes)
{
	if (!bytes || bytes > UINT64_MAX - start || k->over)
		return;
	k->over = !has_room(k);
	if (!k->over)
		k->methods.v[k->methods.len++] = (struct range){.start = start, .bytes = bytes};
	else
		jit_known_free(k);
}

void jit_known_flush(struct jit_known *k)
{
	struct range_pieces pieces = {0};

	if (k->over || ranges_split(k->methods.v, k->methods.len, &pieces)) {
		k->over = true;
		return;
	}
	ranges_free(&k->pieces);
	k->pieces = pieces;
}

/* The first piece that ends after addr. */
static size_t find_piece(const struct jit_known *k, uint64_t addr)
{
	size_t low = 0, high = k->pieces.pieces.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct range_piece *p = &k->pieces.pieces.v[middle];

		if (p->start + p->bytes - 1 < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool jit_known_find_gap(const struct jit_known *k, uint64_t start, uint64_t end,
			uint64_t *ret_start, uint64_t *ret_end)
{
	size_t i = find_piece(k, start);

	for (; !k->over && start < end; i++) {
		const struct range_piece *p =
			i < k->pieces.pieces.len ? &k->pieces.pieces.v[i] : NULL;

		if (!p || p->start > start) {
			*ret_start = start;
			*ret_end = p && p->start < end ? p->start : end;
			return true;
		}
		if (p->bytes >= UINT64_MAX - p->start)
			return false;
		start = p->start + p->bytes;
	}
	return false;
}
