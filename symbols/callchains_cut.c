/* Stacks of fewer frames, when memory is short. */
#include "symbols/callchains_impl.h"

#include <errno.h>

/* Sets the frames of a cut stack. False: no such level. */
static bool callchains_cut(struct callchains *c, unsigned level)
{
	c->cut_max = profile_cut_stacks(c->profile, level);
	return c->cut_max;
}

static void callchains_cut_end(struct callchains *c)
{
	(void)profile_cut_stacks(c->profile, 0);
	c->cut_max = 0;
}

int callchains_begin_cut(struct callchains *c, const struct process_thread *thread,
			 const struct callchain *chain, uint64_t time_ns,
			 struct callchain_half *ret_half)
{
	int r = -E2BIG;

	for (unsigned level = 1; r == -E2BIG && callchains_cut(c, level); level++)
		r = callchains_begin_stack(c, thread, chain, time_ns, ret_half);
	callchains_cut_end(c);
	if (!r)
		ret_half->cut = true;
	return r;
}

/*
 * Appends the kernel part to the user part's innermost frames, in a stack of c->cut_max frames. It
 * appends only the kernel's functions.
 */
static int callchains_append_cut(struct callchains *c, const struct callchain_half *half,
				 uint32_t *ret_stack)
{
	const struct callchain_kernel *kernel = &c->kernels.v[half->kernel];
	const uint32_t *frames = c->kernel_frames.v + kernel->first;
	uint32_t stack = half->stack;
	int r;

	c->refs.len = 0;
	for (size_t i = kernel->n; i-- > 0 && c->refs.len < c->cut_max;)
		if (vec_push(&c->refs, frames[i]))
			return -ENOMEM;
	while (stack != PROFILE_STACK_EMPTY && stack != c->truncated_root &&
	       c->refs.len < c->cut_max) {
		if (vec_push(&c->refs, profile_stack_frame(c->profile, stack)))
			return -ENOMEM;
		stack = profile_stack_parent(c->profile, stack);
	}
	r = callchains_root(c, true, &stack);
	for (size_t i = c->refs.len; i-- > 0 && !r;)
		r = profile_stack(c->profile, stack, c->refs.v[i], &stack);
	if (!r)
		*ret_stack = stack;
	return r;
}

int callchains_end_kernel(struct callchains *c, const struct callchain_half *half,
			  uint32_t *ret_stack, bool *cut)
{
	int r = callchains_append_kernel(c, half->stack, half->kernel, ret_stack);

	if (r != -E2BIG)
		return r;
	*cut = true;
	for (unsigned level = 1; r == -E2BIG && callchains_cut(c, level); level++)
		r = callchains_append_cut(c, half, ret_stack);
	callchains_cut_end(c);
	return r;
}
