#include "dotnet/il_points.h"

#include <errno.h>

void il_points_free(struct il_points *p)
{
	pdb_budget_release(p->budget, p->taken);
	vec_free(&p->points);
	vec_free(&p->methods);
	hashmap_free(&p->by_key);
}

bool il_points_add(struct il_points *p, uint32_t native, uint32_t il)
{
	size_t first = p->methods.v[p->methods.len - 1].first;

	if (p->nread == IL_POINTS_MAX)
		p->error = -E2BIG;
	if (p->error || (p->points.len > first && native < p->points.v[p->points.len - 1].native))
		return false;
	p->nread++;
	if (il == IL_POINTS_NONE || il == IL_POINTS_EPILOG)
		return true;
	p->error =
		vec_push(&p->points, ((struct il_point){native, il == IL_POINTS_PROLOG ? 0 : il}));
	return !p->error;
}

/* Reads a method and appends it to methods. 0 or -ENOMEM. */
static int read_method(struct il_points *p, uint32_t key, il_points_read_fn *read, void *ctx)
{
	struct il_points_method method = {.first = p->points.len};
	int r = vec_push(&p->methods, method);

	if (r)
		return r;
	p->error = 0;
	r = read(ctx, key, p);
	r = p->error ? p->error : r;
	uint64_t bytes = (p->points.len - method.first) * sizeof(*p->points.v);

	if (!r && pdb_budget_take(p->budget, bytes))
		p->taken += bytes;
	else
		p->points.len = method.first;
	p->methods.v[p->methods.len - 1].n = p->points.len - method.first;
	return r == -ENOMEM ? r : hashmap_put(&p->by_key, key, (uint32_t)p->methods.len - 1);
}

int il_points_find(struct il_points *p, uint32_t key, uint32_t native, il_points_read_fn *read,
		   void *ctx, uint32_t *ret_il)
{
	const uint32_t *known = hashmap_get(&p->by_key, key);
	int r = known ? 0 : read_method(p, key, read, ctx);

	if (r)
		return r;
	const struct il_points_method *m = &p->methods.v[known ? *known : p->methods.len - 1];
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->points.v[m->first + mid].native <= native)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return -ENOENT;
	*ret_il = p->points.v[m->first + low - 1].il;
	return 0;
}
