#include "profcpu/jit/il_maps.h"

#include "base/hash.h"
#include "dotnet/metadata_tables.h"
#include "symbols/core/symbol.h"

#include <errno.h>
#include <string.h>

/* Drop outdated starts when the starts exceed twice the bodies by this number. */
#define STARTS_EXTRA 1024

void jit_il_maps_free(struct jit_il_maps *m)
{
	vec_free(&m->bodies);
	vec_free(&m->points);
	hashmap_free(&m->by_id);
	hashmap_free(&m->by_start);
	hashmap_free(&m->modules);
	arena_free(&m->waiting);
	share_release(m->memory, &m->counted);
}

/* Counts the memory that is kept, and `more`. False: too little is left. */
static bool has_memory(struct jit_il_maps *m, size_t more)
{
	size_t bytes = vec_bytes(&m->bodies) + hashmap_bytes(&m->by_id) +
		       hashmap_bytes(&m->by_start) + hashmap_bytes(&m->modules) +
		       m->waiting.total_bytes + vec_bytes(&m->points);

	return !share_count(m->memory, &m->counted, bytes + more);
}

/* Finds or adds a body. *ret_body NULL: it is new, and there is no room. */
static int find_body(struct jit_il_maps *m, uint64_t method_id, uint64_t code_id,
		     struct jit_il_body **ret_body)
{
	uint64_t key = hash_mix(method_id, code_id);
	struct jit_il_body fresh = {.method_id = method_id, .code_id = code_id};
	const uint32_t *known;

	*ret_body = NULL;
	for (; (known = hashmap_get(&m->by_id, key)); key++) {
		struct jit_il_body *b = &m->bodies.v[*known];

		if (b->method_id == method_id && b->code_id == code_id) {
			*ret_body = b;
			return 0;
		}
	}
	if (m->bodies.len >= JIT_METHODS_MAX || !has_memory(m, sizeof(fresh)))
		return 0;
	if (vec_push(&m->bodies, fresh) || hashmap_put(&m->by_id, key, (uint32_t)m->bodies.len - 1))
		return -ENOMEM;
	*ret_body = &m->bodies.v[m->bodies.len - 1];
	return 0;
}

static int module_number(struct jit_il_maps *m, const struct rundown_module *module,
			 uint32_t *ret_number)
{
	static const unsigned char none[JIT_IL_ID_BYTES];
	struct jit_il_module fresh = {.path = module->il_path};
	uint32_t *number;
	int is_new, r = hashmap_entry(&m->modules, rundown_module_key(module), 0, &number, &is_new);

	_Static_assert(sizeof(module->pdb_guid) == JIT_IL_ID_BYTES, "both are GUIDs");
	if (r)
		return r;
	if (is_new) {
		fresh.kind =
			memcmp(module->pdb_guid, none, sizeof(none)) ? JIT_IL_PDB : JIT_IL_NO_ID;
		memcpy(fresh.id, module->pdb_guid, sizeof(fresh.id));
		*number = jit_methods_writer_module(m->out, &fresh);
	}
	*ret_number = *number;
	return 0;
}

/* Drops the starts that belong to no body any more; a runtime can send them without limit. */
static int renew_starts(struct jit_il_maps *m)
{
	struct hashmap fresh = {0};
	int r = 0;

	for (size_t i = 0; !r && i < m->bodies.len; i++) {
		uint64_t start = m->bodies.v[i].start;
		const uint32_t *at = start ? hashmap_get(&m->by_start, start) : NULL;

		if (at && *at == i)
			r = hashmap_put(&fresh, start, (uint32_t)i);
	}
	if (r) {
		hashmap_free(&fresh);
		return r;
	}
	hashmap_free(&m->by_start);
	m->by_start = fresh;
	return 0;
}

int jit_il_maps_method(struct jit_il_maps *m, const struct rundown_method *method)
{
	uint32_t rid = method->token & 0xffffff, module;
	struct jit_il_body *b;
	int r;

	if (!method->module || method->module->il_path[0] != '/' ||
	    method->token >> 24 != CLR_METHOD_DEF || !rid)
		return 0;
	r = module_number(m, method->module, &module);
	if (!r)
		r = find_body(m, method->id, method->code_id, &b);
	if (r || !b)
		return r;
	b->start = method->start;
	b->module = module;
	b->rid = rid;
	if (b->points)
		jit_methods_writer_il(m->out, SYMBOL_RUNDOWN, b->start, module, rid, b->points,
				      b->npoints);
	b->points = NULL;
	if (m->by_start.len > 2 * m->bodies.len + STARTS_EXTRA)
		r = renew_starts(m);
	return r ? r : hashmap_put(&m->by_start, b->start, (uint32_t)(b - m->bodies.v));
}

void jit_il_maps_gone(struct jit_il_maps *m, uint64_t start)
{
	const uint32_t *at = hashmap_get(&m->by_start, start);

	if (at && m->bodies.v[*at].start == start)
		m->bodies.v[*at].start = 0;
}

static uint32_t u32_at(const unsigned char *p, size_t i)
{
	uint32_t x;

	memcpy(&x, p + 4 * i, sizeof(x));
	return x;
}

/* Keeps a map until its method comes. */
static int wait_for_method(struct jit_il_maps *m, struct jit_il_body *b, size_t n)
{
	size_t bytes = n * sizeof(*b->points);

	if (m->waiting.total_bytes + bytes > JIT_IL_MAPS_WAITING_MAX || !has_memory(m, bytes))
		return 0;
	b->points = arena_alloc(&m->waiting, bytes + 1);
	if (!b->points)
		return -ENOMEM;
	memcpy(b->points, m->points.v, bytes);
	b->npoints = n;
	return 0;
}

int jit_il_maps_map(struct jit_il_maps *m, const struct rundown_il_map *map)
{
	struct jit_il_body *b;
	int r;

	if (!map->count)
		return 0;
	r = find_body(m, map->method_id, map->code_id, &b);
	if (r || !b)
		return r;
	m->points.len = 0;
	if (vec_reserve(&m->points, map->count))
		return -ENOMEM;
	for (size_t i = 0; i < map->count; i++)
		m->points.v[i] = (struct il_point){u32_at(map->native, i), u32_at(map->il, i)};
	if (!b->start)
		return wait_for_method(m, b, map->count);
	jit_methods_writer_il(m->out, SYMBOL_RUNDOWN, b->start, b->module, b->rid, m->points.v,
			      map->count);
	return 0;
}
