#include "symbols/jit/methods.h"

#include "base/arena.h"
#include "base/bigmem.h"
#include "base/bitset.h"
#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/radix_sort.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

#define JIT_REFUSED (UINT32_C(1) << 31)
#define JIT_NODE_ENTRIES_EACH 8
#define JIT_NODE_ENTRIES_MAX ((size_t)64 << 20) /* entries of a layer's tree */
/* pairs that overlap in a layer; new code overlaps the code that it replaces */
#define JIT_OVERLAPS_MAX ((size_t)32 << 20)

/*
 * Code of one source. After jit_methods_finish no two methods share an address and a time. The
 * starts and ends of methods cut the address space into parts, the leaves of a binary tree. A
 * method is an entry in the few nodes that together cover its parts. So all entries of one node
 * cover the same addresses and follow one another in time. A lookup searches each node from the
 * part's leaf up to the root.
 */
struct jit_layer {
	VEC(struct jit_method) methods;
	/* Start -> last method there, if by_start. JIT_REFUSED: a later one was refused. */
	struct hashmap open;
	bool by_start, refused; /* refused: some methods were */
	size_t ended;           /* number of methods, from the first on, that have an end */
	size_t covered;
	uint64_t *bounds; /* starts of the parts, and the end of the last one */
	uint32_t nbounds, leaves;
	uint32_t *first; /* by node, plus one: its first entry in ids */
	uint32_t *ids;   /* methods; those of a node by from_ns */
};

struct jit_methods {
	struct arena names;
	uint64_t taken, taken_max; /* bytes, without maps and lines */
	size_t refused;
	struct jit_il *il;
	struct jit_layer layers[SYMBOL_SOURCES];
};

int jit_methods_new(struct jit_methods **ret_methods)
{
	struct jit_methods *m = calloc(1, sizeof(*m));
	int r = m ? jit_il_new(&m->il) : -ENOMEM;

	if (r) {
		free(m);
		return r;
	}
	m->taken_max = UINT64_MAX;
	*ret_methods = m;
	return r;
}

void jit_methods_free(struct jit_methods *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < SYMBOL_SOURCES; i++) {
		vec_free(&m->layers[i].methods);
		hashmap_free(&m->layers[i].open);
		free(m->layers[i].bounds);
		free(m->layers[i].first);
		free(m->layers[i].ids);
	}
	arena_free(&m->names);
	jit_il_free(m->il);
	free(m);
}

void jit_methods_limit_memory(struct jit_methods *m, uint64_t bytes)
{
	m->taken_max = m->taken + bytes;
	jit_il_limit(m->il, bytes / 4);
}

static bool jit_methods_take(struct jit_methods *m, uint64_t bytes)
{
	if (bytes > m->taken_max - m->taken)
		return false;
	m->taken += bytes;
	return true;
}

uint64_t jit_methods_taken(const struct jit_methods *m)
{
	return m->taken + jit_il_bytes(m->il);
}

/* Cuts a name between characters. */
static uint32_t jit_name_len(const char *name, uint32_t len)
{
	if (len <= JIT_METHODS_NAME_MAX)
		return len;
	len = JIT_METHODS_NAME_MAX;
	while (len && ((unsigned char)name[len] & 0xc0) == 0x80)
		len--;
	return len;
}

/* Fills the map from starts to methods, which most layers never need. */
static int jit_layer_by_start(struct jit_layer *l)
{
	for (size_t i = 0; !l->by_start && i < l->methods.len; i++)
		if (hashmap_put(&l->open, l->methods.v[i].start, (uint32_t)i))
			return -ENOMEM;
	l->by_start = true;
	return 0;
}

static void jit_method_end(struct jit_method *method, uint64_t time_ns)
{
	if (method->until_ns == UINT64_MAX)
		method->until_ns = time_ns > method->from_ns ? time_ns : method->from_ns;
}

/* Refuses a method. Later calls for code at its start mean the refused method. */
static int jit_layer_refuse(struct jit_methods *m, struct jit_layer *l,
			    const struct jit_method *method)
{
	if (jit_layer_by_start(l))
		return -ENOMEM;
	uint32_t *place = hashmap_get(&l->open, method->start);

	if (place) {
		jit_method_end(&l->methods.v[*place & ~JIT_REFUSED], method->from_ns);
		*place |= JIT_REFUSED;
	}
	l->refused = true;
	m->refused++;
	return -E2BIG;
}

