#include "unwind/cfi_table.h"

#include "elf/budget.h"
#include "unwind/cfi_rules.h"

#include <errno.h>
#include <stdlib.h>

/* full_step runs no longer program for each frame. */
#define FULL_STEP_BYTES_MAX ((uint64_t)64 << 10)
#define HINTS 1024
#define HINT_SHIFT 6 /* 64 bytes of code share a hint */

struct cfi_row {
	uint32_t start; /* offset in the function */
	struct unwind_rule rule;
};
_Static_assert(sizeof(struct cfi_row) == 16, "compiled rows are small");

/* A compiled function, or a range that no FDE covers. */
struct compiled {
	struct cfi_place place;
	uint32_t first, n; /* rows */
	bool signal;
};

struct cfi_table {
	struct cfi_frames *frames;
	bool header_wrong; /* as the index had it when places were compiled */
	/* By address, in two arrays, so that a search touches little memory. */
	VEC(uint64_t) lows;
	VEC(uint32_t) order; /* indices into places */
	VEC(struct compiled) places;
	VEC(struct cfi_row) rows;
	uint64_t compiled;
	size_t taken; /* bytes of ELF_BUDGET_RULES */
	/* By bits of the address: the place found last. Check that it covers the address. */
	uint32_t hints[HINTS];
};

int cfi_table_take(struct cfi_frames *frames, struct cfi_table **ret_table)
{
	struct cfi_table *t = calloc(1, sizeof(*t));

	if (!t) {
		cfi_frames_free(frames);
		return -ENOMEM;
	}
	t->frames = frames;
	*ret_table = t;
	return 0;
}

void cfi_table_free(struct cfi_table *t)
{
	if (!t)
		return;
	cfi_frames_free(t->frames);
	cfi_table_forget(t);
	free(t);
}

void cfi_table_forget(struct cfi_table *t)
{
	vec_free(&t->lows);
	vec_free(&t->order);
	vec_free(&t->places);
	vec_free(&t->rows);
	elf_budget_give(ELF_BUDGET_RULES, t->taken);
	t->taken = 0;
}

void cfi_table_drop(struct cfi_table *t)
{
	cfi_frames_drop(t->frames);
}

/* Memory of the rules, in bytes. */
static size_t rules_bytes(const struct cfi_table *t)
{
	return t->lows.cap * sizeof(*t->lows.v) + t->order.cap * sizeof(*t->order.v) +
	       t->places.cap * sizeof(*t->places.v) + t->rows.cap * sizeof(*t->rows.v);
}

/* Forgets all rules, but keeps their memory. */
static void forget(struct cfi_table *t)
{
	t->lows.len = t->order.len = t->places.len = t->rows.len = 0;
}

static int add_row(struct cfi_table *t, const struct compiled *c, uint64_t start,
		   struct unwind_rule rule)
{
	const struct cfi_row *last = t->rows.len > c->first ? &t->rows.v[t->rows.len - 1] : NULL;

	if (last && !memcmp(&last->rule, &rule, sizeof(rule)))
		return 0;
	if (t->rows.len - c->first == CFI_FUNCTION_ROWS_MAX)
		return -E2BIG;
	return vec_push(&t->rows, ((struct cfi_row){(uint32_t)(start - c->place.start), rule}));
}

/*
 * Appends the rows of c->place's FDE to all rows. Rows before damage in the FDE's program stay
 * valid: the place becomes the part that has vaddr, either before the damage or from it on.
 */
