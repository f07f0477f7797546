#include "flamegraph/collapse_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COLLAPSE_LIST_END UINT32_MAX
#define COLLAPSE_NO_NAME UINT32_MAX

int collapse_walk_init(struct collapse_walk *w, struct profile *profile,
		       const struct collapse_options *options, struct outbuf *out)
{
	size_t n = profile_nstacks(profile);

	*w = (struct collapse_walk){.profile = profile, .options = options, .out = out};
	w->path = outbuf_to(-1);
	w->lines_text = outbuf_to(-1);
	w->nodes = calloc(n, sizeof(*w->nodes));
	if (!w->nodes)
		return -ENOMEM;
	return frame_names_init(&w->plain, profile, options, false, &w->names);
}

void collapse_walk_free(struct collapse_walk *w)
{
	frame_names_free(&w->plain);
	if (w->has_java)
		frame_names_free(&w->java);
	intern_free(&w->names);
	text_order_free(&w->order);
	free(w->nodes);
	vec_free(&w->weights);
	vec_free(&w->items);
	vec_free(&w->levels);
	outbuf_close(&w->path);
	outbuf_close(&w->lines_text);
	vec_free(&w->lines);
}

static int collapse_line(struct collapse_walk *w, uint64_t weight)
{
	if (w->path.error)
		return w->path.error;
	if (w->keep) {
		struct collapse_line line = {w->lines_text.len, w->path.len, weight};

		outbuf_put(&w->lines_text, w->path.data, w->path.len);
		return w->lines_text.error ? w->lines_text.error : vec_push(&w->lines, line);
	}
	if (w->options->divisor)
		weight = weight / w->options->divisor +
			 (weight % w->options->divisor >= (w->options->divisor + 1) / 2);
	if (w->options->divisor && !weight)
		return 0;
	outbuf_put(w->out, w->path.data, w->path.len);
	outbuf_char(w->out, ' ');
	outbuf_u64(w->out, weight);
	outbuf_char(w->out, '\n');
	return w->out->error;
}

/* The stack itself, or the nearest of its callers whose frame has a name. */
static int collapse_named(struct collapse_walk *w, uint32_t stack, uint32_t *ret_stack)
{
	const uint32_t *names;
	size_t n;

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(w->profile, stack)) {
		uint32_t frame = profile_stack_frame(w->profile, stack);
		int r;

		if (frame_names_single(w->now, frame) != COLLAPSE_NO_NAME)
			break;
		r = frame_names_find(w->now, frame, &names, &n);
		if (r)
			return r;
		if (n)
			break;
	}
	*ret_stack = stack;
	return 0;
}

/* Adds a stack and its callers to the lists of their callers. */
static int collapse_link(struct collapse_walk *w, const struct collapse_stack *s)
{
	uint32_t stack, caller;
	int r = collapse_named(w, s->stack, &stack);

	if (r || stack == PROFILE_STACK_EMPTY)
		return r;
	if (!w->nodes[stack].line) {
		r = vec_push(&w->weights, 0);
		if (r)
			return r;
		w->nodes[stack].line = (uint32_t)w->weights.len;
	}
	uint64_t *weight = &w->weights.v[w->nodes[stack].line - 1];

	if (__builtin_add_overflow(*weight, s->weight, weight))
		*weight = UINT64_MAX;
	for (; stack != PROFILE_STACK_EMPTY && !w->nodes[stack].next; stack = caller) {
		uint32_t frame = profile_stack_frame(w->profile, stack);
		struct collapse_node *node = &w->nodes[stack], *above;

		r = collapse_named(w, profile_stack_parent(w->profile, stack), &caller);
		if (r)
			return r;
		above = &w->nodes[caller];
		node->name = frame_names_single(w->now, frame);
		node->next = above->first ? above->first : COLLAPSE_LIST_END;
		above->first = stack;
	}
	return 0;
}

/* Adds the one or two items of a stack at one of its names. */
static int collapse_push(struct collapse_walk *w, uint32_t stack, uint32_t part)
{
	const uint32_t *names = &w->nodes[stack].name;
	size_t n = 1;
	int r = 0;

	if (*names == COLLAPSE_NO_NAME)
		r = frame_names_find(w->now, profile_stack_frame(w->profile, stack), &names, &n);
	if (r)
		return r;
	const uint32_t *places = &w->order.place[2 * (size_t)names[part]];
	struct collapse_item item = {.stack = stack, .part = part};
	bool last = part + 1 == n;

	if (last && w->nodes[stack].line) {
		item.place = places[0];
		r = vec_push(&w->items, item);
	}
	if (!r && (!last || w->nodes[stack].first)) {
		item.place = places[1];
		r = vec_push(&w->items, item);
	}
	return r;
}

