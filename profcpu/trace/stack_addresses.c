#include "profcpu/trace/stack_addresses.h"

#include "base/hash.h"

#include <string.h>

#define ADDRESSES_MANY (STACK_ADDRESSES_MAX / 4)

/* Whether a key is new in a map. */
static bool addresses_is_new(struct hashmap *map, uint64_t key)
{
	uint32_t *value;
	int is_new = 0;

	return !hashmap_entry(map, key, 0, &value, &is_new) && is_new;
}

void stack_addresses_take(struct stack_addresses *s, const void *stack, size_t bytes,
			  uint32_t pointer_bytes)
{
	uint64_t key = hash_bytes(stack, bytes);

	if (hashmap_get(&s->stacks, key))
		return;
	if (s->stacks.len >= STACK_ADDRESSES_STACKS_MAX || !addresses_is_new(&s->stacks, key)) {
		s->stacks_left_out++;
		return;
	}
	for (size_t at = 0; at + pointer_bytes <= bytes; at += pointer_bytes) {
		uint64_t addr = 0;

		memcpy(&addr, (const unsigned char *)stack + at, pointer_bytes);
		/* A return address may be behind its method. */
		addr -= at && addr;
		if (hashmap_get(&s->seen, addr))
			continue;
		if (s->fresh.len >= STACK_ADDRESSES_MAX || vec_push(&s->fresh, addr))
			s->left_out++;
		else
			(void)addresses_is_new(&s->seen, addr);
	}
}

bool stack_addresses_are_many(const struct stack_addresses *s)
{
	return s->stacks.len >= STACK_ADDRESSES_STACKS_MAX || s->fresh.len >= ADDRESSES_MANY;
}

void stack_addresses_clear(struct stack_addresses *s)
{
	s->fresh.len = 0;
	hashmap_free(&s->seen);
	hashmap_free(&s->stacks);
}

void stack_addresses_free(struct stack_addresses *s)
{
	stack_addresses_clear(s);
	vec_free(&s->fresh);
}