static int compile_rows(struct cfi_table *t, struct compiled *c, uint64_t vaddr,
			uint64_t *steps_left)
{
	const struct cfi_cie *cie;
	struct cfi_program p;
	struct cfi_fde fde;
	int r = cfi_frames_fde(t->frames, &c->place, &cie, &fde);

	if (!r && !unwind_take_steps(steps_left,
				     UNWIND_STEPS_COMPILE +
					     UNWIND_STEPS_PROGRAM * (cie->program_bytes +
								     (uint64_t)fde.program_bytes)))
		r = -E2BIG;
	if (!r)
		r = cfi_program_begin(&p, cie, &fde);
	if (r)
		return r;
	t->compiled++;
	c->signal = cie->signal;
	while ((r = cfi_program_next(&p)) > 0) {
		r = add_row(t, c, p.from, cfi_rules_short_rule(&p.state, cie->signal));
		if (r)
			return r;
	}
	if (r && vaddr < p.to) {
		c->place.hi = c->place.hi < p.to ? c->place.hi : p.to;
		return 0;
	}
	if (r && c->place.lo < p.to)
		c->place.lo = p.to;
	return r;
}

/* The number of places that begin at or before vaddr. */
static size_t position(const struct cfi_table *t, uint64_t vaddr)
{
	const uint64_t *low = t->lows.v;

	/* Compiles without branches; the CPU would mispredict half of them. */
	for (size_t n = t->lows.len; n;) {
		size_t half = (n + 1) / 2;
		const uint64_t *upper = low + half;

		low = low[half - 1] <= vaddr ? upper : low;
		n -= half;
	}
	return (size_t)(low - t->lows.v);
}

static int insert(struct cfi_table *t, const struct compiled *c)
{
	size_t at = position(t, c->place.lo);

	if (vec_reserve(&t->lows, 1) || vec_reserve(&t->order, 1) || vec_push(&t->places, *c))
		return -ENOMEM;
	memmove(t->lows.v + at + 1, t->lows.v + at, (t->lows.len - at) * sizeof(*t->lows.v));
	memmove(t->order.v + at + 1, t->order.v + at, (t->order.len - at) * sizeof(*t->order.v));
	t->lows.v[at] = c->place.lo;
	t->order.v[at] = (uint32_t)(t->places.len - 1);
	t->lows.len++;
	t->order.len++;
	return 0;
}

/* Finds the place of vaddr. Forgets compiled functions that a wrong header gave. */
static int locate(struct cfi_table *t, uint64_t vaddr, struct cfi_place *ret_place)
{
	int r = cfi_frames_find(t->frames, vaddr, ret_place);

	if (t->header_wrong != t->frames->eh_frame.header_wrong)
		forget(t);
	t->header_wrong = t->frames->eh_frame.header_wrong;
	return r;
}

/* If others took most of the stack's steps, and too few are left, the next stack tries again. */
static int compile(struct cfi_table *t, uint64_t vaddr, uint64_t *steps_left,
		   const struct compiled **ret_compiled)
{
	struct compiled c = {.first = 0};
	bool others = steps_left && *steps_left < UNWIND_STEPS_MAX / 2;
	int r = locate(t, vaddr, &c.place);

	if (r)
		return r;
	if (t->places.len >= CFI_TABLE_PLACES_MAX || t->rows.len >= CFI_TABLE_ROWS_MAX)
		forget(t);
	c.first = (uint32_t)t->rows.len;
	if (!c.place.error) {
		r = compile_rows(t, &c, vaddr, steps_left);
		if (r == -ENOMEM || (r == -E2BIG && others)) {
			t->rows.len = c.first;
			return r;
		}
		c.place.error = r;
	}
	if (c.place.error)
		t->rows.len = c.first;
	c.n = (uint32_t)(t->rows.len - c.first);
	r = insert(t, &c);
	elf_budget_add(ELF_BUDGET_RULES, rules_bytes(t) - t->taken);
	t->taken = rules_bytes(t);
	if (r)
		t->rows.len = c.first;
	else
		*ret_compiled = &t->places.v[t->places.len - 1];
	return r;
}

__attribute__((noinline)) static int search(struct cfi_table *t, uint64_t vaddr,
					    uint64_t *steps_left,
					    const struct compiled **ret_compiled)
{
	size_t at = position(t, vaddr);
	const struct compiled *c = at ? &t->places.v[t->order.v[at - 1]] : NULL;

	if (!c || vaddr >= c->place.hi) {
		int r = compile(t, vaddr, steps_left, &c);

		if (r)
			return r;
	}
	t->hints[vaddr >> HINT_SHIFT & (HINTS - 1)] = (uint32_t)(c - t->places.v);
	*ret_compiled = c;
	return c->place.error;
}

