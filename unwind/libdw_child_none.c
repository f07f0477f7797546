/* In place of libdw_child.c in a build without libdw (make LIBDW=0). */
#include "unwind/libdw_child.h"

#include <errno.h>
#include <stdlib.h>

struct libdw_child {
	char none;
};

bool libdw_child_works(void)
{
	return false;
}

int libdw_child_new(libdw_child_find_fn *find_code, void *ctx, struct libdw_child **ret_child)
{
	(void)find_code;
	(void)ctx;
	*ret_child = calloc(1, sizeof(**ret_child));
	return *ret_child ? 0 : -ENOMEM;
}

void libdw_child_free(struct libdw_child *c)
{
	free(c);
}

void libdw_child_forget(struct libdw_child *c)
{
	(void)c;
}

int libdw_child_walk(struct libdw_child *c, const struct libdw_sample *sample, struct walk *walk,
		     struct libdw_cost *ret_cost, bool *ret_failed)
{
	(void)c;
	*ret_cost = (struct libdw_cost){.slowest = LIBDW_NO_IMAGE};
	*ret_failed = false;
	return machine_walk_sampled(sample->machine, sample->regs, sample->regs_mask, WALK_NO_RULE,
				    walk);
}
