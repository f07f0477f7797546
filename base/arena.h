/* Memory for many small things that live and die together. */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_block;

/* A zeroed struct is an empty arena. Not safe for use by several threads at once. */
struct arena {
	struct arena_block *blocks;
	size_t used; /* bytes taken in the newest block */
	size_t total_bytes; /* bytes held from the allocator, for memory accounting */
};

/* size bytes aligned to 8, zeroed; valid until arena_free. NULL when memory is out. */
void *arena_alloc(struct arena *a, size_t size);

/* As arena_alloc, aligned to 1 and not zeroed: for text. */
void *arena_alloc_text(struct arena *a, size_t size);

/* A NUL-terminated copy of len bytes. NULL when memory is out. */
char *arena_strndup(struct arena *a, const char *s, size_t len);

/* Frees everything and leaves an empty arena. */
void arena_free(struct arena *a);

#endif
