#include "symbols/core/families.h"

#include "base/fair_share.h"

#include <errno.h>

void families_free(struct families *f)
{
	vec_free(&f->v);
	*f = (struct families){0};
}

int families_new(struct families *f, uint32_t *ret_family)
{
	uint32_t family = f->unused;

	if (vec_reserve(&f->v, 2))
		return -ENOMEM;
	if (!f->v.len)
		f->v.v[f->v.len++] = (struct family){0};
	if (family)
		f->unused = f->v.v[family].next;
	else
		family = (uint32_t)f->v.len++;
	f->v.v[family] = (struct family){.refs = 1};
	*ret_family = family;
	return 0;
}

void families_enter(struct families *f, uint32_t family)
{
	f->v.v[family].refs++;
}

void families_leave(struct families *f, uint32_t family)
{
	if (!family || --f->v.v[family].refs)
		return;
	f->v.v[family].next = f->unused;
	f->unused = family;
}

void families_drop_map(struct families *f, uint32_t family, int32_t pid)
{
	f->dropped++;
	if (++f->v.v[family].dropped < f->most_dropped)
		return;
	f->most_dropped = f->v.v[family].dropped;
	f->most_pid = pid;
}

bool family_has_room(uint64_t mine, uint64_t all, uint64_t limit)
{
	return mine < fair_share_most(all - mine, limit);
}
