/*
 * perf keeps an image's symbols in a red-black tree by start and answers with the first symbol on the way down that covers
 * the address (tools/perf/util/symbol.c, symbols__find). Where symbols overlap, the answer hangs on the shape of
 * that tree, so to give perf's answers it is grown the same way: the kernel's insertion and erasure, in perf's order.
 */
#ifndef SYMBOLS_PERF_TREE_H
#define SYMBOLS_PERF_TREE_H

#include <stdint.h>

struct perf_tree;

#define PERF_TREE_NIL UINT32_MAX

/* An empty tree for keys 0 .. n-1, n below PERF_TREE_NIL. 0 or -ENOMEM. */
int perf_tree_new(uint32_t n, struct perf_tree **ret_tree);
void perf_tree_free(struct perf_tree *t);

/* key must not be in the tree. */
void perf_tree_insert(struct perf_tree *t, uint32_t key);

/* key must be in the tree. */
void perf_tree_erase(struct perf_tree *t, uint32_t key);

/* PERF_TREE_NIL where there is none. */
uint32_t perf_tree_root(const struct perf_tree *t);
uint32_t perf_tree_left(const struct perf_tree *t, uint32_t key);
uint32_t perf_tree_right(const struct perf_tree *t, uint32_t key);

#endif
