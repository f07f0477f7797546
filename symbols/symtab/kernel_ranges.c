#include "symbols/symtab/kernel_ranges.h"

/*
 * The tree changes by two operations: split at an address, and join of trees that do not overlap.
 * So a range replaces many others in one step. Balance comes from heights, not from random numbers,
 * which a hostile recording could predict.
 */

/* A range in the middle of another needs a node for itself and one for each cut. */
#define NODES_PER_CHANGE 3

void kernel_ranges_free(struct kernel_ranges *t)
{
	vec_free(&t->nodes);
	*t = (struct kernel_ranges){0};
}

const struct kernel_range *kernel_ranges_find(const struct kernel_ranges *t, uint64_t addr)
{
	uint32_t id = t->root;

	while (id) {
		const struct kernel_ranges_node *node = &t->nodes.v[id];

		if (addr >= node->range.start && addr < node->range.end)
			return &node->range;
		id = node->child[addr >= node->range.end];
	}
	return NULL;
}

/* Take an unused node. kernel_ranges_add has made room. */
static uint32_t take_node(struct kernel_ranges *t, const struct kernel_range *range)
{
	uint32_t id = t->unused;

	if (id)
		t->unused = t->nodes.v[id].child[0];
	else
		id = (uint32_t)t->nodes.len++;
	t->nodes.v[id] = (struct kernel_ranges_node){.range = *range};
	t->n++;
	return id;
}

/* Release all nodes of a tree. Its depth is at most 30. */
static void drop_all(struct kernel_ranges *t, uint32_t id)
{
	struct kernel_ranges_node *node = &t->nodes.v[id];

	if (!id)
		return;
	drop_all(t, node->child[0]);
	drop_all(t, node->child[1]);
	node->child[0] = t->unused;
	t->unused = id;
	t->n--;
}

static uint32_t height_of_child(const struct kernel_ranges *t, uint32_t id, int side)
{
	return t->nodes.v[t->nodes.v[id].child[side]].height;
}

static uint32_t measure(struct kernel_ranges *t, uint32_t id)
{
	uint32_t below = height_of_child(t, id, 0), above = height_of_child(t, id, 1);

	t->nodes.v[id].height = 1 + (below > above ? below : above);
	return id;
}

/* Rotate: raise the child of that side above id. Gives the new top. */
static uint32_t lift(struct kernel_ranges *t, uint32_t id, int side)
{
	struct kernel_ranges_node *v = t->nodes.v;
	uint32_t top = v[id].child[side];

	v[id].child[side] = v[top].child[!side];
	v[top].child[!side] = measure(t, id);
	return measure(t, top);
}

/* Restore the balance if the child of that side is too high by one level. Gives the new top. */
static uint32_t balance(struct kernel_ranges *t, uint32_t id, int side)
{
	uint32_t child = t->nodes.v[id].child[side];

	if (height_of_child(t, id, side) <= height_of_child(t, id, !side) + 1)
		return measure(t, id);
	if (height_of_child(t, child, !side) > height_of_child(t, child, side))
		t->nodes.v[id].child[side] = lift(t, child, !side);
	return lift(t, id, side);
}

/* Join a lower tree, a middle node and a higher tree. Gives the root. */
static uint32_t join(struct kernel_ranges *t, uint32_t below, uint32_t middle, uint32_t above)
{
	struct kernel_ranges_node *v = t->nodes.v;

	if (v[below].height > v[above].height + 1) {
		v[below].child[1] = join(t, v[below].child[1], middle, above);
		return balance(t, below, 1);
	}
	if (v[above].height > v[below].height + 1) {
		v[above].child[0] = join(t, below, middle, v[above].child[0]);
		return balance(t, above, 0);
	}
	v[middle].child[0] = below;
	v[middle].child[1] = above;
	return measure(t, middle);
}

/* Split the tree id at addr, and the range that covers addr. */
static void split(struct kernel_ranges *t, uint32_t id, uint64_t addr, uint32_t *ret_below,
		  uint32_t *ret_above)
{
	struct kernel_ranges_node *node = &t->nodes.v[id];
	uint32_t child[2] = {node->child[0], node->child[1]}, part;

	if (!id) {
		*ret_below = *ret_above = 0;
	} else if (node->range.end <= addr) {
		split(t, child[1], addr, &part, ret_above);
		*ret_below = join(t, child[0], id, part);
	} else if (node->range.start >= addr) {
		split(t, child[0], addr, ret_below, &part);
		*ret_above = join(t, part, id, child[1]);
	} else {
		part = take_node(t, &node->range);
		node->range.end = t->nodes.v[part].range.start = addr;
		*ret_below = join(t, child[0], id, 0);
		*ret_above = join(t, 0, part, child[1]);
	}
}

/* Remove everything from start to end. Gives the trees below and above. */
static void clear(struct kernel_ranges *t, uint64_t start, uint64_t end, uint32_t *ret_below,
		  uint32_t *ret_above)
{
	uint32_t covered;

	split(t, t->root, start, ret_below, &covered);
	split(t, covered, end, &covered, ret_above);
	drop_all(t, covered);
}

int kernel_ranges_add(struct kernel_ranges *t, const struct kernel_range *range)
{
	uint32_t below, above;

	if (t->n >= KERNEL_RANGES_MAX)
		return -E2BIG;
	if (vec_reserve(&t->nodes, 1 + NODES_PER_CHANGE))
		return -ENOMEM;
	if (!t->nodes.len)
		t->nodes.v[t->nodes.len++] = (struct kernel_ranges_node){0};
	clear(t, range->start, range->end, &below, &above);
	t->root = join(t, below, take_node(t, range), above);
	return 0;
}

void kernel_ranges_remove(struct kernel_ranges *t, const struct kernel_range *range)
{
	uint32_t below, above, first;

	clear(t, range->start, range->end, &below, &above);
	for (first = above; t->nodes.v[first].child[0];)
		first = t->nodes.v[first].child[0];
	if (first)
		split(t, above, t->nodes.v[first].range.end, &first, &above);
	t->root = first ? join(t, below, first, above) : below;
}
