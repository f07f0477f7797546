#include "symbols/symtab/symtab_finish.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/radix_sort.h"
#include "symbols/names/demangle.h"
#include "symbols/symtab/perf_tree.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

#define PAGE_BYTES 4096
#define COMPARED_MAX 4096 /* bytes of names that are compared */
/*
 * Limits for one table: names that are demangled for comparison, and bytes of their text. Later
 * names are compared raw.
 */
#define DEMANGLED_MAX 200000
#define DEMANGLED_BYTES_MAX ((uint64_t)32 << 20)

/*
 * An entry with its rank, its place by start. Entries of equal start keep the order in which they
 * were added.
 */
struct ranked {
	uint64_t start, end;
	uint32_t entry;
	uint32_t dropped;
};

struct order {
	struct symtab *t;
	uint64_t limit;
	uint32_t n;
	struct ranked *ranked;
	uint32_t *live; /* ranks that are in the table so far, ascending */
	uint32_t nlive;
	uint32_t *drops; /* ranks in the order in which perf drops them */
	uint32_t ndrops;
	uint32_t pass_drops[SYMTAB_PASSES_MAX]; /* ndrops after each pass */
	uint32_t ndemangled;
	uint64_t demangled_bytes;
};

static const struct symtab_entry *entry_of(const struct order *o, const struct ranked *r)
{
	return &o->t->entries.v[r->entry];
}

static uint64_t page_after(uint64_t addr)
{
	if (addr > UINT64_MAX - 2 * PAGE_BYTES)
		return UINT64_MAX;
	return (addr + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES;
}

/* Extend each symbol without a size to the next one (symbols__fixup_end). */
static void fix_ends(struct order *o)
{
	for (uint32_t i = 0; i < o->nlive; i++) {
		struct ranked *r = &o->ranked[o->live[i]];
		const struct ranked *next = i + 1 < o->nlive ? &o->ranked[o->live[i + 1]] : NULL;

		if (r->end != r->start)
			continue;
		if (!next)
			r->end = o->limit > r->start ? o->limit : page_after(r->start);
		else if (entry_of(o, r)->group == entry_of(o, next)->group)
			r->end = next->start;
		else
			r->end = page_after(r->start);
	}
}

static size_t leading_underscores(const char *s)
{
	size_t n = 0;

	while (s[n] == '_' && n < COMPARED_MAX)
		n++;
	return n;
}

/*
 * Compare names; constructors of one class are equal, and so are destructors: _ZN3FooC1Ev and
 * _ZN3FooC2Ev.
 */
static bool reads_the_same(const char *a, const char *b)
{
	size_t i = 0;

	while (a[i] && a[i] == b[i] && i < COMPARED_MAX)
		i++;
	if (a[i] == b[i])
		return true;
	return i && (a[i - 1] == 'C' || a[i - 1] == 'D') && isdigit((unsigned char)a[i]) &&
	       isdigit((unsigned char)b[i]) && !strncmp(a + i + 1, b + i + 1, COMPARED_MAX);
}

/* The part of choose_best_symbol that compares names. perf has demangled them at that point. */
static bool first_name_wins(struct order *o, const char *a, const char *b)
{
	if (reads_the_same(a, b))
		return true;
	bool demangle = o->ndemangled < DEMANGLED_MAX && o->demangled_bytes < DEMANGLED_BYTES_MAX;
	AUTO_FREE char *demangled_a =
		demangle ? demangle_perf_counted(a, &o->demangled_bytes) : NULL;
	AUTO_FREE char *demangled_b =
		demangle ? demangle_perf_counted(b, &o->demangled_bytes) : NULL;

	o->ndemangled += 2;
	a = demangled_a ? demangled_a : a;
	b = demangled_b ? demangled_b : b;
	size_t under_a = leading_underscores(a), under_b = leading_underscores(b);

	if (under_a != under_b)
		return under_a < under_b;
	size_t len_a = strnlen(a, COMPARED_MAX), len_b = strnlen(b, COMPARED_MAX);

	if (len_a != len_b)
		return len_a > len_b;
	return strncmp(a, "SyS", 3) && strncmp(a, "compat_SyS", 10);
}

/* Whether a wins. It was added before b at the same address (choose_best_symbol). */
static bool first_wins(struct order *o, const struct ranked *ra, const struct ranked *rb)
{
	int64_t len_a = (int64_t)(ra->end - ra->start), len_b = (int64_t)(rb->end - rb->start);

	if (!len_b && len_a > 0)
		return true;
	if (!len_a && len_b > 0)
		return false;
	const struct symtab_entry *a = entry_of(o, ra), *b = entry_of(o, rb);

	if ((a->binding == STB_WEAK) != (b->binding == STB_WEAK))
		return b->binding == STB_WEAK;
	if ((a->binding == STB_GLOBAL) != (b->binding == STB_GLOBAL))
		return a->binding == STB_GLOBAL;
	return first_name_wins(o, a->name, b->name);
}

/* Keep one symbol at each address (symbols__fixup_duplicate). */
static void drop_duplicates(struct order *o)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < o->nlive; i++) {
		uint32_t rank = o->live[i], before = kept ? o->live[kept - 1] : 0;
		if (!kept || o->ranked[before].start != o->ranked[rank].start) {
			o->live[kept++] = rank;
			continue;
		}
		uint32_t loser =
			first_wins(o, &o->ranked[before], &o->ranked[rank]) ? rank : before;

		o->ranked[loser].dropped = 1;
		o->drops[o->ndrops++] = loser;
		if (loser == before)
			o->live[kept - 1] = rank;
	}
	o->nlive = kept;
}

