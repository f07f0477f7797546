#include "flamegraph/tree.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/outbuf.h"

#include <errno.h>
#include <string.h>

#define TREE_SEARCH_MAX 24 /* children in a list, before a table is made */

/* tag is the upper half of the hash, so that most misses are seen without looking at the node. */
struct tree_slot {
	uint32_t tag;
	uint32_t node; /* 0, the root, is nobody's child: free */
};

static uint8_t tree_kind_of(const struct tree_node *n)
{
	return (uint8_t)(n->kind | (n->inlined ? TREE_INLINED : 0) | (n->is_comm ? TREE_COMM : 0));
}

static uint64_t tree_hash(uint32_t parent, uint32_t name, uint8_t kind)
{
	return hash_mix((uint64_t)parent << 32 | name, kind);
}

int tree_init(struct tree *t, bool in_order)
{
	uint32_t name;

	*t = (struct tree){.scale = 1, .event = PROFILE_NONE, .in_order = in_order};
	int r = intern_str(&t->names, "all", &name);

	if (!r)
		r = vec_push(&t->nodes, ((struct tree_node){.name = name}));
	if (!r && in_order)
		r = vec_push(&t->path, TREE_ROOT);
	if (r)
		tree_free(t);
	return r;
}

void tree_free(struct tree *t)
{
	intern_free(&t->names);
	vec_free(&t->nodes);
	vec_free(&t->before);
	vec_free(&t->path);
	free(t->slots);
	*t = (struct tree){0};
}

/* The slot of this child, or the free one where it belongs. */
static struct tree_slot *tree_find_slot(const struct tree *t, uint32_t parent, uint32_t name, uint8_t kind)
{
	uint64_t hash = tree_hash(parent, name, kind);
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t mask = t->nslots - 1, i = hash & mask;

	for (; t->slots[i].node; i = (i + 1) & mask) {
		const struct tree_node *n = &t->nodes.v[t->slots[i].node];

		if (t->slots[i].tag == tag && n->parent == parent && n->name == name && tree_kind_of(n) == kind)
			break;
	}
	return &t->slots[i];
}

static void tree_fill_slot(struct tree *t, uint32_t node)
{
	const struct tree_node *n = &t->nodes.v[node];
	uint8_t kind = tree_kind_of(n);

	*tree_find_slot(t, n->parent, n->name, kind) =
		(struct tree_slot){(uint32_t)(tree_hash(n->parent, n->name, kind) >> 32), node};
	t->used_slots++;
}

/* Room for one more in the table. */
static int tree_reserve_slot(struct tree *t)
{
	struct tree_slot *old = t->slots;
	size_t nold = t->nslots, n = nold ? nold * 2 : 1024;

	if ((t->used_slots + 1) * 3 < nold * 2)
		return 0;
	t->slots = calloc(n, sizeof(*t->slots));
	if (!t->slots) {
		t->slots = old;
		return -ENOMEM;
	}
	t->nslots = n;
	t->used_slots = 0;
	for (size_t i = 0; i < nold; i++)
		if (old[i].node)
			tree_fill_slot(t, old[i].node);
	free(old);
	return 0;
}

/* From now on the children of this node are found by the table. */
static int tree_put_into_table(struct tree *t, uint32_t parent)
{
	for (uint32_t c = t->nodes.v[parent].last_child; c != TREE_ROOT; c = t->nodes.v[c].prev_sibling) {
		if (tree_reserve_slot(t))
			return -ENOMEM;
		tree_fill_slot(t, c);
	}
	t->nodes.v[parent].in_table = true;
	return 0;
}

static bool tree_name_is_after(const struct tree *t, uint32_t name, uint32_t other)
{
	uint32_t a = intern_len(&t->names, name), b = intern_len(&t->names, other);
	int c = memcmp(intern_text(&t->names, name), intern_text(&t->names, other), a < b ? a : b);

	return c ? c > 0 : a > b;
}

