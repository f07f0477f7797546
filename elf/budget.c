#include "elf/budget.h"

#include "base/clock.h"
#include "base/hash.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

/* A budget is one of so many parts of the memory that is left. */
static const uint64_t parts[ELF_BUDGETS] = {
	[ELF_BUDGET_SECTIONS] = 8, [ELF_BUDGET_SYMBOLS] = 4, [ELF_BUDGET_PAGES] = 8,
	[ELF_BUDGET_INLINES] = 4,  [ELF_BUDGET_RULES] = 4,   [ELF_BUDGET_IMAGES] = 4,
	[ELF_BUDGET_LIBDW] = 4};

/* The limit is 0 until it is needed. */
static struct {
	_Atomic uint64_t limit, taken;
} budgets[ELF_BUDGETS];

#define WORK_PLACES 1024

/* One kind of work. `of`: that for each process, by hash of its PID. Few have the same hash. */
struct work {
	_Atomic uint64_t done, of[WORK_PLACES];
};

static struct work bytes_done, steps_done;
static _Atomic uint64_t first_ns, steps_max = ELF_BUDGET_STEPS_MAX;
static _Thread_local uint32_t own_place; /* of the process, plus 1; 0: none */

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

int elf_budget_take_briefly(enum elf_budget budget, uint64_t bytes)
{
	uint64_t most = 3 * limit_of(budget), taken = atomic_load(&budgets[budget].taken);

	if (!elf_budget_take(budget, bytes))
		return 0;
	if (taken > most || bytes > most - taken || bytes > memory_left() / 4 * 3)
		return -E2BIG;
	elf_budget_add(budget, bytes);
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

void elf_budget_work_for(int32_t pid)
{
	own_place = pid ? 1 + (uint32_t)(hash_u64((uint32_t)pid) % WORK_PLACES) : 0;
}

static void add_work(struct work *w, uint64_t amount)
{
	atomic_fetch_add(&w->done, amount);
	if (own_place)
		atomic_fetch_add(&w->of[own_place - 1], amount);
}

/* Counts work if the limit permits it. small: what each process may do from the reserve. */
static bool take_work(struct work *w, uint64_t amount, uint64_t limit, uint64_t small)
{
	uint64_t done = atomic_load(&w->done),
		 own = own_place ? atomic_load(&w->of[own_place - 1]) : 0,
		 used = done + own / ELF_BUDGET_WORK_LEAVES;
	bool is_small = own_place && own < small && amount <= small - own && done < 2 * limit;

	/* Refused work is not done. One large file must leave some for others. */
	if (!is_small && (used >= limit || amount > (limit - used) / 2))
		return false;
	add_work(w, amount);
	return true;
}

bool elf_budget_work(uint64_t bytes)
{
	uint64_t now_ns = clock_monotonic_ns(), began_ns = 0;

	if (atomic_compare_exchange_strong(&first_ns, &began_ns, now_ns))
		began_ns = now_ns;
	return take_work(&bytes_done, bytes,
			 ELF_BUDGET_WORK_MAX +
				 (now_ns - began_ns) / NS_PER_S * ELF_BUDGET_WORK_RATE,
			 ELF_BUDGET_WORK_SMALL);
}

bool elf_budget_steps(uint64_t steps)
{
	return take_work(&steps_done, steps, atomic_load(&steps_max), ELF_BUDGET_STEPS_SMALL);
}

void elf_budget_worked(uint64_t bytes)
{
	add_work(&bytes_done, bytes < ELF_BUDGET_WORK_MAX ? bytes : ELF_BUDGET_WORK_MAX);
}

static void reset(struct work *w)
{
	atomic_store(&w->done, 0);
	for (size_t i = 0; i < WORK_PLACES; i++)
		atomic_store(&w->of[i], 0);
}

void elf_budget_reset_work(void)
{
	reset(&bytes_done);
	atomic_store(&first_ns, 0);
}

void elf_budget_reset_steps(uint64_t max)
{
	reset(&steps_done);
	atomic_store(&steps_max, max);
}
