/* Every distinct text once, known by a dense 32-bit id in the order of arrival. */
#ifndef BASE_INTERN_H
#define BASE_INTERN_H

#include "base/arena.h"

#include <stdint.h>

struct intern_entry {
	const char *text; /* NUL-terminated, lives as long as the table */
	uint32_t len; /* bytes, without the NUL */
	uint32_t hash;
};

/* A zeroed struct is an empty table. Ids start at 0; id 0 is the first text put in. */
struct intern {
	struct arena text;
	struct intern_entry *entries;
	size_t len, cap;
	uint32_t *slots; /* id + 1, 0 is free */
	size_t nslots;
};

#define INTERN_TEXT_MAX ((size_t)1 << 20) /* longest text, bytes */

/* Looks text up, puts a copy in if it is new. 0; -ENOMEM; -E2BIG for a text over INTERN_TEXT_MAX or 2^31 texts. */
int intern_put(struct intern *t, const char *text, size_t len, uint32_t *ret_id);

/* intern_put of a NUL-terminated text. */
int intern_str(struct intern *t, const char *text, uint32_t *ret_id);

/* 0 and the id, or -ENOENT. */
int intern_find(const struct intern *t, const char *text, size_t len, uint32_t *ret_id);

/* The text of an id that intern_put gave out. */
static inline const char *intern_text(const struct intern *t, uint32_t id)
{
	return t->entries[id].text;
}

static inline uint32_t intern_len(const struct intern *t, uint32_t id)
{
	return t->entries[id].len;
}

void intern_free(struct intern *t);

#endif