/* Adds a method. name belongs to m, or is NULL: then method->name is copied. */
static int jit_layer_add(struct jit_methods *m, const struct jit_method *method, const char *name)
{
	struct jit_method fresh = *method;
	struct jit_layer *l;

	if ((unsigned int)method->source >= SYMBOL_SOURCES || method->source == SYMBOL_NONE ||
	    !method->bytes || method->bytes > UINT64_MAX - method->start ||
	    method->until_ns <= method->from_ns)
		return -EINVAL;
	l = &m->layers[method->source];
	fresh.len = jit_name_len(method->name, method->len);
	if (l->methods.len >= JIT_METHODS_MAX ||
	    !jit_methods_take(m, JIT_METHODS_EACH_BYTES + (name ? 0 : fresh.len + 1)))
		return jit_layer_refuse(m, l, method);
	if (!name)
		name = arena_strndup(&m->names, method->name, fresh.len);
	if (!name)
		return -ENOMEM;
	fresh.name = name;
	fresh.doubt_ns = UINT64_MAX;
	fresh.il = 0;
	if (fresh.sure_ns < fresh.from_ns)
		fresh.sure_ns = fresh.from_ns;
	if (vec_push(&l->methods, fresh))
		return -ENOMEM;
	return l->by_start ? hashmap_put(&l->open, fresh.start, (uint32_t)l->methods.len - 1) : 0;
}

int jit_methods_add(struct jit_methods *m, const struct jit_method *method)
{
	return jit_layer_add(m, method, NULL);
}

/* Finds the method last added at start, if it has no end. Returns 0; -ENOENT; -ENOMEM. */
static int jit_layer_find_open(struct jit_methods *m, enum symbol_source source, uint64_t start,
			       struct jit_method **ret_method)
{
	struct jit_layer *l =
		&m->layers[(unsigned int)source < SYMBOL_SOURCES ? source : SYMBOL_NONE];
	const uint32_t *place;

	if (jit_layer_by_start(l))
		return -ENOMEM;
	place = hashmap_get(&l->open, start);
	if (!place || l->methods.v[*place & ~JIT_REFUSED].until_ns != UINT64_MAX)
		return -ENOENT;
	*ret_method = &l->methods.v[*place & ~JIT_REFUSED];
	return 0;
}

int jit_methods_end(struct jit_methods *m, enum symbol_source source, uint64_t start,
		    uint64_t time_ns)
{
	struct jit_method *method;
	int r = jit_layer_find_open(m, source, start, &method);

	if (!r)
		jit_method_end(method, time_ns);
	return r;
}

int jit_methods_doubt(struct jit_methods *m, enum symbol_source source, uint64_t start,
		      uint64_t time_ns)
{
	struct jit_method *method;
	int r = jit_layer_find_open(m, source, start, &method);

	if (!r && time_ns < method->doubt_ns)
		method->doubt_ns = time_ns > method->from_ns ? time_ns : method->from_ns;
	return r;
}

int jit_methods_move(struct jit_methods *m, enum symbol_source source, uint32_t id, uint64_t start,
		     uint64_t time_ns)
{
	struct jit_method *old = &m->layers[source].methods.v[id], moved = *old;

	moved.start = start;
	moved.from_ns = moved.sure_ns = time_ns;
	moved.until_ns = UINT64_MAX;
	jit_method_end(old, time_ns);
	return jit_layer_add(m, &moved, moved.name);
}

int jit_methods_set_il(struct jit_methods *m, enum symbol_source source, uint64_t start,
		       uint32_t map)
{
	struct jit_layer *l =
		&m->layers[(unsigned int)source < SYMBOL_SOURCES ? source : SYMBOL_NONE];
	size_t last = l->methods.len - 1;
	const uint32_t *place;

	/* Most often it is the one that was just added. */
	if (l->methods.len && l->methods.v[last].start == start && !l->refused) {
		l->methods.v[last].il = map + 1;
		return 0;
	}
	if (jit_layer_by_start(l))
		return -ENOMEM;
	place = hashmap_get(&l->open, start);
	if (!place || *place & JIT_REFUSED)
		return -ENOENT;
	l->methods.v[*place].il = map + 1;
	return 0;
}

