/* The call tree of a profile's samples. */
#ifndef FLAMEGRAPH_TREE_PROFILE_H
#define FLAMEGRAPH_TREE_PROFILE_H

#include "flamegraph/tree.h"

/*
 * From a profile, in the full form of names. t is made here; on failure it is freed. Cost follows the stack trie, not samples x
 * depth (in_order or reverse: distinct stacks x depth, samples x depth at worst). 0 or -errno.
 */
int tree_from_profile(struct tree *t, struct profile *profile, const struct tree_options *options);

#endif
