#include "symbols/store/lookup_cache.h"

#include "base/hash.h"
#include "base/printable.h"

#include <errno.h>
#include <string.h>

#define LOOKUP_IDS_MAX ((size_t)INT32_MAX)

void lookup_cache_free(struct lookup_cache *cache)
{
	intern_free(&cache->texts);
	vec_free(&cache->images);
	vec_free(&cache->symbols);
	vec_free(&cache->entries);
	for (size_t i = 0; i < cache->stripped.len; i++)
		free(cache->stripped.v[i].segments);
	vec_free(&cache->stripped);
	line_cache_free(&cache->lines);
	vec_free(&cache->processes);
	hashmap_free(&cache->image_ids);
	hashmap_free(&cache->symbol_ids);
	hashmap_free(&cache->entry_ids);
	hashmap_free(&cache->process_ids);
	fair_share_free(&cache->names);
	fair_share_free(&cache->line_bytes);
	*cache = (struct lookup_cache){0};
}

int lookup_cache_find_image(const struct lookup_cache *cache, const struct image_key *key,
			    uint32_t *ret_image)
{
	const uint32_t *place;

	for (uint64_t hash = image_key_hash(key); (place = hashmap_get(&cache->image_ids, hash));
	     hash++) {
		if (image_key_equal(&cache->images.v[*place].key, key)) {
			*ret_image = *place;
			return 0;
		}
	}
	return -ENOENT;
}

/* Put index under the first free key that is not below `key`. */
static int lookup_cache_index(struct hashmap *m, uint64_t key, size_t index)
{
	while (hashmap_get(m, key))
		key++;
	return hashmap_put(m, key, (uint32_t)index);
}

int lookup_cache_image(struct lookup_cache *cache, const struct image_key *key, uint32_t *ret_image)
{
	struct lookup_cache_image image = {.key = *key};

	if (!lookup_cache_find_image(cache, key, ret_image))
		return 0;
	if (cache->full || cache->images.len >= LOOKUP_IDS_MAX)
		return -E2BIG;
	if (vec_push(&cache->images, image))
		return -ENOMEM;
	if (lookup_cache_index(&cache->image_ids, image_key_hash(key), cache->images.len - 1)) {
		cache->images.len--;
		return -ENOMEM;
	}
	*ret_image = (uint32_t)cache->images.len - 1;
	return 0;
}

int lookup_cache_stripped(struct lookup_cache *cache, uint32_t image,
			  const struct build_id *build_id, const struct elf_segment *segments,
			  size_t nsegments)
{
	struct lookup_cache_stripped stripped = {.build_id = *build_id, .nsegments = nsegments};

	if (cache->images.v[image].stripped)
		return 0;
	stripped.segments = calloc(nsegments + 1, sizeof(*segments));
	if (!stripped.segments)
		return -ENOMEM;
	if (nsegments)
		memcpy(stripped.segments, segments, nsegments * sizeof(*segments));
	if (vec_push(&cache->stripped, stripped)) {
		free(stripped.segments);
		return -ENOMEM;
	}
	cache->images.v[image].stripped = (uint32_t)cache->stripped.len;
	return 0;
}

int lookup_cache_process(struct lookup_cache *cache, const struct lookup_cache_process *process)
{
	uint32_t *place;
	int fresh, r = vec_reserve(&cache->processes, 1);

	if (!r)
		r = hashmap_entry(&cache->process_ids, (uint32_t)process->pid,
				  (uint32_t)cache->processes.len, &place, &fresh);
	if (r)
		return r;
	cache->processes.len += fresh != 0;
	cache->processes.v[*place] = *process;
	return 0;
}

const struct lookup_cache_process *lookup_cache_find_process(const struct lookup_cache *cache,
							     int32_t pid)
{
	const uint32_t *place = hashmap_get(&cache->process_ids, (uint32_t)pid);

	return place ? &cache->processes.v[*place] : NULL;
}

static uint64_t lookup_cache_symbol_hash(const struct lookup_cache_symbol *s)
{
	uint64_t h = hash_mix(s->start, s->end);

	h = hash_mix(h, (uint64_t)s->image << 32 | s->name);
	if (s->from_ns || s->until_ns != UINT64_MAX)
		h = hash_mix(hash_mix(h, s->from_ns), s->until_ns);
	return hash_mix(h, (uint64_t)s->module << 32 | s->source);
}

static bool lookup_cache_symbol_equal(const struct lookup_cache_symbol *a,
				      const struct lookup_cache_symbol *b)
{
	return a->start == b->start && a->end == b->end && a->image == b->image &&
	       a->name == b->name && a->module == b->module && a->source == b->source &&
	       a->from_ns == b->from_ns && a->until_ns == b->until_ns;
}

