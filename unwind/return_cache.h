/*
 * Cache of return addresses by their place on a thread's stack. It restores those that a runtime
 * has hijacked since (clr_hijack.h). An entry is used only if its caller's return address is still
 * in place. The result is a guess: the same frame may meanwhile have made another call.
 */
#ifndef UNWIND_RETURN_CACHE_H
#define UNWIND_RETURN_CACHE_H

#include "unwind/walk_state.h"

#define RETURN_CACHE_ENTRIES 8192u /* entries of all threads; newer ones replace older ones */
#define RETURN_CACHE_FRAMES 64     /* frames from the leaf: runtimes hijack near the top */

struct return_cache;

/* Returns 0 or -ENOMEM. */
int return_cache_new(struct return_cache **ret_cache);
void return_cache_free(struct return_cache *c);

/* Stores the certain frames of a thread's stack. */
void return_cache_put(struct return_cache *c, int32_t tid, const struct walk_frame *frames,
		      size_t n);

/* The return address last seen at a stack address of the thread. Returns 0 or -ENOENT. */
int return_cache_find(const struct return_cache *c, int32_t tid, uint64_t at,
		      const struct unwind_memory *memory, uint64_t *ret_ip);

#endif
