/*
 * Table of distinct texts. Each has a dense 32-bit id, in the order in which the texts were added.
 */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"

#include <stdint.h>

struct intern_entry {
	char *text;   /* NUL-terminated; valid until intern_free */
	uint32_t len; /* bytes, without the NUL */
	uint32_t hash;
};

/* A zeroed struct is an empty table. Ids start at 0. */
struct intern {
	struct arena text;
	struct intern_entry *entries;
	size_t len, cap;
	uint32_t *slots; /* id + 1; 0: free */
	size_t nslots;
};

#define INTERN_TEXT_MAX ((size_t)1 << 20) /* longest text, in bytes */

/*
 * Finds the text, or adds a copy of it. 0; -ENOMEM; -E2BIG: the text is longer than
 * INTERN_TEXT_MAX, or the table holds 2^31 texts.
 */
int intern_put(struct intern *t, const char *text, size_t len, uint32_t *ret_id);

/* Like intern_put, for a NUL-terminated text. */
int intern_str(struct intern *t, const char *text, uint32_t *ret_id);

/* Finds the id of a text. 0 or -ENOENT. */
int intern_find(const struct intern *t, const char *text, size_t len, uint32_t *ret_id);

/* Returns the text of an id from intern_put. */
static inline const char *intern_text(const struct intern *t, uint32_t id)
{
	return t->entries[id].text;
}

static inline uint32_t intern_len(const struct intern *t, uint32_t id)
{
	return t->entries[id].len;
}

/* Replaces the text of an id by a shorter one. The table then finds neither of them. */
void intern_shorten(struct intern *t, uint32_t id, const char *text, size_t len);

void intern_free(struct intern *t);

#endif
