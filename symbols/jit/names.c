#include "symbols/jit/names.h"

#include "base/hash.h"
#include "base/hashmap.h"
#include "base/outbuf.h"
#include "base/vec.h"
#include "symbols/names/managed_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The sources with times, best first; the current perf map follows them. */
#define NAMES_LAYERS 4
#define NAMES_MEMORY 2
#define NAMES_CAPTURED 3 /* captured lines of a perf map */
#define NAMES_PERFMAP NAMES_LAYERS
#define NAMES_SOURCES (NAMES_LAYERS + 1)

static const enum symbol_source names_layers[NAMES_LAYERS] = {SYMBOL_JITDUMP, SYMBOL_RUNDOWN,
							      SYMBOL_MEMORY, SYMBOL_PERFMAP};

/* The result of one source for an address at a time. */
struct names_candidate {
	const char *name; /* NULL: none */
	uint32_t len;
	uint32_t id; /* in the source; UINT32_MAX: none */
	enum symbol_source source;
	uint64_t start, end;
	bool doubt;
};

/* The results of all sources, and the times for which they hold. */
struct names_candidates {
	struct names_candidate by_source[NAMES_SOURCES];
	uint64_t from_ns, until_ns;
};

/* Identifies a result in the cache. */
struct names_key {
	uint32_t ids[NAMES_SOURCES];
	uint32_t doubt;
	uint64_t from_ns, until_ns;
};

struct names_result {
	struct names_key key;
	const char *name;
	uint32_t len;
	enum symbol_source source;
	uint64_t start, end;
};

/* Cache of results, which grows during lookups. */
struct names_results {
	VEC(struct names_result) v;
	struct hashmap by_key; /* on a collision, key + 1 is tried */
	struct jit_names_stats stats;
};

struct names {
	struct symbol_provider provider;
	struct jit_methods *methods;
	struct jitdump *jitdump;
	struct symbol_provider *perfmap;
	bool untimed;
	uint8_t order[NAMES_SOURCES]; /* of the candidates, best first */
	struct names_results *results;
};

static const struct symbol_provider_ops names_ops;

/* Comparison of names. */

/*
 * Whether a bracket opens type arguments or a tier, which follow a word. "[assembly]" follows a
 * blank, and "[]" is an array.
 */
static bool names_is_argument(const char *text, size_t len, size_t i)
{
	return text[i] == '[' && i && text[i - 1] != ' ' && i + 1 < len && text[i + 1] != ']' &&
	       text[i + 1] != ',';
}

/* The offset after the bracket that closes the one at i. */
static size_t names_skip_brackets(const char *text, size_t len, size_t i, char open, char close)
{
	size_t depth = 0;

	for (; i < len; i++) {
		depth += text[i] == open;
		if (text[i] == close && !--depth)
			return i + 1;
	}
	return len;
}

/* Whether two texts are equal without type arguments and tiers. */
static bool names_equal_without_arguments(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t i = 0, k = 0;

	for (;;) {
		while (i < a_len && names_is_argument(a, a_len, i))
			i = names_skip_brackets(a, a_len, i, '[', ']');
		while (k < b_len && names_is_argument(b, b_len, k))
			k = names_skip_brackets(b, b_len, k, '[', ']');
		if (i == a_len || k == b_len)
			return i == a_len && k == b_len;
		if (a[i++] != b[k++])
			return false;
	}
}

/* Writes the full form without the parts between < and >. */
static void names_full(const char *text, size_t len, struct outbuf *out)
{
	struct outbuf full = outbuf_to(-1);

	managed_name_full(text, len, &full, NULL, NULL);
	for (size_t i = 0; i < full.len;) {
		if (full.data[i] == '<') {
			i = names_skip_brackets(full.data, full.len, i, '<', '>');
			continue;
		}
		outbuf_char(out, full.data[i++]);
	}
	if (full.error && !out->error)
		out->error = full.error;
	outbuf_close(&full);
}

bool jit_names_agree(const char *a, size_t a_len, const char *b, size_t b_len)
{
	struct outbuf x = outbuf_to(-1), y = outbuf_to(-1);
	bool equal;

	if (managed_name_is_stub(a, a_len) || managed_name_is_stub(b, b_len))
		return managed_name_is_stub(a, a_len) && managed_name_is_stub(b, b_len);
	if (names_equal_without_arguments(a, a_len, b, b_len))
		return true;
	names_full(a, a_len, &x);
	names_full(b, b_len, &y);
	equal = !x.error && !y.error && x.len == y.len &&
		(!x.len || !memcmp(x.data, y.data, x.len));
	outbuf_close(&x);
	outbuf_close(&y);
	return equal;
}

