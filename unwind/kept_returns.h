/*
 * Return addresses of the stacks that were seen last, by where they lay: for those that a runtime has hijacked since (clr_hijack.h). One
 * is given back only where its caller's return address is still at its place. What was called from there then may have been called from
 * elsewhere in the same frame now: it is a guess.
 */
#ifndef UNWIND_KEPT_RETURNS_H
#define UNWIND_KEPT_RETURNS_H

#include "unwind/walk.h"

#define KEPT_RETURNS 8192u /* places, of all threads; a newer one takes the place of an older one */
#define KEPT_RETURNS_FRAMES 64 /* of one stack, from the sampled one on: methods are hijacked near the top */

struct kept_returns;

/* 0 or -ENOMEM. */
int kept_returns_new(struct kept_returns **ret_kept);
void kept_returns_free(struct kept_returns *k);

/* Keeps what is certain of a thread's stack. */
void kept_returns_put(struct kept_returns *k, int32_t tid, const struct walk_frame *frames, size_t n);

/* What was at that place of the thread's stack. 0 or -ENOENT. */
int kept_returns_find(const struct kept_returns *k, int32_t tid, uint64_t at, const struct unwind_memory *memory, uint64_t *ret_ip);

#endif
