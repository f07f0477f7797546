/*
 * Finds stubs outside code heaps. Precode, the first code that a call of a method reaches, has its
 * own range sections. Other executable parts of the runtime's double mapping are copies of write
 * barriers, and stub heaps that no structure describes.
 */
#include "base/cleanup.h"
#include "container/proc.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/jit_code_impl.h"

#include <errno.h>
#include <sys/mman.h>

#define PRECODE_MAX 24 /* bytes of a precode in its descriptor */
#define GAP_MIN 80     /* smaller gaps are not heaps */
#define STUB_RANGES_MAX 65536

/* Names as in the runtime's perf map. */
static const char precode_fixup[] = "stub ReportStubBlock<MethodCallThunk>";
static const char precode_stub[] = "stub ReportStubBlock<StubPrecode>";
static const char precode_other[] = "stub ReportStubBlock<Unknown>";
static const char barriers[] = CLR_BARRIERS_NAME;
static const char loader_heap[] = "stub LoaderHeap<Stub>";

struct found {
	VEC(struct clr_stub_range) ranges;
};

static int add_range(struct found *f, uint64_t start, uint64_t end, const char *name)
{
	if (start >= end || end - start > CLR_JIT_CODE_BODY_BYTES_MAX ||
	    f->ranges.len >= STUB_RANGES_MAX)
		return 0;
	return vec_push(&f->ranges,
			((struct clr_stub_range){.start = start, .end = end, .name = name}));
}

/* One kind of precode, from the descriptor that the runtime has for debuggers. */
struct precode {
	unsigned char bytes[PRECODE_MAX], ignored[PRECODE_MAX], size;
};

static bool read_precode(const struct clr_jit_code *j, enum clr_field bytes, enum clr_field ignored,
			 enum clr_field size, struct precode *p)
{
	const struct clr_contract *c = &j->contract;

	if (!c->platform_metadata || c->at[CLR_PRECODE] == CLR_NONE || c->at[bytes] == CLR_NONE ||
	    c->at[ignored] == CLR_NONE || c->at[size] == CLR_NONE)
		return false;
	uint64_t addr = c->platform_metadata + c->at[CLR_PRECODE];

	return !j->io.read(j->io.ctx, addr + c->at[bytes], p->bytes, sizeof(p->bytes)) &&
	       !j->io.read(j->io.ctx, addr + c->at[ignored], p->ignored, sizeof(p->ignored)) &&
	       !j->io.read(j->io.ctx, addr + c->at[size], &p->size, 1) && p->size &&
	       p->size <= PRECODE_MAX;
}

static bool is_precode(const struct precode *p, const unsigned char *code)
{
	for (int i = 0; i < p->size; i++)
		if (!p->ignored[i] && p->bytes[i] != code[i])
			return false;
	return p->size;
}

static int add_precode(struct clr_jit_code *j, const struct clr_code_ranges *ranges,
		       struct found *f)
{
	struct precode fixup = {.size = 0}, stub = {.size = 0};
	size_t n = ranges->ranges.len;
	AUTO_FREE unsigned char *code = calloc(n + 1, PRECODE_MAX);
	struct clr_batch batch = {.io = &j->io};
	int r = code ? 0 : -ENOMEM;

	if (!read_precode(j, CLR_FIXUP_BYTES, CLR_FIXUP_IGNORED, CLR_FIXUP_SIZE, &fixup))
		fixup.size = 0;
	if (!read_precode(j, CLR_STUB_BYTES, CLR_STUB_IGNORED, CLR_STUB_SIZE, &stub))
		stub.size = 0;
	for (size_t i = 0; !r && i < n; i++)
		r = clr_batch_add(&batch, ranges->ranges.v[i].start, code + i * PRECODE_MAX,
				  ranges->ranges.v[i].flags & CLR_RANGE_LIST ? PRECODE_MAX : 0);
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++) {
		const struct clr_code_range *range = &ranges->ranges.v[i];
		const unsigned char *at = code + i * PRECODE_MAX;

		if (range->flags & CLR_RANGE_LIST && !range->r2r_module)
			r = add_range(f, range->start, range->end,
				      is_precode(&fixup, at)  ? precode_fixup
				      : is_precode(&stub, at) ? precode_stub
							      : precode_other);
	}
	clr_batch_free(&batch);
	return r;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct clr_stub_range *x = a, *y = b;

	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->end > y->end) - (x->end < y->end);
}

/* Adds a range without a section. The copy of the barriers exists once and is searched once. */
static int add_unlisted_range(struct clr_jit_code *j, const char *maps, uint64_t start,
			      uint64_t end, struct found *f)
{
	struct clr_stub_range range = {.start = start, .end = end, .name = loader_heap};
	const struct clr_stub_range *known =
		j->stubs.len
			? bsearch(&range, j->stubs.v, j->stubs.len, sizeof(range), compare_ranges)
			: NULL;

	if (known)
		range.name = known->name;
	else if (!j->has_barriers &&
		 clr_barriers_is_copy(&j->barriers, &j->io, maps, j->anchor, start, end))
		range.name = barriers;
	j->has_barriers |= range.name == barriers;
	return add_range(f, start, end, range.name);
}