static void run_passes(struct order *o)
{
	for (uint32_t p = 0; p < o->t->npasses; p++) {
		o->nlive = 0;
		for (uint32_t rank = 0; rank < o->n; rank++) {
			if (o->ranked[rank].entry < o->t->passes[p].end && !o->ranked[rank].dropped)
				o->live[o->nlive++] = rank;
		}
		if (o->t->passes[p].fix_up) {
			fix_ends(o);
			drop_duplicates(o);
		}
		o->pass_drops[p] = o->ndrops;
	}
}

/* The first address after r at which perf's search goes to the right; 0: none. */
static uint64_t after(const struct ranked *r)
{
	if (r->end > r->start)
		return r->end;
	return r->end == r->start ? r->start + 1 : r->start;
}

static int add_piece(struct order *o, uint32_t rank, uint64_t start, uint64_t end)
{
	struct symtab_piece piece = {start, end, o->ranked[rank].entry, 0};

	return start < end ? vec_push(&o->t->pieces, piece) : 0;
}

static bool pieces_overlap(const struct order *o)
{
	for (uint32_t i = 0; i + 1 < o->nlive; i++) {
		if (after(&o->ranked[o->live[i]]) > o->ranked[o->live[i + 1]].start)
			return true;
	}
	return false;
}

/* Grow perf's tree. Each pass inserts in the order of the file and drops its duplicates. */
static void grow(const struct order *o, const uint32_t *rank_of, struct perf_tree *tree)
{
	uint32_t seq = 0, drop = 0;

	for (uint32_t p = 0; p < o->t->npasses; p++) {
		for (; seq < o->t->passes[p].end; seq++)
			perf_tree_insert(tree, rank_of[seq]);
		for (; drop < o->pass_drops[p]; drop++)
			perf_tree_erase(tree, o->drops[drop]);
	}
}

/*
 * Assign the addresses lo to last to a node and its children. perf's search reaches the node with
 * exactly these addresses. The depth of a red-black tree bounds the recursion: 64 levels hold more
 * than 2^31 nodes.
 */
static int flatten(struct order *o, const struct perf_tree *tree, uint32_t node, uint64_t lo,
		   uint64_t last)
{
	if (node == PERF_TREE_NIL || lo > last)
		return 0;
	const struct ranked *r = &o->ranked[node];
	uint64_t right = after(r);
	int error = 0;

	if (r->start > lo)
		error = flatten(o, tree, perf_tree_left(tree, node), lo,
				last < r->start ? last : r->start - 1);
	if (!error && r->start <= last)
		error = add_piece(o, node, r->start > lo ? r->start : lo,
				  right > last && last < UINT64_MAX ? last + 1 : right);
	if (error || !right)
		return error;
	return flatten(o, tree, perf_tree_right(tree, node), right > lo ? right : lo, last);
}

static int pieces_by_tree(struct order *o)
{
	AUTO_FREE uint32_t *rank_of = reallocarray(NULL, o->n, sizeof(*rank_of));
	struct perf_tree *tree = NULL;

	if (!rank_of || perf_tree_new(o->n, &tree))
		return -ENOMEM;
	for (uint32_t rank = 0; rank < o->n; rank++)
		rank_of[o->ranked[rank].entry] = rank;
	grow(o, rank_of, tree);
	int error = flatten(o, tree, perf_tree_root(tree), 0, UINT64_MAX);

	perf_tree_free(tree);
	return error;
}

static int rank_entries(struct order *o)
{
	AUTO_FREE uint64_t *starts = bigmem_alloc(o->n, sizeof(*starts));
	AUTO_FREE uint32_t *ids = bigmem_alloc(o->n, sizeof(*ids));

	if (!starts || !ids)
		return -ENOMEM;
	for (uint32_t i = 0; i < o->n; i++)
		starts[i] = o->t->entries.v[i].start;
	if (radix_sort(starts, o->n, ids))
		return -ENOMEM;
	for (uint32_t rank = 0; rank < o->n; rank++) {
		const struct symtab_entry *e = &o->t->entries.v[ids[rank]];

		o->ranked[rank] =
			(struct ranked){.start = e->start, .end = e->end, .entry = ids[rank]};
	}
	return 0;
}

static int make_pieces(struct order *o)
{
	struct symtab *t = o->t;

	t->pieces.v = bigmem_alloc(o->nlive, sizeof(*t->pieces.v));
	if (!t->pieces.v)
		return -ENOMEM;
	t->pieces.cap = o->nlive;
	if (pieces_overlap(o))
		return pieces_by_tree(o);
	for (uint32_t i = 0; i < o->nlive; i++) {
		const struct ranked *r = &o->ranked[o->live[i]];

		if (add_piece(o, o->live[i], r->start, after(r)))
			return -ENOMEM;
	}
	return 0;
}

/* Fill the pieces and the ends of the entries. */
static int order_entries(struct symtab *t, uint64_t limit)
{
	uint32_t n = (uint32_t)t->entries.len;

	if (!n)
		return 0;
	AUTO_FREE struct ranked *ranked = bigmem_alloc(n, sizeof(*ranked));
	AUTO_FREE uint32_t *live = bigmem_alloc(n, sizeof(*live));
	AUTO_FREE uint32_t *drops = bigmem_alloc(n, sizeof(*drops));
	struct order o = {
		.t = t, .limit = limit, .n = n, .ranked = ranked, .live = live, .drops = drops};

	if (!ranked || !live || !drops || rank_entries(&o))
		return -ENOMEM;
	run_passes(&o);
	return make_pieces(&o);
}

int symtab_finish(struct symtab *t, uint64_t limit)
{
	if (!t->npasses || t->passes[t->npasses - 1].end != t->entries.len)
		symtab_end_pass(t, true);
	int error = order_entries(t, limit);

	return error ? error : symtab_index_pieces(t);
}
