#include "base/intern.h"

#include "base/bigmem.h"
#include "base/hash.h"
#include "base/vec.h"

#include <errno.h>

/*
 * Returns the slot that holds the text, or the free slot where it belongs. nslots is a power of
 * two, and a slot is always free.
 */
static size_t intern_slot(const struct intern *t, const char *text, size_t len, uint32_t hash)
{
	size_t mask = t->nslots - 1, i = hash & mask;

	for (; t->slots[i]; i = (i + 1) & mask) {
		const struct intern_entry *e = &t->entries[t->slots[i] - 1];

		if (e->hash == hash && e->len == len && !memcmp(e->text, text, len))
			break;
	}
	return i;
}

static int intern_rehash(struct intern *t)
{
	size_t n = t->nslots ? t->nslots * 2 : 256;
	uint32_t *slots = bigmem_zeroed(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < t->len; id++) {
		size_t i = t->entries[id].hash & (n - 1);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = n;
	return 0;
}

int intern_find(const struct intern *t, const char *text, size_t len, uint32_t *ret_id)
{
	if (!t->nslots)
		return -ENOENT;
	uint32_t slot = t->slots[intern_slot(t, text, len, (uint32_t)hash_bytes(text, len))];

	if (!slot)
		return -ENOENT;
	*ret_id = slot - 1;
	return 0;
}

int intern_put(struct intern *t, const char *text, size_t len, uint32_t *ret_id)
{
	if (len > INTERN_TEXT_MAX || t->len >= INT32_MAX)
		return -E2BIG;
	uint32_t hash = (uint32_t)hash_bytes(text, len);

	if (t->len * 2 >= t->nslots && intern_rehash(t))
		return -ENOMEM;
	size_t i = intern_slot(t, text, len, hash);

	if (!t->slots[i]) {
		if (t->len == t->cap &&
		    vec_grow((void **)&t->entries, &t->cap, sizeof(*t->entries), t->len + 1))
			return -ENOMEM;
		char *copy = arena_strndup(&t->text, text, len);

		if (!copy)
			return -ENOMEM;
		t->entries[t->len++] = (struct intern_entry){copy, (uint32_t)len, hash};
		t->slots[i] = (uint32_t)t->len;
	}
	*ret_id = t->slots[i] - 1;
	return 0;
}

int intern_str(struct intern *t, const char *text, uint32_t *ret_id)
{
	return intern_put(t, text, strlen(text), ret_id);
}

void intern_shorten(struct intern *t, uint32_t id, const char *text, size_t len)
{
	struct intern_entry *e = &t->entries[id];

	memcpy(e->text, text, len);
	e->text[len] = 0;
	e->len = (uint32_t)len;
}

void intern_free(struct intern *t)
{
	arena_free(&t->text);
	free(t->entries);
	free(t->slots);
	*t = (struct intern){0};
}