static int tree_new_node(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, bool sorted, uint32_t *ret_node)
{
	if (vec_reserve(&t->nodes, 1))
		return -ENOMEM;
	struct tree_node *p = &t->nodes.v[parent];

	if (t->nodes.len >= TREE_NODES_MAX || p->depth >= TREE_DEPTH_MAX)
		return -E2BIG;
	uint32_t node = (uint32_t)t->nodes.len++;

	t->nodes.v[node] = (struct tree_node){
		.name = name,
		.parent = parent,
		.depth = p->depth + 1,
		.kind = kind & TREE_KIND_MASK,
		.inlined = kind & TREE_INLINED,
		.is_comm = kind & TREE_COMM,
		.prev_sibling = p->last_child,
		.start = t->sum,
	};
	p->last_child = node;
	p->unsorted_children |= !sorted;
	*ret_node = node;
	return 0;
}

/* Only the newest child of parent can be met again, and only while nothing else came between. */
static int tree_child_in_order(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
			       uint32_t *ret_node)
{
	size_t depth = t->nodes.v[parent].depth + 1;

	if (depth < t->path.len && t->path.v[depth - 1] == parent) {
		const struct tree_node *open = &t->nodes.v[t->path.v[depth]];

		if (open->name == name && tree_kind_of(open) == kind) {
			*ret_node = t->path.v[depth];
			return 0;
		}
	}
	if (vec_reserve(&t->path, 1))
		return -ENOMEM;
	int r = tree_new_node(t, parent, name, kind, true, ret_node);

	if (r)
		return r;
	if (depth < t->path.len)
		t->path.len = depth;
	t->path.v[t->path.len++] = *ret_node;
	return 0;
}

static int tree_child_in_table(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, bool sorted,
			       uint32_t *ret_node)
{
	if (tree_reserve_slot(t))
		return -ENOMEM;
	struct tree_slot *slot = tree_find_slot(t, parent, name, kind);

	if (slot->node) {
		*ret_node = slot->node;
		return 0;
	}
	int r = tree_new_node(t, parent, name, kind, sorted, ret_node);

	if (!r)
		tree_fill_slot(t, *ret_node);
	return r;
}

/*
 * Sorted input adds children in order: a name behind the last one's is new, and there is nothing to look up. Where children
 * came in another order the list is searched, and where that is long the table.
 */
int tree_child_of_name(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, uint32_t *ret_node)
{
	const struct tree_node *p = &t->nodes.v[parent];
	uint32_t last = p->last_child;
	unsigned steps = 0;

	if (t->in_order)
		return tree_child_in_order(t, parent, name, kind, ret_node);
	if (last != TREE_ROOT && t->nodes.v[last].name == name && tree_kind_of(&t->nodes.v[last]) == kind) {
		*ret_node = last;
		return 0;
	}
	bool sorted = last == TREE_ROOT || tree_name_is_after(t, name, t->nodes.v[last].name);

	if (p->in_table)
		return tree_child_in_table(t, parent, name, kind, sorted, ret_node);
	if (!sorted || p->unsorted_children) {
		for (uint32_t c = last; c != TREE_ROOT && steps < TREE_SEARCH_MAX; steps++) {
			const struct tree_node *n = &t->nodes.v[c];

			if (n->name == name && tree_kind_of(n) == kind) {
				*ret_node = c;
				return 0;
			}
			c = n->prev_sibling;
		}
	}
	if (steps == TREE_SEARCH_MAX) {
		int r = tree_put_into_table(t, parent);

		return r ? r : tree_child_in_table(t, parent, name, kind, sorted, ret_node);
	}
	return tree_new_node(t, parent, name, kind, sorted, ret_node);
}

int tree_child(struct tree *t, uint32_t parent, const char *name, size_t len, uint8_t kind, uint32_t *ret_node)
{
	uint32_t id;
	int r = intern_put(&t->names, name, len, &id);

	return r ? r : tree_child_of_name(t, parent, id, kind, ret_node);
}

void tree_add(struct tree *t, uint32_t node, uint64_t weight)
{
	struct tree_node *n = &t->nodes.v[node];
	uint64_t room = TREE_WEIGHT_MAX - t->sum;

	if (weight > room)
		weight = room;
	n->self += weight;
	t->sum += weight;
	if (t->in_order && n->depth + 1 < t->path.len)
		t->path.len = n->depth + 1;
}

/* As many before_* as nodes. */
static int tree_grow_before(struct tree *t)
{
	if (t->before.len < t->nodes.len && vec_reserve(&t->before, t->nodes.len - t->before.len))
		return -ENOMEM;
	while (t->before.len < t->nodes.len)
		t->before.v[t->before.len++] = (struct tree_before){0};
	return 0;
}

