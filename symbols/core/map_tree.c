#include "symbols/core/map_tree.h"

#include <assert.h>
#include <errno.h>

/*
 * A tree changes by two operations: split at an address, and join of trees that do not overlap. So
 * a map replaces many others in one step. Both take references and give one back. Balance comes
 * from weights, not from random numbers, which a hostile recording could predict. No child weighs
 * more than BALANCE times the other (Blelloch et al., "Just Join for Parallel Ordered Sets").
 */
#define BALANCE 3

void map_trees_free(struct map_trees *t)
{
	vec_free(&t->nodes);
	t->unused = 0;
	t->nunused = 0;
}

int map_trees_reserve(struct map_trees *t)
{
	size_t fresh = MAP_TREE_CHANGE_NODES;

	if (!t->nodes.len) {
		if (vec_reserve(&t->nodes, 1 + fresh))
			return -ENOMEM;
		t->nodes.v[t->nodes.len++] = (struct map_tree_node){0};
	}
	if (t->nunused >= fresh)
		return 0;
	fresh -= t->nunused;
	if (t->nodes.len + fresh > t->nodes_max)
		return -E2BIG;
	return vec_reserve(&t->nodes, fresh);
}

uint32_t map_tree_share(struct map_trees *t, uint32_t root)
{
	if (root)
		t->nodes.v[root].refs++;
	return root;
}

/* The depth of a tree is at most 50. */
void map_tree_drop(struct map_trees *t, uint32_t root)
{
	struct map_tree_node *node;

	if (!root || --t->nodes.v[root].refs)
		return;
	node = &t->nodes.v[root];
	map_tree_drop(t, node->child[0]);
	map_tree_drop(t, node->child[1]);
	node->child[0] = t->unused;
	t->unused = root;
	t->nunused++;
}

/* Take an unused node. map_trees_reserve has made room. */
static uint32_t take_node(struct map_trees *t, const struct process_map *map)
{
	uint32_t id = t->unused;

	if (id) {
		t->unused = t->nodes.v[id].child[0];
		t->nunused--;
	} else {
		assert(t->nodes.len < t->nodes.cap);
		id = (uint32_t)t->nodes.len++;
	}
	t->nodes.v[id] = (struct map_tree_node){.map = *map, .refs = 1, .n = 1};
	return id;
}

/* The node itself if nobody else refers to it, else a copy. Takes and gives a reference. */
static uint32_t own(struct map_trees *t, uint32_t id)
{
	struct map_tree_node *node = &t->nodes.v[id], *copy;
	uint32_t fresh;

	if (node->refs == 1)
		return id;
	fresh = take_node(t, &node->map);
	copy = &t->nodes.v[fresh];
	for (int side = 0; side < 2; side++)
		copy->child[side] = map_tree_share(t, node->child[side]);
	copy->n = node->n;
	node->refs--;
	return fresh;
}

static uint64_t weight(const struct map_trees *t, uint32_t id)
{
	return 1 + (uint64_t)map_tree_maps(t, id);
}

static bool is_balanced(uint64_t a, uint64_t b)
{
	return a <= BALANCE * b && b <= BALANCE * a;
}

static uint32_t measure(struct map_trees *t, uint32_t id)
{
	struct map_tree_node *node = &t->nodes.v[id];

	node->n =
		(uint32_t)(1 + map_tree_maps(t, node->child[0]) + map_tree_maps(t, node->child[1]));
	return id;
}

/* Rotate: raise the child of that side above id. Gives the new top. */
static uint32_t lift(struct map_trees *t, uint32_t id, int side)
{
	struct map_tree_node *v = t->nodes.v;
	uint32_t top = own(t, v[id].child[side]);

	v[id].child[side] = v[top].child[!side];
	v[top].child[!side] = measure(t, id);
	return measure(t, top);
}

/* Restore the balance if the child of that side became too heavy. Gives the new top. */
static uint32_t balance(struct map_trees *t, uint32_t id, int side)
{
	struct map_tree_node *v = t->nodes.v;
	uint32_t heavy = v[id].child[side];
	uint64_t light = weight(t, v[id].child[!side]), inner, outer;

	if (is_balanced(light, weight(t, heavy)))
		return measure(t, id);
	inner = weight(t, v[heavy].child[!side]);
	outer = weight(t, v[heavy].child[side]);
	if (!is_balanced(light, inner) || !is_balanced(light + inner, outer))
		v[id].child[side] = lift(t, own(t, heavy), !side);
	return lift(t, id, side);
}

/* Join a lower tree, a middle node and a higher tree. Gives the root. */
static uint32_t join(struct map_trees *t, uint32_t below, uint32_t middle, uint32_t above)
{
	struct map_tree_node *v = t->nodes.v;
	int side = weight(t, below) > weight(t, above);
	uint32_t top = side ? below : above;

	if (is_balanced(weight(t, below), weight(t, above))) {
		v[middle].child[0] = below;
		v[middle].child[1] = above;
		return measure(t, middle);
	}
	top = own(t, top);
	v[top].child[side] = side ? join(t, v[top].child[1], middle, above)
				  : join(t, below, middle, v[top].child[0]);
	return balance(t, top, side);
}

struct process_map *map_trees_next(struct map_trees *t, uint32_t *at)
{
	while (++*at < t->nodes.len)
		if (t->nodes.v[*at].refs)
			return &t->nodes.v[*at].map;
	return NULL;
}

struct process_map map_tree_tail(const struct process_map *old, uint64_t start)
{
	struct process_map tail = *old;

	tail.start = start;
	tail.pgoff += start - old->start;
	tail.under_pgoff += start - old->start;
	return tail;
}

/* Split the tree id at addr, and the map that covers addr. */
static void split(struct map_trees *t, uint32_t id, uint64_t addr, uint32_t *ret_below,
		  uint32_t *ret_above)
{
	struct map_tree_node *node;
	struct process_map tail;
	uint32_t child[2], part;

	*ret_below = *ret_above = 0;
	if (!id)
		return;
	id = own(t, id);
	node = &t->nodes.v[id];
	child[0] = node->child[0];
	child[1] = node->child[1];
	if (node->map.end <= addr) {
		split(t, child[1], addr, &part, ret_above);
		*ret_below = join(t, child[0], id, part);
	} else if (node->map.start >= addr) {
		split(t, child[0], addr, ret_below, &part);
		*ret_above = join(t, part, id, child[1]);
	} else {
		tail = map_tree_tail(&node->map, addr);
		node->map.end = addr;
		*ret_below = join(t, child[0], id, 0);
		*ret_above = join(t, 0, take_node(t, &tail), child[1]);
	}
}

/* Join two trees without a node between them. */
static uint32_t join_two(struct map_trees *t, uint32_t below, uint32_t above)
{
	uint32_t first = above;

	if (!below || !above)
		return below ? below : above;
	while (t->nodes.v[first].child[0])
		first = t->nodes.v[first].child[0];
	split(t, above, t->nodes.v[first].map.end, &first, &above);
	return join(t, below, first, above);
}

uint32_t map_tree_replace(struct map_trees *t, uint32_t root, uint64_t start, uint64_t end,
			  const struct process_map *map)
{
	uint32_t below, covered, above;

	split(t, root, start, &below, &covered);
	split(t, covered, end, &covered, &above);
	map_tree_drop(t, covered);
	return map ? join(t, below, take_node(t, map), above) : join_two(t, below, above);
}