struct jit_il *jit_methods_il(const struct jit_methods *m)
{
	return m->il;
}

void jit_methods_end_all(struct jit_methods *m, uint64_t time_ns)
{
	for (size_t i = 0; i < SYMBOL_SOURCES; i++) {
		struct jit_layer *l = &m->layers[i];

		for (; l->ended < l->methods.len; l->ended++)
			jit_method_end(&l->methods.v[l->ended], time_ns);
	}
}

/*
 * State of ordering a layer. low and high: parts of each method; live: first parts of the methods
 * that have no end yet.
 */
struct jit_order {
	struct jit_layer *layer;
	uint32_t *low, *high, *owner;
	struct bitset live;
	VEC(uint32_t) ended; /* first parts of the methods that will leave live */
	size_t overlaps;
};

static bool jit_has_time(const struct jit_method *method)
{
	return method->from_ns < method->until_ns;
}

static bool jit_is_same_code(const struct jit_method *old, const struct jit_method *new)
{
	return old->until_ns == UINT64_MAX && old->start == new->start &&
	       old->bytes == new->bytes && old->len == new->len &&
	       !memcmp(old->name, new->name, old->len);
}

/*
 * Divides the time between two methods that overlap. *from_ns: start of the time left to the newer
 * one.
 */
static void jit_divide_time(struct jit_method *old, struct jit_method *new, uint64_t *from_ns)
{
	uint64_t limit = old->sure_ns < new->sure_ns ? new->sure_ns : new->from_ns;
	uint64_t held = old->until_ns < limit ? old->until_ns : limit, begin;

	if (jit_is_same_code(old, new)) {
		new->until_ns = new->from_ns;
		old->il = old->il ? old->il : new->il;
		return;
	}
	begin = new->from_ns > old->from_ns ? new->from_ns : old->from_ns;
	if (held == limit && held > begin && begin < old->doubt_ns)
		old->doubt_ns = begin;
	if (held > *from_ns)
		*from_ns = held;
	old->until_ns = held;
}

/* Divides the time between a method and all live ones that it overlaps. */
static int jit_order_divide_time(struct jit_order *o, uint32_t id)
{
	struct jit_method *new = &o->layer->methods.v[id];
	uint32_t at = bitset_prev(&o->live, o->low[id]);
	uint64_t from_ns = new->from_ns;

	if (at == BITSET_NONE || o->high[o->owner[at]] <= o->low[id])
		at = bitset_next(&o->live, o->low[id]);
	while (at < o->high[id] && jit_has_time(new)) {
		if (++o->overlaps > JIT_OVERLAPS_MAX)
			return -E2BIG;
		jit_divide_time(&o->layer->methods.v[o->owner[at]], new, &from_ns);
		if (jit_has_time(new) && vec_push(&o->ended, at))
			return -ENOMEM;
		at = bitset_next(&o->live, at + 1);
	}
	new->from_ns = from_ns;
	return 0;
}

static void jit_order_remove_ended(struct jit_order *o)
{
	for (size_t i = 0; i < o->ended.len; i++)
		bitset_remove(&o->live, o->ended.v[i]);
	o->ended.len = 0;
}

/*
 * Orders methods with equal sure_ns: first they end earlier methods, then each becomes live in
 * turn.
 */
static int jit_order_group(struct jit_order *o, const uint32_t *ids, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = jit_order_divide_time(o, ids[i]);
	jit_order_remove_ended(o);
	for (size_t i = 0; i < n && !r; i++) {
		r = jit_order_divide_time(o, ids[i]);
		jit_order_remove_ended(o);
		if (!jit_has_time(&o->layer->methods.v[ids[i]]))
			continue;
		bitset_add(&o->live, o->low[ids[i]]);
		o->owner[o->low[ids[i]]] = ids[i];
	}
	return r;
}

