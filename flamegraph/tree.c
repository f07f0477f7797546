#include "flamegraph/tree.h"

#include "base/hash.h"

#include <errno.h>
#include <string.h>

/* A node, its places in node_order and svg_data, and twice that in svg while it sorts. */
#define TREE_NODE_BYTES (sizeof(struct tree_node) + 8 + 24)
/* A name, without its text: its places in tables here and in svg_data, while they grow. */
#define TREE_NAME_BYTES 64
#define TREE_CUT_PART 4    /* nodes under TREE_CUT may take this part of the limit, in addition */
#define TREE_SEARCH_MAX 24 /* children to search in a list, before they move to the table */

/* tag is the upper half of the hash. It shows most misses without access to the node. */
struct tree_slot {
	uint32_t tag;
	uint32_t node; /* 0: free; the root is not a child */
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
	tree_limit(t, 0);
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

void tree_limit(struct tree *t, uint64_t bytes)
{
	t->room = bytes ? bytes : UINT64_MAX;
	t->cut_room = bytes ? bytes / TREE_CUT_PART : UINT64_MAX;
}

static bool tree_take_room(uint64_t *room, uint64_t bytes)
{
	if (*room < bytes)
		return false;
	*room -= bytes;
	return true;
}

bool tree_take_node(struct tree *t)
{
	return tree_take_room(&t->room, TREE_NODE_BYTES);
}

int tree_name(struct tree *t, const char *text, size_t len, uint32_t *ret_name)
{
	uint64_t bytes = TREE_NAME_BYTES + len;
	size_t had = t->names.len;

	if (t->room < bytes && intern_find(&t->names, text, len, ret_name)) {
		t->cut_now = true;
		return intern_str(&t->names, PROFILE_LEFT_OUT, ret_name);
	}
	int r = intern_put(&t->names, text, len, ret_name);

	if (!r && t->names.len > had)
		(void)tree_take_room(&t->room, bytes);
	return r;
}

/* The slot of this child, or the free slot for it. */
static struct tree_slot *tree_find_slot(const struct tree *t, uint32_t parent, uint32_t name,
					uint8_t kind)
{
	uint64_t hash = tree_hash(parent, name, kind);
	uint32_t tag = (uint32_t)(hash >> 32);
	size_t mask = t->nslots - 1, i = hash & mask;

	for (; t->slots[i].node; i = (i + 1) & mask) {
		const struct tree_node *n = &t->nodes.v[t->slots[i].node];

		if (t->slots[i].tag == tag && n->parent == parent && n->name == name &&
		    tree_kind_of(n) == kind)
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

/* Makes room for one more child in the table. */
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

/* Moves the children of this node into the table. */
static int tree_put_into_table(struct tree *t, uint32_t parent)
{
	for (uint32_t c = t->nodes.v[parent].last_child; c != TREE_ROOT;
	     c = t->nodes.v[c].prev_sibling) {
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

static int tree_new_node(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind, bool sorted,
			 uint32_t *ret_node)
{
	if (t->nodes.v[parent].depth >= TREE_DEPTH_MAX ||
	    !tree_take_room(tree_is_cut(t, parent) ? &t->cut_room : &t->room, TREE_NODE_BYTES))
		return -ENOSPC;
	if (vec_reserve(&t->nodes, 1))
		return -ENOMEM;
	struct tree_node *p = &t->nodes.v[parent];

	if (t->nodes.len >= TREE_NODES_MAX)
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

/* Reuses the newest child of parent, if no other node came between; else adds a node. */
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

static int tree_child_in_table(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
			       bool sorted, uint32_t *ret_node)
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
 * Sorted input adds children in order, so a name after the last child's name is new and needs no
 * lookup. Unsorted children are searched in the list, or in the table if the list is long.
 */
static int tree_find_child(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
			   uint32_t *ret_node)
{
	const struct tree_node *p = &t->nodes.v[parent];
	uint32_t last = p->last_child;
	unsigned steps = 0;

	if (t->in_order)
		return tree_child_in_order(t, parent, name, kind, ret_node);
	if (last != TREE_ROOT && t->nodes.v[last].name == name &&
	    tree_kind_of(&t->nodes.v[last]) == kind) {
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

/*
 * Adds a child for which there is no room to TREE_CUT. All frames of such a stack become its
 * children. If these have no room either, the stack ends at TREE_CUT.
 */
static int tree_cut_child(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
			  uint32_t *ret_node)
{
	uint64_t room = t->room;
	uint32_t cut_name;
	int r = 0;

	t->cut_now = true;
	if (t->in_order) {
		*ret_node = parent;
		return 0;
	}
	if (t->cut_root == TREE_ROOT) {
		t->room = UINT64_MAX;
		r = intern_str(&t->names, TREE_CUT, &cut_name);
		if (!r)
			r = tree_find_child(t, TREE_ROOT, cut_name, FRAME_UNKNOWN, &t->cut_root);
		t->room = room;
	}
	if (!r)
		r = tree_find_child(t, t->cut_root, name, kind, ret_node);
	if (r == -ENOSPC) {
		*ret_node = t->cut_root;
		r = 0;
	}
	return r;
}

int tree_child_of_name(struct tree *t, uint32_t parent, uint32_t name, uint8_t kind,
		       uint32_t *ret_node)
{
	if (tree_is_cut(t, parent))
		return tree_cut_child(t, parent, name, kind, ret_node);
	int r = tree_find_child(t, parent, name, kind, ret_node);

	return r == -ENOSPC ? tree_cut_child(t, parent, name, kind, ret_node) : r;
}

int tree_child(struct tree *t, uint32_t parent, const char *name, size_t len, uint8_t kind,
	       uint32_t *ret_node)
{
	uint32_t id;
	int r = tree_name(t, name, len, &id);

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
	t->cut += t->cut_now || tree_is_cut(t, node);
	t->cut_now = false;
	if (t->in_order && n->depth + 1 < t->path.len)
		t->path.len = n->depth + 1;
}

/* Makes t->before as long as the nodes. */
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
