#include "elf/budget.h"

#include "base/clock.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdatomic.h>

/* A budget is one of so many parts of the memory that is left. */
static const uint64_t parts[ELF_BUDGETS] = {
	[ELF_BUDGET_SECTIONS] = 8, [ELF_BUDGET_SYMBOLS] = 4, [ELF_BUDGET_PAGES] = 8,
	[ELF_BUDGET_INLINES] = 4,  [ELF_BUDGET_RULES] = 4,   [ELF_BUDGET_IMAGES] = 4,
	[ELF_BUDGET_LIBDW] = 4};

/* The limit is 0 until it is needed. */
static struct {
	_Atomic uint64_t limit, taken;
} budgets[ELF_BUDGETS];
static _Atomic uint64_t work, work_first_ns;

static uint64_t limit_of(enum elf_budget budget)
{
	uint64_t limit = atomic_load(&budgets[budget].limit);

	if (!limit) {
		limit = memory_left() / parts[budget] + 1;
		atomic_store(&budgets[budget].limit, limit);
	}
	return limit;
}

uint64_t elf_budget_left(enum elf_budget budget)
{
	uint64_t limit = limit_of(budget), taken = atomic_load(&budgets[budget].taken);

	return limit > taken ? limit - taken : 0;
}

bool elf_budget_is_low(enum elf_budget budget)
{
	return atomic_load(&budgets[budget].taken) > limit_of(budget) / 2;
}

int elf_budget_take(enum elf_budget budget, uint64_t bytes)
{
	uint64_t limit = limit_of(budget), taken = atomic_load(&budgets[budget].taken);

	do {
		if (taken > limit || bytes > limit - taken)
			return -E2BIG;
	} while (!atomic_compare_exchange_weak(&budgets[budget].taken, &taken, taken + bytes));
	return 0;
}

void elf_budget_add(enum elf_budget budget, uint64_t bytes)
{
	atomic_fetch_add(&budgets[budget].taken, bytes);
}

void elf_budget_give(enum elf_budget budget, uint64_t bytes)
{
	atomic_fetch_sub(&budgets[budget].taken, bytes);
}

void elf_budget_limit(enum elf_budget budget, uint64_t bytes)
{
	atomic_store(&budgets[budget].limit, bytes);
}

bool elf_budget_work(uint64_t bytes)
{
	uint64_t now_ns = clock_monotonic_ns(), first_ns = 0, limit;

	if (atomic_compare_exchange_strong(&work_first_ns, &first_ns, now_ns))
		first_ns = now_ns;
	limit = ELF_BUDGET_WORK_MAX + (now_ns - first_ns) / NS_PER_S * ELF_BUDGET_WORK_RATE;
	uint64_t done = atomic_load(&work);

	/* Refused work is not done. One large file must leave some for others. */
	if (done >= limit || bytes > (limit - done) / 2)
		return false;
	atomic_fetch_add(&work, bytes);
	return true;
}

void elf_budget_worked(uint64_t bytes)
{
	atomic_fetch_add(&work, bytes < ELF_BUDGET_WORK_MAX ? bytes : ELF_BUDGET_WORK_MAX);
}

void elf_budget_reset_work(void)
{
	atomic_store(&work, 0);
	atomic_store(&work_first_ns, 0);
}
