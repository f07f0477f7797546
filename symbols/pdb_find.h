/* The portable PDB of an image: in the image, beside it, or in a cache of symbol servers. */
#ifndef SYMBOLS_PDB_FIND_H
#define SYMBOLS_PDB_FIND_H

#include "symbols/portable_pdb.h"

#define PDB_FIND_BYTES_MAX ((uint64_t)4 << 30) /* of all PDBs of a run; embedded ones are small in their files */

/* What PDBs may still take of memory, and how many were left out for it. Begins with {PDB_FIND_BYTES_MAX, 0}. */
struct pdb_room {
	uint64_t bytes, refused;
};

struct pdb_places {
	/* As for portable_pdb_of_image. */
	int (*open_beside)(void *ctx, const char *name, int *ret_fd);
	/* It is nowhere, and a server may have it. NULL: of no interest. 0 or -ENOMEM. */
	int (*missing)(void *ctx, const struct portable_pdb_id *id);
	void *ctx;
	struct pdb_room *room; /* borrowed; NULL: without a limit */
};

/* 0; -ENOENT: it is nowhere; -EBADMSG, -ENOMEM, -errno; -E2BIG, which is counted where there is no room. */
int pdb_find(const struct pe *pe, const struct pdb_places *places, struct portable_pdb **ret_pdb);

#endif