int tree_add_before(struct tree *t, uint32_t node, uint64_t weight)
{
	uint64_t room = TREE_WEIGHT_MAX - t->before_sum;

	if (tree_grow_before(t))
		return -ENOMEM;
	if (weight > room)
		weight = room;
	t->before.v[node].self += weight;
	t->before_sum += weight;
	t->differential = true;
	return 0;
}

int tree_rescale(struct tree *t, uint32_t factor)
{
	if (t->sum > TREE_WEIGHT_MAX / factor || t->before_sum > TREE_WEIGHT_MAX / factor ||
	    t->scale > UINT32_MAX / factor)
		return -E2BIG;
	for (size_t i = 0; i < t->nodes.len; i++) {
		t->nodes.v[i].self *= factor;
		t->nodes.v[i].start *= factor;
	}
	for (size_t i = 0; i < t->before.len; i++)
		t->before.v[i].self *= factor;
	t->sum *= factor;
	t->before_sum *= factor;
	t->scale *= factor;
	return 0;
}

int tree_finish(struct tree *t)
{
	struct tree_node *v = t->nodes.v;
	struct tree_before *b;

	free(t->slots);
	t->slots = NULL;
	t->nslots = t->used_slots = 0;
	t->depth = 0;
	for (size_t i = 0; i < t->nodes.len; i++) {
		v[i].total = v[i].self;
		if (v[i].depth > t->depth)
			t->depth = v[i].depth;
	}
	for (size_t i = t->nodes.len; i-- > 1;)
		v[v[i].parent].total += v[i].total;
	if (!t->differential)
		return 0;
	if (tree_grow_before(t))
		return -ENOMEM;
	b = t->before.v;
	for (size_t i = 0; i < t->nodes.len; i++)
		b[i].total = b[i].self;
	for (size_t i = t->nodes.len; i-- > 1;)
		b[v[i].parent].total += b[i].total;
	return 0;
}

double tree_delta_self(const struct tree *t, uint32_t node)
{
	return t->differential ? (double)t->nodes.v[node].self - (double)t->before.v[node].self : 0;
}

double tree_delta_total(const struct tree *t, uint32_t node)
{
	return t->differential ? (double)t->nodes.v[node].total - (double)t->before.v[node].total : 0;
}

/* What a frame or thread of the profile is in the tree. */
struct tree_label {
	uint32_t name; /* PROFILE_NONE: not asked for yet */
	uint8_t kind;
};

struct tree_builder {
	struct tree *tree;
	struct profile *profile;
	const struct tree_options *options;
	uint32_t event;
	struct tree_label *frames, *threads;
	struct hashmap nodes; /* comm node and stack -> node */
	VEC(uint32_t) stack; /* scratch */
};

static int tree_frame_label(struct tree_builder *b, uint32_t frame, struct tree_label *ret_label)
{
	struct tree_label *l = &b->frames[frame];

	if (l->name == PROFILE_NONE) {
		const struct profile_frame *f = profile_frame_of(b->profile, frame);
		uint32_t len, name;
		const char *text = profile_text_of(b->profile, f->name, &len);
		int r = intern_put(&b->tree->names, text, len, &name);

		if (r)
			return r;
		*l = (struct tree_label){name, (uint8_t)(f->kind | (f->inlined ? TREE_INLINED : 0))};
	}
	*ret_label = *l;
	return 0;
}

static int tree_thread_label(struct tree_builder *b, uint32_t thread, struct tree_label *ret_label)
{
	struct tree_label *l = &b->threads[thread];

	if (l->name == PROFILE_NONE) {
		const struct profile_thread *t = profile_thread_of(b->profile, thread);
		uint32_t len, name;
		const char *comm = profile_text_of(b->profile, t->comm, &len);
		struct outbuf text = outbuf_to(-1);

		outbuf_put(&text, comm, len);
		if (b->options->with_tids)
			outbuf_printf(&text, "-%d/%d", t->pid, t->tid);
		int r = text.error ? text.error
				   : intern_put(&b->tree->names, text.len ? text.data : "", text.len, &name);

		outbuf_close(&text);
		if (r)
			return r;
		*l = (struct tree_label){name, FRAME_NATIVE | TREE_COMM};
	}
	*ret_label = *l;
	return 0;
}

