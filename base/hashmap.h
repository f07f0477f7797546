/* Hash map from a 64-bit key to a 32-bit value, with open addressing. */
#ifndef BASE_HASHMAP_H
#define BASE_HASHMAP_H

#include <stddef.h>
#include <stdint.h>

struct hashmap_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

/* A zeroed struct is an empty map. */
struct hashmap {
	struct hashmap_slot *slots;
	size_t nslots, len;
};

/* Returns a pointer to the key's value, or NULL; valid until the next put. */
uint32_t *hashmap_get(const struct hashmap *m, uint64_t key);

/* Sets or replaces the key's value. 0 or -ENOMEM. */
int hashmap_put(struct hashmap *m, uint64_t key, uint32_t value);

/*
 * Finds the key's value or adds one that holds `fresh`; *ret_new (may be NULL): it was added.
 * *ret_value is valid until the next put. 0 or -ENOMEM.
 */
int hashmap_entry(struct hashmap *m, uint64_t key, uint32_t fresh, uint32_t **ret_value,
		  int *ret_new);

/* Removes the key, if it is there. Pointers to values become invalid. */
void hashmap_remove(struct hashmap *m, uint64_t key);

/* Bytes of memory that the map takes. */
static inline size_t hashmap_bytes(const struct hashmap *m)
{
	return m->nslots * sizeof(*m->slots);
}

void hashmap_free(struct hashmap *m);

#endif