/* Finds or compiles the place that covers vaddr. Errors: see cfi_table_find. */
static int find_compiled(struct cfi_table *t, uint64_t vaddr, uint64_t *steps_left,
			 const struct compiled **ret_compiled)
{
	uint32_t hint = t->hints[vaddr >> HINT_SHIFT & (HINTS - 1)];
	const struct compiled *c = hint < t->places.len ? &t->places.v[hint] : NULL;

	if (!c || vaddr < c->place.lo || vaddr >= c->place.hi)
		return search(t, vaddr, steps_left, ret_compiled);
	*ret_compiled = c;
	return c->place.error;
}

static const struct unwind_rule *rule_at(const struct cfi_table *t, const struct compiled *c,
					 uint64_t vaddr)
{
	uint32_t off = (uint32_t)(vaddr - c->place.start);
	const struct cfi_row *row = &t->rows.v[c->first];

	/* The first row starts at 0. */
	for (size_t n = c->n; n > 1;) {
		size_t half = n / 2;

		row += row[half].start <= off ? half : 0;
		n -= half;
	}
	return &row->rule;
}

int cfi_table_find(struct cfi_table *t, uint64_t vaddr, uint64_t *steps_left,
		   struct unwind_rule *ret_rule)
{
	const struct compiled *c;
	int r = find_compiled(t, vaddr, steps_left, &c);

	if (!r)
		*ret_rule = *rule_at(t, c, vaddr);
	return r;
}

static int full_step(struct cfi_table *t, const struct compiled *c, uint64_t vaddr,
		     struct unwind_regs *regs, const struct unwind_memory *memory)
{
	const struct cfi_cie *cie;
	struct cfi_program p;
	struct cfi_fde fde;
	int r = cfi_frames_fde(t->frames, &c->place, &cie, &fde);

	if (!r &&
	    (cie->program_bytes + fde.program_bytes > FULL_STEP_BYTES_MAX ||
	     !unwind_take_steps(memory->steps_left, 1 + UNWIND_STEPS_PROGRAM * cie->program_bytes)))
		r = -E2BIG;
	if (!r)
		r = cfi_program_begin(&p, cie, &fde);
	if (r)
		return r;
	do
		r = cfi_program_next(&p);
	while (r > 0 && p.to <= vaddr);
	if (!unwind_take_steps(memory->steps_left,
			       UNWIND_STEPS_PROGRAM * (uint64_t)(p.b.p - fde.program)))
		return -E2BIG;
	if (r <= 0)
		return r ? r : -EBADMSG;
	return cfi_rules_apply(&p.state, memory, regs);
}

int cfi_table_step(struct cfi_table *t, uint64_t vaddr, struct unwind_regs *regs,
		   const struct unwind_memory *memory, bool *ret_signal)
{
	const struct compiled *c;
	int r = find_compiled(t, vaddr, memory->steps_left, &c);

	if (r)
		return r;
	const struct unwind_rule *rule = rule_at(t, c, vaddr);

	if (rule->kind == UNWIND_FULL || rule->saves)
		r = full_step(t, c, vaddr, regs, memory);
	else
		r = cfi_rules_apply_short_rule(rule, memory, regs);
	if (!r)
		*ret_signal = c->signal;
	return r;
}

int cfi_table_bounds(struct cfi_table *t, uint64_t vaddr, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct compiled *c;
	int r = find_compiled(t, vaddr, NULL, &c);

	if (r)
		return r;
	*ret_start = c->place.start;
	*ret_end = c->place.end;
	return 0;
}

struct cfi_table_stats cfi_table_stats(const struct cfi_table *t)
{
	return (struct cfi_table_stats){
		.places = t->places.len,
		.rows = t->rows.len,
		.compiled = t->compiled,
		.bytes = sizeof(*t) + rules_bytes(t) + cfi_frames_bytes(t->frames),
	};
}
