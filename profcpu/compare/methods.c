#include "profcpu/compare/methods.h"

#include "base/hashmap.h"

#include <errno.h>
#include <stdlib.h>

uint64_t compare_claims(const uint64_t parts[COMPARE_PARTS])
{
	uint64_t sum = 0;

	for (int s = 0; s < TIMELINE_STATES; s++)
		sum += parts[COMPARE_CLAIMS + s];
	return sum;
}

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : 0;
}

struct compare_shares compare_shares(const struct compare_methods *m,
				     const uint64_t parts[COMPARE_PARTS])
{
	return (struct compare_shares){
		.cpu = share(parts[COMPARE_ON_CPU], m->all[COMPARE_ON_CPU]),
		.claimed = share(compare_claims(parts), compare_claims(m->all)),
		.claimed_running = share(parts[COMPARE_CLAIMS + TIMELINE_RUNNING],
					 m->all[COMPARE_CLAIMS + TIMELINE_RUNNING])};
}

static int add_cell(struct compare_methods *m, struct hashmap *by_name,
		    const struct profile *profile, const struct compare_cell *cell, size_t number)
{
	bool is_inner = true;

	m->all[cell->part] += cell->weight;
	for (uint32_t stack = cell->stack; stack != PROFILE_STACK_EMPTY;
	     stack = profile_stack_parent(profile, stack)) {
		const struct profile_frame *f =
			profile_frame_of(profile, profile_stack_frame(profile, stack));
		struct compare_method blank = {.name = f->name};
		uint32_t *index;
		int fresh, r;

		if (f->kind != FRAME_MANAGED)
			continue;
		r = hashmap_entry(by_name, f->name, (uint32_t)m->v.len, &index, &fresh);
		if (!r && fresh)
			r = vec_push(&m->v, blank);
		if (r)
			return r;
		struct compare_method *method = &m->v.v[*index];

		if (is_inner)
			method->self[cell->part] += cell->weight;
		is_inner = false;
		/* A recursive method counts once. */
		if (method->last != number)
			method->total[cell->part] += cell->weight;
		method->last = number;
	}
	return 0;
}

static double importance(const struct compare_methods *m, const struct compare_method *method)
{
	struct compare_shares self = compare_shares(m, method->self),
			      total = compare_shares(m, method->total);
	double own = self.cpu > self.claimed ? self.cpu : self.claimed;

	/* Callers of all have the largest totals, and say the least. */
	return own + (total.cpu > total.claimed ? total.cpu : total.claimed) / 1000;
}

static int by_importance(const void *a, const void *b, void *methods)
{
	double x = importance(methods, a), y = importance(methods, b);

	if (x != y)
		return x < y ? 1 : -1;
	return ((const struct compare_method *)a)->name < ((const struct compare_method *)b)->name
		       ? -1
		       : 1;
}

int compare_methods_make(const struct compare *c, const struct profile *profile,
			 struct compare_methods *ret_methods)
{
	struct compare_methods m = {0};
	struct hashmap by_name = {0};
	size_t n;
	const struct compare_cell *cells = compare_cells(c, &n);
	int r = 0;

	for (size_t i = 0; i < n && !r; i++)
		r = add_cell(&m, &by_name, profile, &cells[i], i + 1);
	hashmap_free(&by_name);
	if (r) {
		compare_methods_free(&m);
		return r;
	}
	if (m.v.len)
		qsort_r(m.v.v, m.v.len, sizeof(*m.v.v), by_importance, &m);
	*ret_methods = m;
	return 0;
}

void compare_methods_free(struct compare_methods *m)
{
	vec_free(&m->v);
}
