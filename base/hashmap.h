/* Hash map from a 64-bit key to a 32-bit value, open addressing. */
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

/* The value's place, or NULL. Valid until the next put. */
uint32_t *hashmap_get(const struct hashmap *m, uint64_t key);

/* Sets or replaces. 0 or -ENOMEM. */
int hashmap_put(struct hashmap *m, uint64_t key, uint32_t value);

/* Finds the value's place or makes one holding `fresh`; *ret_new (may be NULL) says which. 0 or -ENOMEM.
 * The place is valid until the next put. */
int hashmap_entry(struct hashmap *m, uint64_t key, uint32_t fresh, uint32_t **ret_value, int *ret_new);

void hashmap_free(struct hashmap *m);

#endif
