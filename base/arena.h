/* Memory for many small objects that are freed together. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

/* A zeroed struct is an empty arena. Not thread-safe. */
struct arena {
	struct arena_block *blocks;
	size_t used;        /* bytes taken in the newest block */
	size_t total_bytes; /* bytes obtained from malloc, for memory accounting */
};

/* Allocates size zeroed bytes, aligned to 8; valid until arena_free. NULL: out of memory. */
void *arena_alloc(struct arena *a, size_t size);

/* Like arena_alloc, but aligned to 1 and not zeroed, for text. */
void *arena_alloc_text(struct arena *a, size_t size);

/* Returns a NUL-terminated copy of len bytes. NULL: out of memory. */
char *arena_strndup(struct arena *a, const char *s, size_t len);

/* Frees everything and leaves an empty arena. */
void arena_free(struct arena *a);

#endif
