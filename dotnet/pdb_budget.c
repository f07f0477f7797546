#include "dotnet/pdb_budget.h"

#include <stdio.h>

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
