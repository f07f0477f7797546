/* The portable PDB of an image: in the image, beside it, or in a cache of symbol servers. */
#ifndef SYMBOLS_PDB_FIND_H
#define SYMBOLS_PDB_FIND_H

#include "symbols/pdb_room.h"
#include "symbols/portable_pdb.h"

struct pdb_places {
	/* As for portable_pdb_of_image. */
	int (*open_beside)(void *ctx, const char *name, int *ret_fd);
	/* It is nowhere, and a server may have it. NULL: of no interest. 0 or -ENOMEM. */
	int (*missing)(void *ctx, const struct portable_pdb_id *id);
	void *ctx;
	struct pdb_room *room; /* of the process; borrowed, by what is found too; NULL: without a limit */
};

/* 0; -ENOENT: it is nowhere; -EBADMSG, -ENOMEM, -errno; -E2BIG, which is counted where there is no room. */
int pdb_find(const struct pe *pe, const struct pdb_places *places, struct portable_pdb **ret_pdb);

/* Counts that there was no room for what belongs to the image's PDB. */
void pdb_find_refused(const struct pe *pe, const struct pdb_places *places);

#endif