static int tree_step(struct tree_builder *b, uint32_t frame, uint32_t *node)
{
	struct tree_label label;
	int r = tree_frame_label(b, frame, &label);

	return r ? r : tree_child_of_name(b->tree, *node, label.name, label.kind, node);
}

/* The node of a stack under a thread's name: up the trie until a stack that is known, and down again. */
static int tree_node_of_stack(struct tree_builder *b, uint32_t comm, uint32_t stack, uint32_t *ret_node)
{
	uint32_t node = comm, *known = NULL;
	int r;

	b->stack.len = 0;
	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(b->profile, stack)) {
		known = b->tree->in_order ? NULL : hashmap_get(&b->nodes, (uint64_t)comm << 32 | stack);
		if (known) {
			node = *known;
			break;
		}
		if (vec_push(&b->stack, stack))
			return -ENOMEM;
	}
	while (b->stack.len) {
		stack = b->stack.v[--b->stack.len];
		r = tree_step(b, profile_stack_frame(b->profile, stack), &node);
		if (!r && !b->tree->in_order)
			r = hashmap_put(&b->nodes, (uint64_t)comm << 32 | stack, node);
		if (r)
			return r;
	}
	*ret_node = node;
	return 0;
}

/* From the leaf to the thread's name. */
static int tree_node_reversed(struct tree_builder *b, struct tree_label comm, uint32_t stack, uint32_t *ret_node)
{
	uint32_t node = TREE_ROOT;

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(b->profile, stack)) {
		int r = tree_step(b, profile_stack_frame(b->profile, stack), &node);

		if (r)
			return r;
	}
	return tree_child_of_name(b->tree, node, comm.name, comm.kind, ret_node);
}

static int tree_put(struct tree_builder *b, uint32_t event, uint32_t thread, uint32_t stack, uint64_t weight)
{
	struct tree_label comm;
	uint32_t node;

	if (b->event == PROFILE_NONE)
		b->event = event;
	if (event != b->event)
		return 0;
	int r = tree_thread_label(b, thread, &comm);

	if (!r && b->options->reverse)
		r = tree_node_reversed(b, comm, stack, &node);
	else if (!r) {
		r = tree_child_of_name(b->tree, TREE_ROOT, comm.name, comm.kind, &node);
		if (!r)
			r = tree_node_of_stack(b, node, stack, &node);
	}
	if (!r)
		tree_add(b->tree, node, weight);
	return r;
}

static int tree_put_sample(void *ctx, const struct profile_sample *s)
{
	return tree_put(ctx, s->event, s->thread, s->stack, s->weight);
}

static int tree_put_groups(struct tree_builder *b)
{
	AUTO_FREE struct profile_group *groups = NULL;
	size_t n = 0;
	int r = profile_groups(b->profile, &groups, &n);

	for (size_t i = 0; !r && i < n; i++)
		r = tree_put(b, groups[i].event, groups[i].thread, groups[i].stack, groups[i].weight);
	return r;
}

static struct tree_label *tree_labels_new(uint32_t n)
{
	struct tree_label *labels = malloc(((size_t)n + 1) * sizeof(*labels));

	for (uint32_t i = 0; labels && i < n; i++)
		labels[i] = (struct tree_label){.name = PROFILE_NONE};
	return labels;
}

int tree_from_profile(struct tree *t, struct profile *profile, const struct tree_options *options)
{
	int r = tree_init(t, options->in_order);

	if (r)
		return r;
	struct tree_builder b = {
		.tree = t,
		.profile = profile,
		.options = options,
		.event = options->event,
		.frames = tree_labels_new(profile_nframes(profile)),
		.threads = tree_labels_new(profile_nthreads(profile)),
	};

	if (!b.frames || !b.threads)
		r = -ENOMEM;
	else if (options->in_order)
		r = profile_each_sample(profile, tree_put_sample, &b);
	else
		r = tree_put_groups(&b);
	t->event = b.event;
	free(b.frames);
	free(b.threads);
	hashmap_free(&b.nodes);
	vec_free(&b.stack);
	if (!r)
		r = tree_finish(t);
	if (r)
		tree_free(t);
	return r;
}