/* The detail of a name: 2 for type arguments, plus 1 for a tier. */
static unsigned int names_detail(const char *text, size_t len)
{
	unsigned int detail = 0;

	for (size_t i = 0; i < len; i++)
		if (names_is_argument(text, len, i)) {
			size_t behind = names_skip_brackets(text, len, i, '[', ']');

			detail |= behind == len ? 1 : 2;
			i = behind - 1;
		}
	return detail;
}

/* Lookup. */

static void names_narrow(struct names_candidates *c, uint64_t from_ns, uint64_t until_ns)
{
	if (from_ns > c->from_ns)
		c->from_ns = from_ns;
	if (until_ns < c->until_ns)
		c->until_ns = until_ns;
}

static void names_collect_layer(const struct names *n, int layer, uint64_t addr, uint64_t time_ns,
				struct names_candidates *c)
{
	struct names_candidate *candidate = &c->by_source[layer];
	struct jit_methods_result a;
	const struct jit_method *m;

	jit_methods_find(n->methods, names_layers[layer], addr, time_ns, &a);
	names_narrow(c, a.from_ns, a.until_ns);
	m = a.method;
	if (!m)
		return;
	*candidate = (struct names_candidate){m->name,
					      m->len,
					      a.id,
					      m->source,
					      m->start,
					      m->start + m->bytes,
					      time_ns >= m->doubt_ns};
	if (m->doubt_ns != UINT64_MAX)
		names_narrow(c, candidate->doubt ? m->doubt_ns : 0,
			     candidate->doubt ? UINT64_MAX : m->doubt_ns);
}

static void names_collect_perfmap(const struct names *n, uint64_t addr, uint64_t time_ns,
				  struct names_candidates *c)
{
	struct symbol s;

	if (n->perfmap && !symbol_provider_find(n->perfmap, addr, time_ns, &s))
		c->by_source[NAMES_PERFMAP] = (struct names_candidate){
			s.name, s.name_len, s.piece, s.source, s.base, s.end, false};
}

/*
 * Prefers a method that the perf map names to a stub that memory only guesses from its code.
 */
static const struct names_candidate *names_prefer_method(const struct names_candidate *best,
							 const struct names_candidates *c)
{
	const struct names_candidate *captured = &c->by_source[NAMES_CAPTURED];

	return best == &c->by_source[NAMES_MEMORY] && managed_name_is_stub(best->name, best->len) &&
			       captured->name &&
			       !managed_name_is_stub(captured->name, captured->len)
		       ? captured
		       : best;
}

/* Collects the candidates. Returns the best one, or NULL. */
static const struct names_candidate *names_collect(const struct names *n, uint64_t addr,
						   uint64_t time_ns, struct names_candidates *c)
{
	*c = (struct names_candidates){.until_ns = UINT64_MAX};
	if (n->untimed)
		time_ns = UINT64_MAX - 1;
	for (int i = 0; i < NAMES_SOURCES; i++)
		c->by_source[i].id = UINT32_MAX;
	for (int i = 0; i < NAMES_LAYERS && n->methods; i++)
		names_collect_layer(n, i, addr, time_ns, c);
	names_collect_perfmap(n, addr, time_ns, c);
	if (n->untimed)
		c->from_ns = 0;
	for (int i = 0; i < NAMES_SOURCES; i++)
		if (c->by_source[n->order[i]].name)
			return names_prefer_method(&c->by_source[n->order[i]], c);
	return NULL;
}

/* Makes a result of the candidates: completes the name and counts contradictions. */
static struct names_result names_resolve(const struct names *n, const struct names_candidates *c,
					 const struct names_candidate *best,
					 struct jit_names_stats *stats)
{
	struct names_result a = {.name = best->name,
				 .len = best->len,
				 .source = best->source,
				 .start = best->start,
				 .end = best->end};
	bool contradicted = false, by_perfmap = false, doubt = false, completed = false;

