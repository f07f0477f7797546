/* Adds whole stacks to the trie. */
#include "profile/profile.h"

#include <errno.h>

/* Adds the innermost `max` frames, under a mark if there are more or callers are missing. */
static int stacks_put(struct profile *p, const uint32_t *frames, size_t n, size_t max,
		      bool truncated, uint32_t *ret_stack)
{
	uint32_t stack = PROFILE_STACK_EMPTY;
	int r = n > max || truncated
			? profile_mark(p, stack, PROFILE_TRUNCATED, FRAME_UNKNOWN, &stack)
			: 0;

	for (n = n < max ? n : max; !r && n > 0;)
		r = profile_stack(p, stack, frames[--n], &stack);
	if (!r)
		*ret_stack = stack;
	return r;
}

int profile_stack_of(struct profile *p, const uint32_t *frames, size_t n, bool truncated,
		     uint32_t *ret_stack, bool *ret_cut)
{
	int r = stacks_put(p, frames, n, SIZE_MAX, truncated, ret_stack);
	size_t max;

	*ret_cut = r == -E2BIG;
	if (r != -E2BIG)
		return r;
	for (unsigned level = 1; r == -E2BIG && (max = profile_cut_stacks(p, level)); level++)
		r = stacks_put(p, frames, n, max, truncated, ret_stack);
	(void)profile_cut_stacks(p, 0);
	return r;
}
