/* Order of siblings in a picture, and the place of each frame that follows from it. */
#ifndef FLAMEGRAPH_NODE_ORDER_H
#define FLAMEGRAPH_NODE_ORDER_H

#include "flamegraph/tree.h"

struct layout {
	uint32_t *order; /* all nodes, each before its children, from left to right */
	size_t n;
};

/*
 * Sets node.start in a finished tree and returns the drawing order. Children are in byte order of
 * their names, ties in order of their kinds, after their parent's self weight. An in_order tree
 * keeps its order. Returns 0 or -ENOMEM.
 */
int node_order_make(struct tree *t, struct layout *ret_layout);

void node_order_free(struct layout *l);

#endif
