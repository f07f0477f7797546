#include "flamegraph/tree.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/outbuf.h"

#include <errno.h>
#include <string.h>

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

	*t = (struct tree){.scale = 1, .in_order = in_order};
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
	vec_free(&t->path);
	free(t->slots);
	*t = (struct tree){0};
}

static int tree_rehash(struct tree *t)
{
	size_t n = t->nslots ? t->nslots * 2 : 1024;
	struct tree_slot *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 1; id < t->nodes.len; id++) {
		const struct tree_node *node = &t->nodes.v[id];
		uint64_t hash = tree_hash(node->parent, node->name, tree_kind_of(node));
		size_t i = hash & (n - 1);

		while (slots[i].node)
			i = (i + 1) & (n - 1);
		slots[i] = (struct tree_slot){(uint32_t)(hash >> 32), (uint32_t)id};
	}
	free(t->slots);
	t->slots = slots;
	t->nslots = n;
	return 0;
}

static int tree_new_node(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, uint32_t *ret_node)
{
	uint32_t depth = t->nodes.v[parent].depth + 1;

	if (t->nodes.len >= TREE_NODES_MAX || depth > TREE_DEPTH_MAX)
		return -E2BIG;
	struct tree_node node = {
		.name = name,
		.parent = parent,
		.depth = depth,
		.kind = kind & TREE_KIND_MASK,
		.inlined = kind & TREE_INLINED,
		.is_comm = kind & TREE_COMM,
		.start = t->sum,
	};

	if (vec_push(&t->nodes, node))
		return -ENOMEM;
	*ret_node = (uint32_t)t->nodes.len - 1;
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
	int r = tree_new_node(t, parent, name, kind, ret_node);

	if (r)
		return r;
	if (depth < t->path.len)
		t->path.len = depth;
	t->path.v[t->path.len++] = *ret_node;
	return 0;
}

int tree_child_of_name(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, uint32_t *ret_node)
{
	if (t->in_order)
		return tree_child_in_order(t, parent, name, kind, ret_node);
	if (t->nodes.len * 2 >= t->nslots && tree_rehash(t))
		return -ENOMEM;
	uint64_t hash = tree_hash(parent, name, kind);
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t mask = t->nslots - 1, i = hash & mask;

	for (; t->slots[i].node; i = (i + 1) & mask) {
		const struct tree_node *n = &t->nodes.v[t->slots[i].node];

		if (t->slots[i].tag == tag && n->parent == parent && n->name == name &&
		    tree_kind_of(n) == kind) {
			*ret_node = t->slots[i].node;
			return 0;
		}
	}
	int r = tree_new_node(t, parent, name, kind, ret_node);

	if (!r)
		t->slots[i] = (struct tree_slot){tag, *ret_node};
	return r;
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

void tree_add_before(struct tree *t, uint32_t node, uint64_t weight)
{
	uint64_t room = TREE_WEIGHT_MAX - t->before_sum;

	if (weight > room)
		weight = room;
	t->nodes.v[node].before_self += weight;
	t->before_sum += weight;
}

int tree_rescale(struct tree *t, uint32_t factor)
{
	if (t->sum > TREE_WEIGHT_MAX / factor || t->before_sum > TREE_WEIGHT_MAX / factor ||
	    t->scale > UINT32_MAX / factor)
		return -E2BIG;
	for (size_t i = 0; i < t->nodes.len; i++) {
		t->nodes.v[i].self *= factor;
		t->nodes.v[i].before_self *= factor;
		t->nodes.v[i].start *= factor;
	}
	t->sum *= factor;
	t->before_sum *= factor;
	t->scale *= factor;
	return 0;
}

void tree_finish(struct tree *t)
{
	struct tree_node *v = t->nodes.v;

	t->depth = 0;
	for (size_t i = 0; i < t->nodes.len; i++) {
		v[i].total = v[i].self;
		v[i].before_total = v[i].before_self;
		if (v[i].depth > t->depth)
			t->depth = v[i].depth;
	}
	for (size_t i = t->nodes.len; i-- > 1;) {
		v[v[i].parent].total += v[i].total;
		v[v[i].parent].before_total += v[i].before_total;
	}
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
	free(b.frames);
	free(b.threads);
	hashmap_free(&b.nodes);
	vec_free(&b.stack);
	if (r)
		tree_free(t);
	else
		tree_finish(t);
	return r;
}