/* Adds the items of all callees of a stack and empties its list. */
static int collapse_push_callees(struct collapse_walk *w, uint32_t stack)
{
	uint32_t callee = w->nodes[stack].first, next;
	int r = 0;

	w->nodes[stack].first = 0;
	for (; !r && callee && callee != COLLAPSE_LIST_END; callee = next) {
		next = w->nodes[callee].next;
		w->nodes[callee].next = 0;
		r = collapse_push(w, callee, 0);
	}
	return r;
}

static int collapse_compare_items(const void *x, const void *y)
{
	const struct collapse_item *a = x, *b = y;

	return a->place < b->place ? -1 : a->place > b->place;
}

static void collapse_sort(struct collapse_item *v, size_t n)
{
	if (n > 24) {
		qsort(v, n, sizeof(*v), collapse_compare_items);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		struct collapse_item item = v[i];
		size_t k = i;

		for (; k && v[k - 1].place > item.place; k--)
			v[k] = v[k - 1];
		v[k] = item;
	}
}

/* Opens a level with the items from `first` on, under the current path. */
static int collapse_open(struct collapse_walk *w, size_t first)
{
	struct collapse_level level = {first, first, w->items.len, w->path.len};

	if (first == w->items.len)
		return 0;
	collapse_sort(w->items.v + first, w->items.len - first);
	return vec_push(&w->levels, level);
}

/* Writes the line of the stacks items[from..to), which end at one text. */
static int collapse_end(struct collapse_walk *w, size_t from, size_t to)
{
	uint64_t weight = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t *line = &w->nodes[w->items.v[i].stack].line;

		if (__builtin_add_overflow(weight, w->weights.v[*line - 1], &weight))
			weight = UINT64_MAX;
		*line = 0;
	}
	return collapse_line(w, weight);
}

/*
 * A shortcut for the usual case: stacks with one callee that has one name, and that does not both
 * end and continue. They need no items. Goes down to the last such callee and writes the line of a
 * leaf. *stack is where to continue; PROFILE_STACK_EMPTY: all is written.
 */
static int collapse_run(struct collapse_walk *w, uint32_t *stack)
{
	struct collapse_node *node = &w->nodes[*stack], *callee;
	uint32_t at;

	for (; (at = node->first); node = callee) {
		callee = &w->nodes[at];
		if (callee->next != COLLAPSE_LIST_END || callee->name == COLLAPSE_NO_NAME ||
		    (callee->line && callee->first))
			break;
		node->first = callee->next = 0;
		outbuf_put(&w->path, intern_text(&w->names, callee->name),
			   intern_len(&w->names, callee->name));
		*stack = at;
		if (callee->line) {
			uint64_t weight = w->weights.v[callee->line - 1];

			callee->line = 0;
			*stack = PROFILE_STACK_EMPTY;
			return collapse_line(w, weight);
		}
		outbuf_char(&w->path, ';');
	}
	return 0;
}

/* Continues one stack after the last name of its frame. */
static int collapse_descend_one(struct collapse_walk *w, uint32_t stack)
{
	size_t first = w->items.len;
	int r = collapse_run(w, &stack);

	if (r || stack == PROFILE_STACK_EMPTY)
		return r;
	r = collapse_push_callees(w, stack);
	return r ? r : collapse_open(w, first);
}

/* Continues the stacks items[from..to) after one text, in a new level. */
static int collapse_descend(struct collapse_walk *w, size_t from, size_t to)
{
	size_t first = w->items.len;
	int r = 0;

	outbuf_char(&w->path, ';');
	for (size_t i = from; !r && i < to; i++) {
		struct collapse_item item = w->items.v[i];
		const uint32_t *names;
		size_t n;

		r = frame_names_find(w->now, profile_stack_frame(w->profile, item.stack), &names,
				     &n);
		if (!r && to - from == 1 && item.part + 1 == n)
			return collapse_descend_one(w, item.stack);
		if (!r)
			r = item.part + 1 < n ? collapse_push(w, item.stack, item.part + 1)
					      : collapse_push_callees(w, item.stack);
	}
	return r ? r : collapse_open(w, first);
}

/* Handles the next text of the innermost level. */
static int collapse_step(struct collapse_walk *w)
{
	struct collapse_level *level = &w->levels.v[w->levels.len - 1];
	size_t from = level->at, to = from;

	if (from == level->end) {
		w->items.len = level->first;
		w->levels.len--;
		return 0;
	}
	uint32_t place = w->items.v[from].place, which = w->order.at[place];

	while (to < level->end && w->items.v[to].place == place)
		to++;
	level->at = to;
	w->path.len = level->prefix_len;
	outbuf_put(&w->path, intern_text(&w->names, which / 2), intern_len(&w->names, which / 2));
	return which & 1 ? collapse_descend(w, from, to) : collapse_end(w, from, to);
}