/* Numbers the starts and ends of methods in their order. */
static int jit_order_bounds(struct jit_order *o)
{
	struct jit_layer *l = o->layer;
	size_t n = l->methods.len;
	AUTO_FREE uint64_t *keys = bigmem_alloc(2 * n, sizeof(*keys));
	AUTO_FREE uint32_t *sorted = bigmem_alloc(2 * n, sizeof(*sorted));

	l->bounds = bigmem_alloc(2 * n, sizeof(*l->bounds));
	if (!keys || !sorted || !l->bounds)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		keys[2 * i] = l->methods.v[i].start;
		keys[2 * i + 1] = l->methods.v[i].start + l->methods.v[i].bytes;
	}
	if (radix_sort(keys, (uint32_t)(2 * n), sorted))
		return -ENOMEM;
	for (size_t i = 0; i < 2 * n; i++) {
		const struct jit_method *method = &l->methods.v[sorted[i] / 2];
		uint64_t bound = method->start + (sorted[i] % 2 ? method->bytes : 0);

		if (!l->nbounds || l->bounds[l->nbounds - 1] != bound)
			l->bounds[l->nbounds++] = bound;
		(sorted[i] % 2 ? o->high : o->low)[sorted[i] / 2] = l->nbounds - 1;
	}
	return bitset_init(&o->live, l->nbounds);
}

/* Sorts the methods by sure_ns or from_ns. */
static int jit_by_time(const struct jit_layer *l, bool sure, uint32_t *ret_ids)
{
	AUTO_FREE uint64_t *keys = bigmem_alloc(l->methods.len, sizeof(*keys));

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < l->methods.len; i++)
		keys[i] = sure ? l->methods.v[i].sure_ns : l->methods.v[i].from_ns;
	return radix_sort(keys, (uint32_t)l->methods.len, ret_ids);
}

static int jit_order_times(struct jit_order *o, const uint32_t *ids)
{
	const struct jit_method *v = o->layer->methods.v;
	size_t n = o->layer->methods.len, end;
	int r = 0;

	for (size_t i = 0; i < n && !r; i = end) {
		for (end = i + 1; end < n && v[ids[end]].sure_ns == v[ids[i]].sure_ns;)
			end++;
		r = jit_order_group(o, ids + i, end - i);
	}
	for (size_t i = 0; i < n; i++)
		o->layer->covered += !jit_has_time(&v[i]);
	return r;
}

/* Calls fn for the nodes that cover the parts [low, high). */
typedef void jit_node_fn(struct jit_layer *l, uint32_t node, uint32_t id);

static void jit_nodes(struct jit_layer *l, uint32_t low, uint32_t high, uint32_t id,
		      jit_node_fn *fn)
{
	low += l->leaves;
	high += l->leaves;
	for (; low < high; low /= 2, high /= 2) {
		if (low % 2)
			fn(l, low++, id);
		if (high % 2)
			fn(l, --high, id);
	}
}

static void jit_node_count(struct jit_layer *l, uint32_t node, uint32_t id)
{
	(void)id;
	l->first[node + 1]++;
}

/* first[node + 1] is the place of the node's next entry, and its end once all entries are there. */
static void jit_node_fill(struct jit_layer *l, uint32_t node, uint32_t id)
{
	l->ids[l->first[node + 1]++] = id;
}

static int jit_order_tree(struct jit_methods *m, struct jit_order *o, const uint32_t *ids)
{
	struct jit_layer *l = o->layer;
	/* JIT_METHODS_EACH_BYTES has room for these entries, more than honest code has. */
	uint64_t total = 0, most = JIT_NODE_ENTRIES_EACH * (uint64_t)l->methods.len;

	for (l->leaves = 1; l->leaves < l->nbounds;)
		l->leaves *= 2;
	l->first = calloc(2 * (size_t)l->leaves + 1, sizeof(*l->first));
	if (!l->first)
		return -ENOMEM;
	for (size_t i = 0; i < l->methods.len; i++)
		if (jit_has_time(&l->methods.v[i]))
			jit_nodes(l, o->low[i], o->high[i], 0, jit_node_count);
	for (size_t node = 1; node <= 2 * (size_t)l->leaves; node++) {
		uint32_t n = l->first[node];

		l->first[node] = (uint32_t)total;
		total += n;
		if (total > JIT_NODE_ENTRIES_MAX)
			return -E2BIG;
	}
	if (total > most && !jit_methods_take(m, (total - most) * sizeof(*l->ids)))
		return -E2BIG;
	l->ids = bigmem_alloc(total + 1, sizeof(*l->ids));
	if (!l->ids)
		return -ENOMEM;
	for (size_t i = 0; i < l->methods.len; i++)
		if (jit_has_time(&l->methods.v[ids[i]]))
			jit_nodes(l, o->low[ids[i]], o->high[ids[i]], ids[i], jit_node_fill);
	return 0;
}

