#include "symbols/answers.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

#define ANSWERS_IDS_MAX ((size_t)INT32_MAX)

void answers_free(struct answers *a)
{
	intern_free(&a->texts);
	vec_free(&a->images);
	vec_free(&a->symbols);
	vec_free(&a->entries);
	for (size_t i = 0; i < a->stripped.len; i++)
		free(a->stripped.v[i].segments);
	vec_free(&a->stripped);
	answers_lines_free(&a->lines);
	vec_free(&a->processes);
	hashmap_free(&a->image_ids);
	hashmap_free(&a->symbol_ids);
	hashmap_free(&a->entry_ids);
	hashmap_free(&a->process_ids);
	*a = (struct answers){0};
}

static uint64_t answers_image_hash(const struct answers_image *i)
{
	uint64_t h = hash_mix((uint64_t)i->path << 32 | (uint32_t)i->pid, (uint64_t)i->kind << 8 | i->build_id.len);

	h = hash_mix(h, (uint64_t)i->maj << 32 | i->min);
	h = hash_mix(h, i->ino);
	h = hash_mix(h, i->ino_generation);
	return hash_mix(h, hash_bytes(i->build_id.bytes, sizeof(i->build_id.bytes)));
}

static bool answers_image_equal(const struct answers_image *a, const struct answers_image *b)
{
	return a->path == b->path && a->kind == b->kind && a->pid == b->pid && a->maj == b->maj && a->min == b->min &&
	       a->ino == b->ino && a->ino_generation == b->ino_generation && a->build_id.len == b->build_id.len &&
	       !memcmp(a->build_id.bytes, b->build_id.bytes, sizeof(a->build_id.bytes));
}

int answers_find_image(const struct answers *a, const struct answers_image *image, uint32_t *ret_image)
{
	const uint32_t *place;

	for (uint64_t key = answers_image_hash(image); (place = hashmap_get(&a->image_ids, key)); key++) {
		if (answers_image_equal(&a->images.v[*place], image)) {
			*ret_image = *place;
			return 0;
		}
	}
	return -ENOENT;
}

/* Puts index under the first free key from `key` on. */
static int answers_index(struct hashmap *m, uint64_t key, size_t index)
{
	while (hashmap_get(m, key))
		key++;
	return hashmap_put(m, key, (uint32_t)index);
}

int answers_image(struct answers *a, const struct answers_image *image, uint32_t *ret_image)
{
	if (!answers_find_image(a, image, ret_image))
		return 0;
	if (a->images.len >= ANSWERS_IDS_MAX)
		return -E2BIG;
	if (vec_push(&a->images, *image))
		return -ENOMEM;
	if (answers_index(&a->image_ids, answers_image_hash(image), a->images.len - 1)) {
		a->images.len--;
		return -ENOMEM;
	}
	*ret_image = (uint32_t)a->images.len - 1;
	return 0;
}

int answers_stripped(struct answers *a, uint32_t image, const struct image_build_id *build_id,
		     const struct image_segment *segments, size_t nsegments)
{
	struct answers_stripped stripped = {.build_id = *build_id, .nsegments = nsegments};

	if (a->images.v[image].stripped)
		return 0;
	stripped.segments = calloc(nsegments + 1, sizeof(*segments));
	if (!stripped.segments)
		return -ENOMEM;
	if (nsegments)
		memcpy(stripped.segments, segments, nsegments * sizeof(*segments));
	if (vec_push(&a->stripped, stripped)) {
		free(stripped.segments);
		return -ENOMEM;
	}
	a->images.v[image].stripped = (uint32_t)a->stripped.len;
	return 0;
}

int answers_process(struct answers *a, const struct answers_process *process)
{
	uint32_t *place;
	int fresh, r = vec_reserve(&a->processes, 1);

	if (!r)
		r = hashmap_entry(&a->process_ids, (uint32_t)process->pid, (uint32_t)a->processes.len, &place, &fresh);
	if (r)
		return r;
	a->processes.len += fresh != 0;
	a->processes.v[*place] = *process;
	return 0;
}

