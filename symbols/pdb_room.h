/*
 * The memory that lines of .NET code may take in a run: PDBs, what was read of them, and tables of images. A process takes no more than
 * it leaves for others, so that none can have all of it.
 */
#ifndef SYMBOLS_PDB_ROOM_H
#define SYMBOLS_PDB_ROOM_H

#include <stdbool.h>
#include <stdint.h>

#define PDB_ROOM_BYTES_MAX ((uint64_t)4 << 30)

/* Of all processes; begins with {PDB_ROOM_BYTES_MAX}. */
struct pdb_rooms {
	uint64_t left;
	uint64_t refused; /* PDBs for which, or for whose image's tables, there was none */
	char first[128]; /* the name of one of them */
};

/* Of a process; begins with {of}, borrowed. */
struct pdb_room {
	struct pdb_rooms *of;
	uint64_t taken;
};

/* Whether there is room, which is taken then. room NULL: without a limit. */
bool pdb_room_take(struct pdb_room *room, uint64_t bytes);
void pdb_room_give_back(struct pdb_room *room, uint64_t bytes);

/* Counts what there was no room for; name: of a PDB. */
void pdb_room_refused(struct pdb_room *room, const char *name);

#endif
