/*
 * Memory limit for source lines of .NET code: PDBs, data read from them, and tables of images. A
 * process may take at most as much as stays left for all others.
 */
#ifndef DOTNET_PDB_BUDGET_H
#define DOTNET_PDB_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define PDB_BUDGET_BYTES_MAX ((uint64_t)4 << 30)
/* Bytes that all embedded PDBs of a run unpack to, by their headers. This limits the time. */
#define PDB_BUDGET_UNPACKED_MAX ((uint64_t)1 << 30)

/* Limit shared by all processes. Initialise with pdb_budget_all. */
struct pdb_budget_total {
	uint64_t left, unpacked;
	uint64_t refused; /* PDBs refused, for their own size or for tables of their image */
	char first[128];  /* name of the first one refused */
};

/* Share of one process. Initialise with {of}, which is borrowed. */
struct pdb_budget {
	struct pdb_budget_total *of;
	uint64_t taken;
};

/* A quarter of the memory that is left, at most PDB_BUDGET_BYTES_MAX. */
struct pdb_budget_total pdb_budget_all(void);

/* Takes memory if enough remains. False: refused. budget NULL: no limit. */
bool pdb_budget_take(struct pdb_budget *budget, uint64_t bytes);
void pdb_budget_release(struct pdb_budget *budget, uint64_t bytes);

/* Takes memory for a PDB that is going to be unpacked, once more if it is unpacked again. */
bool pdb_budget_take_unpacked(struct pdb_budget *budget, uint64_t bytes);

/* Counts a refused PDB by its name. */
void pdb_budget_count_refused(struct pdb_budget *budget, const char *name);

#endif
