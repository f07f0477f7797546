/* Settings of a clr_jit_code, and what scans know besides its bodies: a part of jit_code.h. */
#include "dotnet/coreclr/jit_code_impl.h"

#include <errno.h>
#include <stdlib.h>

void clr_jit_code_stats(const struct clr_jit_code *j, struct clr_jit_code_stats *ret_stats)
{
	*ret_stats = j->stats;
	ret_stats->bodies += j->stubs.len;
	ret_stats->stubs += j->stubs.len;
	ret_stats->modules = j->modules.modules.len;
	ret_stats->modules_failed = clr_modules_failed(&j->modules);
}

void clr_jit_code_request_il(struct clr_jit_code *j)
{
	j->wants_il = true;
}

void clr_jit_code_compare_all(struct clr_jit_code *j)
{
	j->compares_all = true;
}

bool clr_jit_code_is_described(const struct clr_jit_code *j)
{
	return j->contract.described;
}

static int image_order(const void *a, const void *b)
{
	const struct clr_code_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int clr_jit_code_keep_images(struct clr_jit_code *j, const struct clr_code_ranges *ranges)
{
	j->images.len = 0;
	for (size_t i = 0; i < ranges->ranges.len; i++)
		if (ranges->ranges.v[i].r2r_module && vec_push(&j->images, ranges->ranges.v[i]))
			return -ENOMEM;
	if (j->images.len)
		qsort(j->images.v, j->images.len, sizeof(*j->images.v), image_order);
	return 0;
}

uint64_t clr_jit_code_image(const struct clr_jit_code *j, uint64_t addr)
{
	size_t low = 0, high = j->images.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (j->images.v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low && addr < j->images.v[low - 1].end ? j->images.v[low - 1].r2r_module : 0;
}

int clr_jit_code_module_path(struct clr_jit_code *j, uint64_t module, uint64_t until_ns,
			     const char **ret_path)
{
	j->until_ns = until_ns;
	if (j->contract.at[CLR_MODULE_PATH] != CLR_NONE)
		return clr_modules_path(&j->modules, module, ret_path);
	if (!clr_modules_is_made(&j->modules, module))
		return -ENOENT;
	*ret_path = "";
	return 0;
}
