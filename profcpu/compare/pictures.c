#include "profcpu/compare/pictures.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "flamegraph/tree_profile.h"

#include <errno.h>
#include <stdlib.h>

#define PICTURES_EVENT "compared-time"
#define PICTURES_WHOLE 1e9 /* weight of a differential tree, so that shares stay exact */

static const char *const part_names[] = {PICTURES_ON_CPU, PICTURES_WAITS, PICTURES_CLAIMS};

/* The stack of a cell, with a mark of the state: of a wait for a CPU, or of a sample. */
static int mark_stack(struct profile *profile, const struct compare_cell *cell, uint32_t *ret_stack)
{
	switch (cell->part) {
	case COMPARE_RUNNABLE:
	case COMPARE_CLAIMS + TIMELINE_RUNNABLE:
		return profile_mark(profile, cell->stack, PROFILE_RUNNABLE, FRAME_RUNNABLE,
				    ret_stack);
	case COMPARE_CLAIMS + TIMELINE_RUNNING:
		return profile_mark(profile, cell->stack, PICTURES_RUNNING, FRAME_SUBJECT,
				    ret_stack);
	case COMPARE_CLAIMS + TIMELINE_BLOCKED:
		return profile_mark(profile, cell->stack, PICTURES_BLOCKED, FRAME_SUBJECT,
				    ret_stack);
	case COMPARE_CLAIMS + TIMELINE_UNKNOWN:
		return profile_mark(profile, cell->stack, PICTURES_NO_EVIDENCE, FRAME_LABEL,
				    ret_stack);
	default:
		*ret_stack = cell->stack;
		return 0;
	}
}

/* ns for which a sample stands. */
static double sample_ns(const struct compare_totals *t)
{
	return t->rounds > 1 ? (double)(t->to_ns - t->from_ns) / (double)(t->rounds - 1) : 1;
}

static uint64_t scaled(uint64_t weight, double by)
{
	double product = (double)weight * by;

	return product < (double)TREE_WEIGHT_MAX ? (uint64_t)product : TREE_WEIGHT_MAX;
}

/* The event of all three parts. The recording may have none. */
static int make_event(struct profile *profile, uint32_t *ret_event)
{
	struct profile_event event = {.has_period = true};
	int r = profile_text(profile, PICTURES_EVENT, sizeof(PICTURES_EVENT) - 1, &event.name);

	return r ? r : profile_event(profile, &event, ret_event);
}

int pictures_tree(const struct compare *c, struct profile *profile, uint64_t memory_max,
		  struct tree *ret_tree)
{
	double each = sample_ns(compare_totals(c));
	size_t n;
	const struct compare_cell *cells = compare_cells(c, &n);
	AUTO_FREE struct profile_group *groups = calloc(n + 1, sizeof(*groups));
	AUTO_FREE uint8_t *parts = calloc(n + 1, sizeof(*parts));
	struct tree_options options = {.groups = groups,
				       .ngroups = n,
				       .parts = parts,
				       .part_names = part_names,
				       .memory_max = memory_max};
	int r = groups && parts ? make_event(profile, &options.event) : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++) {
		bool claim = cells[i].part >= COMPARE_CLAIMS;

		parts[i] = cells[i].part == COMPARE_ON_CPU ? 0 : claim ? 2 : 1;
		groups[i] = (struct profile_group){.weight = claim ? scaled(cells[i].weight, each)
								   : cells[i].weight,
						   .samples = 1,
						   .event = options.event,
						   .thread = cells[i].thread};
		r = mark_stack(profile, &cells[i], &groups[i].stack);
	}
	return r ? r : tree_profile_make(ret_tree, profile, &options);
}

/* Finds the node of the methods of a stack. */
static int methods_node(struct tree *t, const struct profile *profile, uint32_t stack,
			uint32_t *ret_node)
{
	VEC(uint32_t) frames = {0};
	uint32_t node = TREE_ROOT;
	int r = 0;

	for (; stack != PROFILE_STACK_EMPTY && !r; stack = profile_stack_parent(profile, stack)) {
		uint32_t frame = profile_stack_frame(profile, stack);

		if (profile_frame_of(profile, frame)->kind == FRAME_MANAGED)
			r = vec_push(&frames, frame);
	}
	for (size_t i = frames.len; i-- && !r;) {
		uint32_t len;
		const char *name = profile_text_of(
			profile, profile_frame_of(profile, frames.v[i])->name, &len);

		r = tree_child(t, node, name, len, FRAME_MANAGED, &node);
	}
	if (!r && !frames.len)
		r = tree_child(t, node, PICTURES_NO_METHOD, sizeof(PICTURES_NO_METHOD) - 1,
			       FRAME_LABEL, &node);
	vec_free(&frames);
	*ret_node = node;
	return r;
}

int pictures_difference(const struct compare *c, const struct profile *profile, uint64_t memory_max,
			struct tree *ret_tree)
{
	double all[COMPARE_PARTS] = {0}, claims = 0;
	size_t n;
	const struct compare_cell *cells = compare_cells(c, &n);
	struct tree t;
	int r = tree_init(&t, false);

	if (r)
		return r;
	tree_limit(&t, memory_max);
	for (size_t i = 0; i < n; i++) {
		all[cells[i].part] += (double)cells[i].weight;
		claims += cells[i].part >= COMPARE_CLAIMS ? (double)cells[i].weight : 0;
	}
	for (size_t i = 0; i < n && !r; i++) {
		bool claim = cells[i].part >= COMPARE_CLAIMS;
		double whole = claim ? claims : all[COMPARE_ON_CPU];
		uint32_t node;

		if (!claim && cells[i].part != COMPARE_ON_CPU)
			continue;
		r = methods_node(&t, profile, cells[i].stack, &node);
		if (r)
			break;
		uint64_t weight = scaled(cells[i].weight, PICTURES_WHOLE / whole);

		if (claim)
			tree_add(&t, node, weight);
		else
			r = tree_add_before(&t, node, weight);
	}
	if (!r)
		r = tree_add_before(&t, TREE_ROOT, 0);
	if (!r)
		r = tree_finish(&t);
	if (r)
		tree_free(&t);
	else
		*ret_tree = t;
	return r;
}
