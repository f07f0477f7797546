/* Where each frame of a tree lies in the picture. */
#ifndef FLAMEGRAPH_LAYOUT_H
#define FLAMEGRAPH_LAYOUT_H

#include "flamegraph/tree.h"

struct layout {
	uint32_t *order; /* all nodes, each before its children, from left to right */
	size_t n;
};

/*
 * Sets node.start of a finished tree and gives the order of drawing. Children lie in the order of their names' bytes (kinds
 * break ties), behind their parent's self weight; in an in_order tree everything stays where it came. 0 or -ENOMEM.
 */
int layout_make(struct tree *t, struct layout *ret_layout);

void layout_free(struct layout *l);

#endif
