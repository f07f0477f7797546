/*
 * A copy of the red-black tree in which perf keeps an image's symbols by start. perf takes the
 * first symbol on the way down that covers an address (tools/perf/util/symbol.c, symbols__find). If
 * symbols overlap, the result depends on the shape of the tree. So this tree grows in the same way:
 * by the kernel's insertion and erasure, in perf's order.
 */
#ifndef SYMBOLS_SYMTAB_PERF_TREE_H
#define SYMBOLS_SYMTAB_PERF_TREE_H

#include <stdint.h>

struct perf_tree;

#define PERF_TREE_NIL UINT32_MAX

/* Makes an empty tree for the keys 0 to n-1; n is below PERF_TREE_NIL. Returns 0 or -ENOMEM. */
int perf_tree_new(uint32_t n, struct perf_tree **ret_tree);
void perf_tree_free(struct perf_tree *t);

/* key must not be in the tree. */
void perf_tree_insert(struct perf_tree *t, uint32_t key);

/* key must be in the tree. */
void perf_tree_erase(struct perf_tree *t, uint32_t key);

/* Each gives PERF_TREE_NIL if there is no such node. */
uint32_t perf_tree_root(const struct perf_tree *t);
uint32_t perf_tree_left(const struct perf_tree *t, uint32_t key);
uint32_t perf_tree_right(const struct perf_tree *t, uint32_t key);

#endif
