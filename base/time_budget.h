/*
 * Time that work may take: at once, and as a share of the time that passes. Work adds to a debt,
 * which falls while time passes.
 */
#ifndef BASE_TIME_BUDGET_H
#define BASE_TIME_BUDGET_H

#include <stdint.h>

/* A zeroed struct has no debt. */
struct time_budget {
	uint64_t at_ns, debt_ns; /* time that was spent and is not paid back, at at_ns */
};

/*
 * Pays back the part of the time since at_ns that work may take, 1 / divisor. Returns the debt that
 * is left. now_ns: of any clock; an earlier time than before pays nothing.
 */
static inline uint64_t time_budget_debt(struct time_budget *b, uint64_t now_ns, uint64_t divisor)
{
	if (now_ns > b->at_ns) {
		uint64_t paid_ns = (now_ns - b->at_ns) / divisor;

		b->debt_ns -= paid_ns < b->debt_ns ? paid_ns : b->debt_ns;
		b->at_ns = now_ns;
	}
	return b->debt_ns;
}

#endif