	for (int i = 0; i < NAMES_SOURCES; i++) {
		const struct names_candidate *candidate = &c->by_source[n->order[i]];

		doubt |= candidate->doubt;
		if (!candidate->name || candidate == best)
			continue;
		if (!jit_names_agree(best->name, best->len, candidate->name, candidate->len)) {
			*(n->order[i] == NAMES_PERFMAP ? &by_perfmap : &contradicted) = true;
		} else if (candidate->start == best->start &&
			   names_detail(candidate->name, candidate->len) >
				   names_detail(a.name, a.len)) {
			a.name = candidate->name;
			a.len = candidate->len;
			completed = true;
		}
	}
	stats->results++;
	stats->contradictions += contradicted;
	stats->perfmap_contradictions += by_perfmap && !contradicted;
	stats->doubts += doubt;
	stats->completed += completed;
	return a;
}

/* Gets the number of the result for an address at a time. Returns 0, -ENOENT, -ENOMEM. */
static int names_lookup(const struct names *n, uint64_t addr, uint64_t time_ns, uint32_t *ret_piece)
{
	struct names_results *results = n->results;
	struct names_result fresh;
	struct names_candidates candidates;
	struct names_key key = {0};
	const struct names_candidate *best = names_collect(n, addr, time_ns, &candidates);
	const uint32_t *place;
	uint64_t hash;

	if (!best)
		return -ENOENT;
	for (int i = 0; i < NAMES_SOURCES; i++) {
		key.ids[i] = candidates.by_source[i].id;
		key.doubt |= (uint32_t)candidates.by_source[i].doubt << i;
	}
	key.from_ns = candidates.from_ns;
	key.until_ns = candidates.until_ns;
	hash = hash_bytes(&key, sizeof(key));
	for (; (place = hashmap_get(&results->by_key, hash)); hash++)
		if (!memcmp(&results->v.v[*place].key, &key, sizeof(key))) {
			*ret_piece = *place;
			return 0;
		}
	if (results->v.len >= SYMBOL_NO_PIECE || vec_reserve(&results->v, 1) ||
	    hashmap_put(&results->by_key, hash, (uint32_t)results->v.len))
		return -ENOMEM;
	fresh = names_resolve(n, &candidates, best, &results->stats);
	fresh.key = key;
	*ret_piece = (uint32_t)results->v.len;
	results->v.v[results->v.len++] = fresh;
	return 0;
}

static int names_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		      struct symbol *ret_symbol)
{
	const struct names *n = (const struct names *)p;
	const struct names_result *a;
	uint32_t piece;
	int r = names_lookup(n, addr, time_ns, &piece);

	if (r)
		return r;
	a = &n->results->v.v[piece];
	*ret_symbol = (struct symbol){
		.name = a->name,
		.name_len = a->len,
		.source = a->source,
		.start = a->start,
		.end = a->end,
		.base = a->start,
		.piece = piece,
		.from_ns = a->key.from_ns,
		.until_ns = a->key.until_ns,
	};
	return 0;
}

static uint32_t names_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	uint32_t piece;

	return names_lookup((const struct names *)p, addr, time_ns, &piece) ? SYMBOL_NO_PIECE
									    : piece;
}

static void names_free(struct symbol_provider *p)
{
	struct names *n = (struct names *)p;

	jit_methods_free(n->methods);
	jitdump_free(n->jitdump);
	symbol_provider_free(n->perfmap);
	if (n->results) {
		vec_free(&n->results->v);
		hashmap_free(&n->results->by_key);
	}
	free(n->results);
	free(n);
}

static const struct symbol_provider_ops names_ops = {
	.name = "jit-names",
	.timed = true,
	.find = names_find,
	.piece = names_piece,
	.free = names_free,
};

/* Whether a source saw code made after the last record of the jitdump. */
static bool names_saw_later(const struct jit_methods *m, const struct jitdump_stats *jitdump)
{
	static const enum symbol_source sources[] = {SYMBOL_MEMORY, SYMBOL_RUNDOWN};
	struct jit_methods_result a;

	for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++)
		for (size_t k = 0; k < jit_methods_count(m, sources[i]); k++) {
			const struct jit_method *method =
				jit_methods_get(m, sources[i], (uint32_t)k);

			if (method->from_ns <= jitdump->last_ns ||
			    managed_name_is_stub(method->name, method->len))
				continue;
			jit_methods_find(m, SYMBOL_JITDUMP, method->start, method->sure_ns, &a);
			if (!a.method || !jit_names_agree(a.method->name, a.method->len,
							  method->name, method->len))
				return true;
		}
	return false;
}

