#include "dotnet/pdb_budget.h"

#include "container/memory_left.h"

#include <stdio.h>

struct pdb_budget_total pdb_budget_all(void)
{
	uint64_t left = memory_left() / 4;

	return (struct pdb_budget_total){left < PDB_BUDGET_BYTES_MAX ? left : PDB_BUDGET_BYTES_MAX,
					 0, 0, ""};
}

bool pdb_budget_take(struct pdb_budget *budget, uint64_t bytes)
{
	if (!budget)
		return true;
	if (bytes > budget->of->left || budget->of->left - bytes < budget->taken + bytes)
		return false;
	budget->of->left -= bytes;
	budget->taken += bytes;
	return true;
}

bool pdb_budget_take_unpacked(struct pdb_budget *budget, uint64_t bytes)
{
	if (!budget)
		return true;
	if (bytes > PDB_BUDGET_UNPACKED_MAX - budget->of->unpacked ||
	    !pdb_budget_take(budget, bytes))
		return false;
	budget->of->unpacked += bytes;
	return true;
}

void pdb_budget_release(struct pdb_budget *budget, uint64_t bytes)
{
	if (!budget)
		return;
	budget->of->left += bytes;
	budget->taken -= bytes;
}

void pdb_budget_count_refused(struct pdb_budget *budget, const char *name)
{
	if (budget && !budget->of->refused++)
		snprintf(budget->of->first, sizeof(budget->of->first), "%s", name);
}
