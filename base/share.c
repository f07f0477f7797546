#include "base/share.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

static bool has_room(const struct share *s, uint64_t more)
{
	uint64_t mine = s->taken + more, all = s->of->taken + more;

	return mine <= SHARE_SMALL ? all <= 2 * s->of->limit : all + mine <= s->of->limit;
}

int share_count(struct share *s, uint64_t *counted, uint64_t amount)
{
	struct share_total *all = s ? s->of : NULL;

	if (all && amount > *counted && !has_room(s, amount - *counted))
		return -E2BIG;
	if (all) {
		all->taken += amount - *counted;
		s->taken += amount - *counted;
	}
	*counted = amount;
	return 0;
}

void share_release(struct share *s, uint64_t *counted)
{
	(void)share_count(s, counted, 0);
}
