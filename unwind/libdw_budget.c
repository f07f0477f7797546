#include "unwind/libdw_budget.h"

#include <errno.h>

#define REFUSED UINT32_MAX
#define NS_PER_US 1000u

void libdw_budget_free(struct libdw_budget *b)
{
	hashmap_free(&b->debts);
}

bool libdw_budget_refuses(const struct libdw_budget *b, uint64_t image)
{
	const uint32_t *debt = hashmap_get(&b->debts, image);

	return debt && *debt == REFUSED;
}

static void waste(struct libdw_budget *b, uint64_t ns)
{
	b->total_ns += ns;
	b->refused_ns += ns;
}

int libdw_budget_fail(struct libdw_budget *b, uint64_t image, uint64_t ns, bool *ret_refused)
{
	bool refused = libdw_budget_refuses(b, image);
	int r = refused ? 0 : hashmap_put(&b->debts, image, REFUSED);

	waste(b, ns);
	if (!r)
		*ret_refused = !refused;
	return r;
}

int libdw_budget_charge(struct libdw_budget *b, const struct libdw_charge *charge,
			bool *ret_refused)
{
	uint64_t allowance_ns = LIBDW_BUDGET_WALK_NS + charge->frames * LIBDW_BUDGET_FRAME_NS;
	uint64_t ns = charge->cpu_ns > allowance_ns ? charge->cpu_ns - allowance_ns : 0;
	uint64_t limit_ns = LIBDW_BUDGET_IMAGE_NS + charge->bytes * LIBDW_BUDGET_BYTE_NS, debt_ns;
	uint32_t *debt;

	b->failures = 0;
	*ret_refused = false;
	if (!ns || libdw_budget_refuses(b, charge->image))
		return 0;
	if (hashmap_entry(&b->debts, charge->image, 0, &debt, NULL))
		return -ENOMEM;
	b->total_ns += ns;
	debt_ns = (uint64_t)*debt * NS_PER_US + ns;
	*ret_refused = debt_ns > (libdw_budget_is_spent(b) ? LIBDW_BUDGET_REST_NS : limit_ns);
	b->refused_ns += *ret_refused ? debt_ns : 0;
	*debt = *ret_refused ? REFUSED : (uint32_t)(debt_ns / NS_PER_US);
	return 0;
}

void libdw_budget_fail_alone(struct libdw_budget *b, uint64_t ns)
{
	waste(b, ns);
	b->failures++;
}

bool libdw_budget_is_spent(const struct libdw_budget *b)
{
	return b->total_ns > LIBDW_BUDGET_TOTAL_NS;
}

bool libdw_budget_lasts(const struct libdw_budget *b)
{
	return b->failures < LIBDW_BUDGET_FAILURES_MAX && b->refused_ns < LIBDW_BUDGET_REFUSED_NS;
}