static int by_start(const void *a, const void *b)
{
	const struct clr_code_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/*
 * Adds the parts of an executable mapping outside all range sections. sorted: by start. Ranges
 * before *first end before the mapping.
 */
static int add_gaps(struct clr_jit_code *j, const char *maps, const struct proc_map *map,
		    const struct clr_code_ranges *sorted, size_t *first, struct found *f)
{
	uint64_t at = map->start;
	int r = 0;

	while (*first < sorted->ranges.len && sorted->ranges.v[*first].end <= at)
		++*first;
	for (size_t i = *first; !r && i < sorted->ranges.len && at < map->end; i++) {
		const struct clr_code_range *range = &sorted->ranges.v[i];

		if (range->end <= at || range->r2r_module)
			continue;
		if (range->start >= map->end)
			break;
		if (range->start > at && range->start - at >= GAP_MIN)
			r = add_unlisted_range(j, maps, at, range->start, f);
		at = range->end;
	}
	return !r && at < map->end ? add_unlisted_range(j, maps, at, map->end, f) : r;
}

static int add_unlisted(struct clr_jit_code *j, const struct clr_code_ranges *ranges,
			const char *maps, struct found *f)
{
	static const char mapping[] = "/memfd:doublemapper";
	AUTO_FREE char *text = strdup(maps);
	struct clr_code_ranges sorted = {0};
	struct proc_map map;
	size_t first = 0;
	int r = text ? vec_reserve(&sorted.ranges, ranges->ranges.len + 1) : -ENOMEM;
	if (!r && ranges->ranges.len) {
		memcpy(sorted.ranges.v, ranges->ranges.v,
		       ranges->ranges.len * sizeof(*sorted.ranges.v));
		sorted.ranges.len = ranges->ranges.len;
		qsort(sorted.ranges.v, sorted.ranges.len, sizeof(*sorted.ranges.v), by_start);
	}
	for (char *cursor = text; !r && proc_map_next(&cursor, &map);)
		if (map.prot & PROT_EXEC && !strncmp(map.path, mapping, strlen(mapping)))
			r = clr_jit_code_is_late(j) ? -ETIMEDOUT
						    : add_gaps(j, maps, &map, &sorted, &first, f);
	clr_code_ranges_free(&sorted);
	return r;
}

static int report_range(struct clr_jit_code *j, const struct clr_stub_range *range,
			const struct clr_jit_code_listener *l)
{
	struct clr_jit_code_body code = {
		.start = range->start,
		.bytes = (uint32_t)(range->end - range->start),
		.is_stub = true,
		.name = range->name,
		.name_len = (uint32_t)strlen(range->name),
	};

	j->stats.added++;
	return l->code(l->ctx, &code);
}

/* Compares two sorted lists. A range in only one of them is gone or new. */
static int report_changes(struct clr_jit_code *j, struct found *f,
			  const struct clr_jit_code_listener *l)
{
	int r = 0;

	for (size_t i = 0, k = 0; !r && i < j->stubs.len; i++) {
		const struct clr_stub_range *old = &j->stubs.v[i];

		while (k < f->ranges.len && compare_ranges(&f->ranges.v[k], old) < 0)
			k++;
		if (k < f->ranges.len && !compare_ranges(&f->ranges.v[k], old) &&
		    f->ranges.v[k].name == old->name)
			continue;
		j->stats.gone++;
		r = l->gone(l->ctx, old->start, 0);
	}
	for (size_t i = 0, k = 0; !r && i < f->ranges.len; i++) {
		const struct clr_stub_range *new = &f->ranges.v[i];

		while (k < j->stubs.len && compare_ranges(&j->stubs.v[k], new) < 0)
			k++;
		if (k >= j->stubs.len || compare_ranges(&j->stubs.v[k], new) ||
		    j->stubs.v[k].name != new->name)
			r = report_range(j, new, l);
	}
	return r;
}

int clr_jit_code_stubs_scan(struct clr_jit_code *j, const struct clr_code_ranges *ranges,
			    const char *maps, const struct clr_jit_code_listener *l)
{
	struct found f = {0};
	bool had_barriers = j->has_barriers;
	int r = add_precode(j, ranges, &f);

	if (!r && maps)
		r = add_unlisted(j, ranges, maps, &f);
	/* Stop here: ranges not read in time would get a wrong name. */
	if (!r && clr_jit_code_is_late(j))
		r = -ETIMEDOUT;
	if (!r && f.ranges.len)
		qsort(f.ranges.v, f.ranges.len, sizeof(*f.ranges.v), compare_ranges);
	if (!r)
		r = report_changes(j, &f, l);
	if (r) {
		/* Forget what was found, to find it again. */
		j->has_barriers = had_barriers;
		vec_free(&f.ranges);
		return r;
	}
	free(j->stubs.v);
	j->stubs.v = f.ranges.v;
	j->stubs.len = f.ranges.len;
	j->stubs.cap = f.ranges.cap;
	return 0;
}
