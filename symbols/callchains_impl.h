/* The parts of symbols/callchains. Private to it. */
#ifndef SYMBOLS_CALLCHAINS_IMPL_H
#define SYMBOLS_CALLCHAINS_IMPL_H

#include "symbols/callchains.h"

/* The first stack: the empty one, or the mark for missing callers. */
int callchains_root(struct callchains *c, bool truncated, uint32_t *ret_stack);

/* Appends a kernel part to a stack, as called by it. */
int callchains_append_kernel(struct callchains *c, uint32_t stack, uint32_t index,
			     uint32_t *ret_stack);

/* Begins with c->cut_max frames at most. */
int callchains_begin_stack(struct callchains *c, const struct process_thread *thread,
			   const struct callchain *chain, uint64_t time_ns,
			   struct callchain_half *ret_half);

/* Begins again with fewer frames. */
int callchains_begin_cut(struct callchains *c, const struct process_thread *thread,
			 const struct callchain *chain, uint64_t time_ns,
			 struct callchain_half *ret_half);

/* Appends the kernel part. Sets *cut if the stack had to be cut. */
int callchains_end_kernel(struct callchains *c, const struct callchain_half *half,
			  uint32_t *ret_stack, bool *cut);

#endif