static bool names_is_early(const struct jit_names_sources *s)
{
	if (!s->methods || !jit_methods_count(s->methods, SYMBOL_JITDUMP))
		return false;
	/* A runtime that writes in pieces also cuts records, but then has no other source. */
	return (s->jitdump_stats.cut && (!s->open || s->perfmap)) ||
	       (!s->jitdump_stats.untimed && names_saw_later(s->methods, &s->jitdump_stats));
}

int jit_names_new(const struct jit_names_sources *sources, struct symbol_provider **ret_names)
{
	bool early = names_is_early(sources), last = early || sources->jitdump_stats.untimed;
	struct names *n;
	size_t known = 0, at = 0;

	for (int i = 0; i < NAMES_LAYERS; i++)
		known +=
			sources->methods ? jit_methods_count(sources->methods, names_layers[i]) : 0;
	if (!known) {
		jit_methods_free(sources->methods);
		jitdump_free(sources->jitdump);
		*ret_names = sources->perfmap;
		return 0;
	}
	n = calloc(1, sizeof(*n));
	if (!n) {
		jit_methods_free(sources->methods);
		jitdump_free(sources->jitdump);
		symbol_provider_free(sources->perfmap);
		return -ENOMEM;
	}
	n->provider.ops = &names_ops;
	n->methods = sources->methods;
	n->jitdump = sources->jitdump;
	n->perfmap = sources->perfmap;
	n->untimed = sources->untimed;
	for (uint8_t i = last ? 1 : 0; i < NAMES_SOURCES; i++)
		n->order[at++] = i;
	n->results = calloc(1, sizeof(*n->results));
	if (!n->results) {
		names_free(&n->provider);
		return -ENOMEM;
	}
	n->results->stats.jitdump_early = early;
	*ret_names = &n->provider;
	return 0;
}

struct jit_names_stats jit_names_stats(const struct symbol_provider *names)
{
	if (names && names->ops == &names_ops)
		return ((const struct names *)names)->results->stats;
	return (struct jit_names_stats){0};
}

/*
 * Whether the lines of a source are for the code that was named: the same body, not code that was
 * there before.
 */
static bool names_is_same_code(const struct names_candidate *candidate,
			       const struct names_candidate *best)
{
	return candidate == best ||
	       (candidate->name && candidate->start == best->start &&
		jit_names_agree(best->name, best->len, candidate->name, candidate->len));
}

int jit_names_il(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns,
		 struct jit_il_place *ret_place)
{
	const struct names *n = (const struct names *)names;
	const struct names_candidate *best;
	struct names_candidates candidates;

	if (!names || names->ops != &names_ops)
		return -ENOENT;
	best = names_collect(n, addr, time_ns, &candidates);
	for (int i = 0; best && i < NAMES_LAYERS; i++) {
		const struct names_candidate *candidate = &candidates.by_source[i];
		const struct jit_method *m =
			candidate->name
				? jit_methods_get(n->methods, names_layers[i], candidate->id)
				: NULL;

		if (m && m->il && names_is_same_code(candidate, best))
			return jit_il_find(jit_methods_il(n->methods), m->il - 1,
					   (uint32_t)(addr - m->start), ret_place);
	}
	return -ENOENT;
}

bool jit_names_has_lines(const struct symbol_provider *names, const struct jit_il **ret_il)
{
	const struct names *n = (const struct names *)names;
	bool ours = names && names->ops == &names_ops,
	     maps = ours && jit_il_maps(jit_methods_il(n->methods));

	if (ret_il)
		*ret_il = maps ? jit_methods_il(n->methods) : NULL;
	return maps || (ours && n->jitdump && jitdump_has_lines(n->jitdump));
}

int jit_names_line(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns,
		   struct jitdump_line *ret_line)
{
	const struct names *n = (const struct names *)names;
	const struct names_candidate *best;
	struct jit_methods_result a;
	struct names_candidates candidates;

	if (!names || names->ops != &names_ops || !n->jitdump)
		return -ENOENT;
	best = names_collect(n, addr, time_ns, &candidates);
	if (!best || !names_is_same_code(&candidates.by_source[0], best))
		return -ENOENT;
	jit_methods_find(n->methods, SYMBOL_JITDUMP, addr, n->untimed ? UINT64_MAX - 1 : time_ns,
			 &a);
	return jitdump_line(n->jitdump, &a, addr, ret_line);
}
