#include "symbols/core/image_key.h"

#include "base/hash.h"

#include <string.h>

uint64_t image_key_hash(const struct image_key *key)
{
	uint64_t h = hash_mix((uint64_t)key->path << 32 | (uint32_t)key->pid,
			      (uint64_t)key->kind << 8 | key->build_id.len);

	h = hash_mix(h, (uint64_t)key->maj << 32 | key->min);
	h = hash_mix(h, key->ino);
	h = hash_mix(h, key->ino_generation);
	return hash_mix(h, hash_bytes(key->build_id.bytes, sizeof(key->build_id.bytes)));
}

bool image_key_equal(const struct image_key *a, const struct image_key *b)
{
	return a->path == b->path && a->kind == b->kind && a->pid == b->pid && a->maj == b->maj &&
	       a->min == b->min && a->ino == b->ino && a->ino_generation == b->ino_generation &&
	       a->build_id.len == b->build_id.len &&
	       !memcmp(a->build_id.bytes, b->build_id.bytes, sizeof(a->build_id.bytes));
}