static int jit_layer_finish(struct jit_methods *m, struct jit_layer *l)
{
	size_t n = l->methods.len;
	AUTO_FREE uint32_t *ids = bigmem_alloc(n, sizeof(*ids));
	struct jit_order o = {.layer = l};
	int r = 0;

	o.low = bigmem_alloc(n, sizeof(*o.low));
	o.high = bigmem_alloc(n, sizeof(*o.high));
	o.owner = bigmem_alloc(2 * n, sizeof(*o.owner));
	if (!ids || !o.low || !o.high || !o.owner)
		r = -ENOMEM;
	if (!r)
		r = jit_order_bounds(&o);
	if (!r)
		r = jit_by_time(l, true, ids);
	if (!r)
		r = jit_order_times(&o, ids);
	if (!r)
		r = jit_by_time(l, false, ids);
	if (!r)
		r = jit_order_tree(m, &o, ids);
	free(o.low);
	free(o.high);
	free(o.owner);
	bitset_free(&o.live);
	vec_free(&o.ended);
	return r;
}

int jit_methods_finish(struct jit_methods *m)
{
	int r = 0;

	for (size_t i = 0; i < SYMBOL_SOURCES && !r; i++) {
		hashmap_free(&m->layers[i].open);
		if (m->layers[i].methods.len)
			r = jit_layer_finish(m, &m->layers[i]);
	}
	return r;
}

/* The part that holds an address; -1: none. */
static int64_t jit_find_part(const struct jit_layer *l, uint64_t addr)
{
	size_t low = 0, high = l->nbounds;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (l->bounds[mid] <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && low < l->nbounds ? (int64_t)low - 1 : -1;
}

/* Looks up a time in a node. Finds an entry, or narrows the time for which there is none. */
static void jit_node_find(const struct jit_layer *l, uint32_t node, uint64_t time_ns,
			  struct jit_methods_result *a)
{
	uint32_t begin = l->first[node], end = l->first[node + 1], low = begin, high = end;
	const struct jit_method *v = l->methods.v;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (v[l->ids[mid]].from_ns <= time_ns)
			low = mid + 1;
		else
			high = mid;
	}
	if (low > begin && v[l->ids[low - 1]].until_ns > time_ns) {
		a->id = l->ids[low - 1];
		a->method = &v[a->id];
		return;
	}
	if (low > begin && v[l->ids[low - 1]].until_ns > a->from_ns)
		a->from_ns = v[l->ids[low - 1]].until_ns;
	if (low < end && v[l->ids[low]].from_ns < a->until_ns)
		a->until_ns = v[l->ids[low]].from_ns;
}

void jit_methods_find(const struct jit_methods *m, enum symbol_source source, uint64_t addr,
		      uint64_t time_ns, struct jit_methods_result *ret_result)
{
	const struct jit_layer *l = &m->layers[source];
	struct jit_methods_result a = {.until_ns = UINT64_MAX};
	int64_t part = l->first ? jit_find_part(l, addr) : -1;

	for (uint32_t node = part < 0 ? 0 : (uint32_t)part + l->leaves; node && !a.method;
	     node /= 2)
		if (l->first[node] != l->first[node + 1])
			jit_node_find(l, node, time_ns, &a);
	if (a.method) {
		a.from_ns = a.method->from_ns;
		a.until_ns = a.method->until_ns;
	}
	*ret_result = a;
}

const struct jit_method *jit_methods_get(const struct jit_methods *m, enum symbol_source source,
					 uint32_t id)
{
	return &m->layers[source].methods.v[id];
}

size_t jit_methods_count(const struct jit_methods *m, enum symbol_source source)
{
	return m->layers[source].methods.len;
}

size_t jit_methods_hidden_count(const struct jit_methods *m, enum symbol_source source)
{
	return m->layers[source].covered;
}

size_t jit_methods_refused_count(const struct jit_methods *m)
{
	return m->refused;
}
