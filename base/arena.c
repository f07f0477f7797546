#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK_BYTES ((size_t)256 << 10)

struct arena_block {
	struct arena_block *next;
	size_t cap;
	_Alignas(16) unsigned char data[];
};

static void *arena_take(struct arena *a, size_t size, size_t align)
{
	struct arena_block *b = a->blocks;
	size_t at = (a->used + align - 1) & ~(align - 1);

	if (b && at <= b->cap && size <= b->cap - at) {
		a->used = at + size;
		return b->data + at;
	}
	if (size > SIZE_MAX / 2)
		return NULL;
	size_t cap = size > ARENA_BLOCK_BYTES / 4 ? size : ARENA_BLOCK_BYTES;
	struct arena_block *fresh = malloc(sizeof(*fresh) + cap);

	if (!fresh)
		return NULL;
	fresh->cap = cap;
	a->total_bytes += cap;
	if (b && cap != ARENA_BLOCK_BYTES) {
		/*
		 * A large object gets its own block after the newest block, which still has room.
		 */
		fresh->next = b->next;
		b->next = fresh;
		return fresh->data;
	}
	fresh->next = b;
	a->blocks = fresh;
	a->used = size;
	return fresh->data;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p = arena_take(a, size, 8);

	if (p)
		memset(p, 0, size);
	return p;
}

void *arena_alloc_text(struct arena *a, size_t size)
{
	return arena_take(a, size, 1);
}

char *arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *p = len < SIZE_MAX ? arena_alloc_text(a, len + 1) : NULL;

	if (!p)
		return NULL;
	memcpy(p, s, len);
	p[len] = 0;
	return p;
}

void arena_free(struct arena *a)
{
	struct arena_block *b = a->blocks;

	while (b) {
		struct arena_block *next = b->next;

		free(b);
		b = next;
	}
	*a = (struct arena){0};
}
