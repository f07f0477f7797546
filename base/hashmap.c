#include "base/hashmap.h"

#include "base/bigmem.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

static struct hashmap_slot *hashmap_slot(struct hashmap_slot *slots, size_t nslots, uint64_t key)
{
	size_t i = hash_u64(key) & (nslots - 1);

	while (slots[i].used && slots[i].key != key)
		i = (i + 1) & (nslots - 1);
	return &slots[i];
}

uint32_t *hashmap_get(const struct hashmap *m, uint64_t key)
{
	if (!m->nslots)
		return NULL;
	struct hashmap_slot *s = hashmap_slot(m->slots, m->nslots, key);

	return s->used ? &s->value : NULL;
}

static int hashmap_rehash(struct hashmap *m)
{
	size_t n = m->nslots ? m->nslots * 2 : 64;
	struct hashmap_slot *slots = bigmem_zeroed(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->nslots; i++)
		if (m->slots[i].used)
			*hashmap_slot(slots, n, m->slots[i].key) = m->slots[i];
	free(m->slots);
	m->slots = slots;
	m->nslots = n;
	return 0;
}

int hashmap_entry(struct hashmap *m, uint64_t key, uint32_t fresh, uint32_t **ret_value,
		  int *ret_new)
{
	if (m->len * 3 >= m->nslots * 2 && hashmap_rehash(m))
		return -ENOMEM;
	struct hashmap_slot *s = hashmap_slot(m->slots, m->nslots, key);

	if (ret_new)
		*ret_new = !s->used;
	if (!s->used) {
		*s = (struct hashmap_slot){key, fresh, 1};
		m->len++;
	}
	*ret_value = &s->value;
	return 0;
}

int hashmap_put(struct hashmap *m, uint64_t key, uint32_t value)
{
	uint32_t *place;
	int r = hashmap_entry(m, key, value, &place, NULL);

	if (!r)
		*place = value;
	return r;
}

/* Later keys that the slot kept from their own place move up, so a search never meets a gap. */
void hashmap_remove(struct hashmap *m, uint64_t key)
{
	size_t mask = m->nslots - 1;
	struct hashmap_slot *gap = m->nslots ? hashmap_slot(m->slots, m->nslots, key) : NULL;

	if (!gap || !gap->used)
		return;
	for (size_t i = (size_t)(gap - m->slots + 1) & mask; m->slots[i].used; i = (i + 1) & mask) {
		size_t home = hash_u64(m->slots[i].key) & mask;

		if (((i - home) & mask) < ((i - (size_t)(gap - m->slots)) & mask))
			continue;
		*gap = m->slots[i];
		gap = &m->slots[i];
	}
	gap->used = 0;
	m->len--;
}

void hashmap_free(struct hashmap *m)
{
	free(m->slots);
	*m = (struct hashmap){0};
}