const struct answers_process *answers_process_of(const struct answers *a, int32_t pid)
{
	const uint32_t *place = hashmap_get(&a->process_ids, (uint32_t)pid);

	return place ? &a->processes.v[*place] : NULL;
}

static uint64_t answers_symbol_hash(const struct answers_symbol *s)
{
	uint64_t h = hash_mix(s->start, s->end);

	h = hash_mix(h, (uint64_t)s->image << 32 | s->name);
	if (s->from_ns || s->until_ns != UINT64_MAX)
		h = hash_mix(hash_mix(h, s->from_ns), s->until_ns);
	return hash_mix(h, (uint64_t)s->module << 32 | s->source);
}

static bool answers_symbol_equal(const struct answers_symbol *a, const struct answers_symbol *b)
{
	return a->start == b->start && a->end == b->end && a->image == b->image && a->name == b->name &&
	       a->module == b->module && a->source == b->source && a->from_ns == b->from_ns &&
	       a->until_ns == b->until_ns;
}

int answers_symbol(struct answers *a, const struct answers_symbol *symbol, uint32_t *ret_symbol)
{
	uint64_t hash = answers_symbol_hash(symbol);
	const uint32_t *place;

	for (uint64_t key = hash; (place = hashmap_get(&a->symbol_ids, key)); key++) {
		if (answers_symbol_equal(&a->symbols.v[*place], symbol)) {
			*ret_symbol = *place;
			return 0;
		}
	}
	if (a->symbols.len >= ANSWERS_IDS_MAX)
		return -E2BIG;
	if (vec_push(&a->symbols, *symbol))
		return -ENOMEM;
	if (answers_index(&a->symbol_ids, hash, a->symbols.len - 1)) {
		a->symbols.len--;
		return -ENOMEM;
	}
	*ret_symbol = (uint32_t)a->symbols.len - 1;
	return 0;
}

static uint64_t answers_entry_hash(uint32_t image, uint64_t addr)
{
	return hash_mix(addr, image);
}

int answers_get(const struct answers *a, uint32_t image, uint64_t addr, uint64_t time_ns, uint32_t *ret_symbol)
{
	const uint32_t *place;
	int r = -ENOENT;

	for (uint64_t key = answers_entry_hash(image, addr); (place = hashmap_get(&a->entry_ids, key)); key++) {
		const struct answers_entry *e = &a->entries.v[*place];

		if (e->image != image || e->addr != addr)
			continue;
		if (e->symbol == ANSWERS_NONE ||
		    (time_ns >= a->symbols.v[e->symbol].from_ns && time_ns < a->symbols.v[e->symbol].until_ns)) {
			*ret_symbol = e->symbol;
			return 0;
		}
		r = -ESTALE;
	}
	return r;
}

int answers_put(struct answers *a, uint32_t image, uint64_t addr, uint32_t symbol)
{
	uint64_t key = answers_entry_hash(image, addr);
	int times = 0;

	while (times < ANSWERS_TIMES_MAX && hashmap_get(&a->entry_ids, key)) {
		key++;
		times++;
	}
	if (times == ANSWERS_TIMES_MAX) {
		a->unkept++;
		return 0;
	}
	if (a->entries.len >= ANSWERS_IDS_MAX)
		return -E2BIG;
	if (vec_push(&a->entries, ((struct answers_entry){addr, image, symbol})))
		return -ENOMEM;
	if (hashmap_put(&a->entry_ids, key, (uint32_t)a->entries.len - 1)) {
		a->entries.len--;
		return -ENOMEM;
	}
	return 0;
}

int answers_replace(struct answers *a, uint32_t image, uint64_t addr, uint32_t symbol)
{
	const uint32_t *place;

	for (uint64_t key = answers_entry_hash(image, addr); (place = hashmap_get(&a->entry_ids, key)); key++) {
		struct answers_entry *e = &a->entries.v[*place];

		if (e->image != image || e->addr != addr || answers_timed(a, e->symbol))
			continue;
		e->symbol = symbol;
		return 0;
	}
	return -ENOENT;
}