int lookup_cache_symbol(struct lookup_cache *cache, const struct lookup_cache_symbol *symbol,
			uint32_t *ret_symbol)
{
	uint64_t hash = lookup_cache_symbol_hash(symbol);
	const uint32_t *place;

	for (uint64_t key = hash; (place = hashmap_get(&cache->symbol_ids, key)); key++) {
		if (lookup_cache_symbol_equal(&cache->symbols.v[*place], symbol)) {
			*ret_symbol = *place;
			return 0;
		}
	}
	if (cache->symbols.len >= LOOKUP_IDS_MAX)
		return -E2BIG;
	if (vec_push(&cache->symbols, *symbol))
		return -ENOMEM;
	if (lookup_cache_index(&cache->symbol_ids, hash, cache->symbols.len - 1)) {
		cache->symbols.len--;
		return -ENOMEM;
	}
	*ret_symbol = (uint32_t)cache->symbols.len - 1;
	return 0;
}

int lookup_cache_name(struct lookup_cache *cache, const char *name, size_t len, uint32_t *ret_name)
{
	char shown[LOOKUP_NAME_MAX];
	bool cut;

	if (len > LOOKUP_NAME_MAX) {
		len = printable_copy_distinct(name, len, LOOKUP_NAME_MAX, shown, &cut);
		name = shown;
	}
	uint64_t bytes = len + LOOKUP_SYMBOL_BYTES;

	if (bytes > fair_share_room(&cache->names, cache->taker)) {
		cache->left_out++;
		return -ENOSPC;
	}
	fair_share_take(&cache->names, cache->taker, bytes);
	return intern_put(&cache->texts, name, len, ret_name);
}

static uint64_t lookup_cache_entry_hash(uint32_t image, uint64_t addr)
{
	return hash_mix(addr, image);
}

int lookup_cache_get(const struct lookup_cache *cache, uint32_t image, uint64_t addr,
		     uint64_t time_ns, uint32_t *ret_symbol)
{
	const uint32_t *place;
	int r = -ENOENT;

	for (uint64_t key = lookup_cache_entry_hash(image, addr);
	     (place = hashmap_get(&cache->entry_ids, key)); key++) {
		const struct lookup_cache_entry *e = &cache->entries.v[*place];

		if (e->image != image || e->addr != addr)
			continue;
		if (e->symbol == LOOKUP_NONE || (time_ns >= cache->symbols.v[e->symbol].from_ns &&
						 time_ns < cache->symbols.v[e->symbol].until_ns)) {
			*ret_symbol = e->symbol;
			return 0;
		}
		r = -ESTALE;
	}
	return r;
}

bool lookup_cache_fits(const struct lookup_cache *cache)
{
	const struct line_cache *l = &cache->lines;
	uint64_t slots = cache->image_ids.nslots + cache->symbol_ids.nslots +
			 cache->entry_ids.nslots + cache->process_ids.nslots + l->chain_ids.nslots +
			 l->place_ids.nslots;
	uint64_t bytes = cache->texts.text.total_bytes +
			 cache->texts.cap * sizeof(*cache->texts.entries) +
			 cache->texts.nslots * sizeof(*cache->texts.slots) +
			 cache->images.cap * sizeof(*cache->images.v) +
			 cache->symbols.cap * sizeof(*cache->symbols.v) +
			 cache->entries.cap * sizeof(*cache->entries.v) +
			 cache->stripped.cap * sizeof(*cache->stripped.v) +
			 cache->processes.cap * sizeof(*cache->processes.v) +
			 l->lines.cap * sizeof(*l->lines.v) + l->chains.cap * sizeof(*l->chains.v) +
			 l->places.cap * sizeof(*l->places.v) + slots * sizeof(struct hashmap_slot);

	return !cache->bytes_max || bytes <= cache->bytes_max / 2;
}

int lookup_cache_put(struct lookup_cache *cache, uint32_t image, uint64_t addr, uint32_t symbol)
{
	uint64_t key = lookup_cache_entry_hash(image, addr);
	int times = 0;

	while (times < LOOKUP_TIMES_MAX && hashmap_get(&cache->entry_ids, key)) {
		key++;
		times++;
	}
	if (times == LOOKUP_TIMES_MAX) {
		cache->unkept++;
		return 0;
	}
	if (cache->entries_max && cache->entries.len >= cache->entries_max) {
		cache->images.v[image].unread |= symbol != LOOKUP_NONE;
		return 0;
	}
	if (cache->entries.len >= LOOKUP_IDS_MAX)
		return -E2BIG;
	if (vec_push(&cache->entries, ((struct lookup_cache_entry){addr, image, symbol})))
		return -ENOMEM;
	if (hashmap_put(&cache->entry_ids, key, (uint32_t)cache->entries.len - 1)) {
		cache->entries.len--;
		return -ENOMEM;
	}
	return 0;
}

int lookup_cache_replace(struct lookup_cache *cache, uint32_t image, uint64_t addr, uint32_t symbol)
{
	const uint32_t *place;

	for (uint64_t key = lookup_cache_entry_hash(image, addr);
	     (place = hashmap_get(&cache->entry_ids, key)); key++) {
		struct lookup_cache_entry *e = &cache->entries.v[*place];

		if (e->image != image || e->addr != addr || lookup_cache_is_timed(cache, e->symbol))
			continue;
		e->symbol = symbol;
		return 0;
	}
	return -ENOENT;
}
