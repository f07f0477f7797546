/* Makes the call tree of a profile's samples. */
#ifndef FLAMEGRAPH_TREE_PROFILE_H
#define FLAMEGRAPH_TREE_PROFILE_H

#include "flamegraph/tree.h"

/*
 * Makes a tree with the full form of names. Initializes t, and frees it on failure. The cost grows
 * with the trie of stacks, not with samples x depth. With in_order or reverse it is distinct stacks
 * x depth, at worst samples x depth. Returns 0 or -errno.
 */
int tree_profile_make(struct tree *t, struct profile *profile, const struct tree_options *options);

#endif
