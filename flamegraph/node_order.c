#include "flamegraph/node_order.h"

#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

/* The nodes to visit; the next one is the last. */
struct node_order_stack {
	VEC(uint32_t) nodes;
	const struct tree *tree;
};

static int node_order_compare(const void *a, const void *b, void *tree)
{
	const struct tree *t = tree;
	const struct tree_node *x = &t->nodes.v[*(const uint32_t *)a],
			       *y = &t->nodes.v[*(const uint32_t *)b];

	/* Reverse order, because nodes are taken from the end. */
	if (x->name != y->name) {
		uint32_t xl = intern_len(&t->names, x->name), yl = intern_len(&t->names, y->name);
		int c = memcmp(intern_text(&t->names, y->name), intern_text(&t->names, x->name),
			       xl < yl ? xl : yl);

		return c ? c : xl > yl ? -1 : 1;
	}
	int xk = x->kind << 2 | x->inlined << 1 | x->is_comm,
	    yk = y->kind << 2 | y->inlined << 1 | y->is_comm;

	return yk - xk;
}

/* Pushes the children of a node; the first by name is on top. */
static int node_order_push_children(struct node_order_stack *s, uint32_t node)
{
	const struct tree_node *n = &s->tree->nodes.v[node];
	size_t from = s->nodes.len;

	for (uint32_t c = n->last_child; c != TREE_ROOT; c = s->tree->nodes.v[c].prev_sibling)
		if (vec_push(&s->nodes, c))
			return -ENOMEM;
	if (n->unsorted_children)
		qsort_r(s->nodes.v + from, s->nodes.len - from, sizeof(*s->nodes.v),
			node_order_compare, (void *)(uintptr_t)s->tree);
	return 0;
}

static int node_order_merged(struct tree *t, uint32_t *order)
{
	struct node_order_stack s = {.tree = t};
	struct tree_node *v = t->nodes.v;
	/* By depth: the start of the next node. */
	AUTO_FREE uint64_t *ends = calloc((size_t)t->depth + 2, sizeof(*ends));
	size_t k = 0;
	int r = ends ? vec_push(&s.nodes, TREE_ROOT) : -ENOMEM;

	while (!r && s.nodes.len) {
		uint32_t node = s.nodes.v[--s.nodes.len], depth = v[node].depth;

		order[k++] = node;
		v[node].start = ends[depth];
		ends[depth] += v[node].total;
		ends[depth + 1] = v[node].start + v[node].self;
		r = node_order_push_children(&s, node);
	}
	vec_free(&s.nodes);
	return r;
}

int node_order_make(struct tree *t, struct layout *ret_layout)
{
	struct layout l = {.n = t->nodes.len};
	int r = 0;

	l.order = malloc(l.n * sizeof(*l.order));
	if (!l.order)
		return -ENOMEM;
	if (t->in_order) {
		/* Nodes were made from left to right. */
		for (size_t i = 0; i < l.n; i++)
			l.order[i] = (uint32_t)i;
	} else {
		r = node_order_merged(t, l.order);
	}
	if (r)
		node_order_free(&l);
	else
		*ret_layout = l;
	return r;
}

void node_order_free(struct layout *l)
{
	free(l->order);
	*l = (struct layout){0};
}