/* Writes the line of a root without frames. */
static int collapse_root_line(struct collapse_walk *w, const struct collapse_stack *stacks,
			      size_t n)
{
	uint64_t weight = 0;
	bool any = false;
	uint32_t stack;

	for (size_t i = 0; i < n; i++) {
		int r = collapse_named(w, stacks[i].stack, &stack);

		if (r)
			return r;
		if (stack != PROFILE_STACK_EMPTY)
			continue;
		any = true;
		if (__builtin_add_overflow(weight, stacks[i].weight, &weight))
			weight = UINT64_MAX;
	}
	return any ? collapse_line(w, weight) : 0;
}

/* Writes the lines of a root with frames. */
static int collapse_root_stacks(struct collapse_walk *w, const struct collapse_stack *stacks,
				size_t n)
{
	int r = 0;

	w->weights.len = 0;
	for (size_t i = 0; !r && i < n; i++)
		r = collapse_link(w, &stacks[i]);
	if (r)
		return r;
	outbuf_char(&w->path, ';');
	r = collapse_push_callees(w, PROFILE_STACK_EMPTY);
	if (!r)
		r = collapse_open(w, 0);
	while (!r && w->levels.len)
		r = collapse_step(w);
	return r;
}

static int collapse_compare_lines(const void *x, const void *y, void *text)
{
	const struct collapse_line *a = x, *b = y;
	size_t len = a->len < b->len ? a->len : b->len;
	int r = memcmp((const char *)text + a->at, (const char *)text + b->at, len);

	if (r)
		return r;
	return a->len < b->len ? -1 : a->len > b->len;
}

/* Sorts the kept lines, adds up equal ones, and writes them. */
static int collapse_kept_lines(struct collapse_walk *w)
{
	int r = 0;

	w->keep = false;
	if (w->lines.len)
		qsort_r(w->lines.v, w->lines.len, sizeof(*w->lines.v), collapse_compare_lines,
			w->lines_text.data);
	for (size_t i = 0, k; !r && i < w->lines.len; i = k) {
		struct collapse_line line = w->lines.v[i];

		for (k = i + 1; k < w->lines.len; k++) {
			if (collapse_compare_lines(&w->lines.v[i], &w->lines.v[k],
						   w->lines_text.data))
				break;
			if (__builtin_add_overflow(line.weight, w->lines.v[k].weight, &line.weight))
				line.weight = UINT64_MAX;
		}
		w->path.len = 0;
		outbuf_put(&w->path, w->lines_text.data + line.at, line.len);
		r = collapse_line(w, line.weight);
	}
	return r;
}

/* Makes the names of all frames and sorts them. */
static int collapse_names(struct collapse_walk *w, const struct intern *roots)
{
	const uint32_t *names;
	size_t n;
	int r = 0;

	for (uint32_t i = 0; i < roots->len; i++) {
		const char *root = intern_text(roots, i);

		w->keep = w->keep || memchr(root, ';', intern_len(roots, i));
		if (!w->has_java && w->options->names == COLLAPSE_PERF &&
		    !strncmp(root, "java", 4)) {
			w->has_java = true;
			r = frame_names_init(&w->java, w->profile, w->options, true, &w->names);
			if (r)
				return r;
		}
	}
	for (uint32_t f = 0; !r && f < profile_nframes(w->profile); f++) {
		r = frame_names_find(&w->plain, f, &names, &n);
		if (!r && w->has_java)
			r = frame_names_find(&w->java, f, &names, &n);
	}
	return r ? r : text_order_make(&w->names, &w->order);
}

int collapse_walk_roots(struct collapse_walk *w, const struct intern *roots, const size_t *starts,
			const struct collapse_stack *stacks)
{
	struct text_order order = {0};
	int r = collapse_names(w, roots);

	if (!r)
		r = text_order_make(roots, &order);
	for (size_t i = 0; !r && i < roots->len * 2; i++) {
		uint32_t root = order.at[i] / 2;
		const char *name = intern_text(roots, root);
		size_t n = starts[root + 1] - starts[root];

		w->now = w->has_java && !strncmp(name, "java", 4) ? &w->java : &w->plain;
		w->path.len = 0;
		outbuf_put(&w->path, name, intern_len(roots, root));
		r = order.at[i] & 1 ? collapse_root_stacks(w, stacks + starts[root], n)
				    : collapse_root_line(w, stacks + starts[root], n);
	}
	text_order_free(&order);
	return !r && w->keep ? collapse_kept_lines(w) : r;
}
