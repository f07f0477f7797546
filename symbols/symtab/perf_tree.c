#include "symbols/symtab/perf_tree.h"

#include "base/bigmem.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * A node's index is its key. Node n stands for all empty places and holds a parent during an
 * erasure.
 */
struct node {
	uint32_t child[2]; /* left, right */
	uint32_t parent;
	uint32_t red;
};

struct perf_tree {
	uint32_t n, root;
	struct node nodes[];
};

int perf_tree_new(uint32_t n, struct perf_tree **ret_tree)
{
	struct perf_tree *t = bigmem_alloc(sizeof(*t) + ((size_t)n + 1) * sizeof(t->nodes[0]), 1);

	if (!t)
		return -ENOMEM;
	t->n = n;
	t->root = n;
	t->nodes[n] = (struct node){.child = {n, n}, .parent = n};
	*ret_tree = t;
	return 0;
}

void perf_tree_free(struct perf_tree *t)
{
	free(t);
}

static uint32_t outside(const struct perf_tree *t, uint32_t node)
{
	return node == t->n ? PERF_TREE_NIL : node;
}

uint32_t perf_tree_root(const struct perf_tree *t)
{
	return outside(t, t->root);
}

uint32_t perf_tree_left(const struct perf_tree *t, uint32_t key)
{
	return outside(t, t->nodes[key].child[0]);
}

uint32_t perf_tree_right(const struct perf_tree *t, uint32_t key)
{
	return outside(t, t->nodes[key].child[1]);
}

/* Replace u by v in u's parent. v may be the empty node. */
static void put_in_place(struct perf_tree *t, uint32_t u, uint32_t v)
{
	uint32_t p = t->nodes[u].parent;

	if (p == t->n)
		t->root = v;
	else
		t->nodes[p].child[t->nodes[p].child[1] == u] = v;
	t->nodes[v].parent = p;
}

/* Move x down to the given side. Its child of the other side moves up. */
static void rotate(struct perf_tree *t, uint32_t x, int side)
{
	uint32_t y = t->nodes[x].child[!side], moved = t->nodes[y].child[side];

	t->nodes[x].child[!side] = moved;
	if (moved != t->n)
		t->nodes[moved].parent = x;
	put_in_place(t, x, y);
	t->nodes[y].child[side] = x;
	t->nodes[x].parent = y;
}

void perf_tree_insert(struct perf_tree *t, uint32_t key)
{
	struct node *v = t->nodes;
	uint32_t parent = t->n, x = key;

	for (uint32_t at = t->root; at != t->n; at = v[at].child[key > at])
		parent = at;
	v[key] = (struct node){.child = {t->n, t->n}, .parent = parent, .red = true};
	if (parent == t->n)
		t->root = key;
	else
		v[parent].child[key > parent] = key;
	while (v[x].parent != t->n && v[v[x].parent].red) {
		uint32_t p = v[x].parent, g = v[p].parent;
		int side = v[g].child[1] == p;
		uint32_t uncle = v[g].child[!side];

		if (v[uncle].red) {
			v[p].red = v[uncle].red = false;
			v[g].red = true;
			x = g;
			continue;
		}
		if (v[p].child[!side] == x) {
			rotate(t, p, side);
			p = x;
		}
		v[p].red = false;
		v[g].red = true;
		rotate(t, g, !side);
		break;
	}
	v[t->root].red = false;
}

/*
 * Restore the balance after an erasure. Paths through x, which may be the empty node, lack one
 * black node.
 */
static void fix_erase(struct perf_tree *t, uint32_t x)
{
	struct node *v = t->nodes;

	while (x != t->root && !v[x].red) {
		uint32_t p = v[x].parent;
		int side = v[p].child[1] == x;
		uint32_t sibling = v[p].child[!side];

		if (v[sibling].red) {
			v[sibling].red = false;
			v[p].red = true;
			rotate(t, p, side);
			sibling = v[p].child[!side];
		}
		if (!v[v[sibling].child[0]].red && !v[v[sibling].child[1]].red) {
			v[sibling].red = true;
			x = p;
			continue;
		}
		if (!v[v[sibling].child[!side]].red) {
			v[v[sibling].child[side]].red = false;
			v[sibling].red = true;
			rotate(t, sibling, !side);
			sibling = v[p].child[!side];
		}
		v[sibling].red = v[p].red;
		v[p].red = false;
		v[v[sibling].child[!side]].red = false;
		rotate(t, p, side);
		x = t->root;
	}
	v[x].red = false;
}

void perf_tree_erase(struct perf_tree *t, uint32_t key)
{
	struct node *v = t->nodes;
	uint32_t x, gone = key;
	bool lost_red = v[key].red;

	if (v[key].child[0] != t->n && v[key].child[1] != t->n) {
		/* The successor takes the node's place and colour. */
		gone = v[key].child[1];
		while (v[gone].child[0] != t->n)
			gone = v[gone].child[0];
		lost_red = v[gone].red;
		x = v[gone].child[1];
		if (v[gone].parent == key) {
			v[x].parent = gone;
		} else {
			put_in_place(t, gone, x);
			v[gone].child[1] = v[key].child[1];
			v[v[gone].child[1]].parent = gone;
		}
		put_in_place(t, key, gone);
		v[gone].child[0] = v[key].child[0];
		v[v[gone].child[0]].parent = gone;
		v[gone].red = v[key].red;
	} else {
		x = v[key].child[0] != t->n ? v[key].child[0] : v[key].child[1];
		put_in_place(t, key, x);
	}
	if (!lost_red)
		fix_erase(t, x);
}
