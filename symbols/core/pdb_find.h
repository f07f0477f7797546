/* Finds the portable PDB of an image: in the image, beside it, or in a cache of symbol servers. */
#ifndef SYMBOLS_CORE_PDB_FIND_H
#define SYMBOLS_CORE_PDB_FIND_H

#include "dotnet/pdb_budget.h"
#include "dotnet/portable_pdb.h"

struct pdb_places {
	/* See portable_pdb_open_image. */
	int (*open_beside)(void *ctx, const char *name, int *ret_fd);
	/*
	 * Called if the PDB is nowhere, because a server may have it. May be NULL. Returns 0 or
	 * -ENOMEM.
	 */
	int (*missing)(void *ctx, const struct portable_pdb_id *id);
	void *ctx;
	/* The process's budget, borrowed, also by the PDB that is found; NULL: no limit */
	struct pdb_budget *budget;
};

/*
 * Returns 0, -ENOENT (nowhere), -E2BIG (over a limit or the budget, counted there), -EBADMSG,
 * -ENOMEM or -errno.
 */
int pdb_find(const struct pe *pe, const struct pdb_places *places, struct portable_pdb **ret_pdb);

/* Counts in the budget that data of the image's PDB was refused. */
void pdb_find_count_refused(const struct pe *pe, const struct pdb_places *places);

#endif
