/*
 * Portable PDBs: which source line an offset in the IL of a method is of. Format: dotnet/runtime, docs/design/specs/
 * PortablePdb-Metadata.md and PE-COFF.md (the debug directory).
 */
#ifndef SYMBOLS_PORTABLE_PDB_H
#define SYMBOLS_PORTABLE_PDB_H

#include "base/error.h"
#include "symbols/pe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORTABLE_PDB_BYTES_MAX ((uint32_t)256 << 20)
#define PORTABLE_PDB_POINTS_MAX 1000000u /* of one method, and changes of its document: a method of more has no lines */
#define PORTABLE_PDB_RECORDS_MAX (4u << 20) /* the same of all methods that are asked for */
#define PORTABLE_PDB_PARTS_MAX ((size_t)4096) /* bytes of what a document's name is made of */
#define PORTABLE_PDB_NAME_MAX 4096 /* bytes of a document's name, as of that of the PDB */

struct pdb_room;
struct portable_pdb;

/* By what the debug directory of an image knows its PDB. */
struct portable_pdb_id {
	unsigned char guid[16]; /* as its bytes are in the file */
	bool portable;
	char name[PORTABLE_PDB_NAME_MAX + 1]; /* without folders */
};

/* 0; -ENOENT: it names none; -EBADMSG, -E2BIG, -ENOMEM, -errno. */
int portable_pdb_id(const struct pe *pe, struct portable_pdb_id *ret_id);

/* data is taken where it succeeds. -EBADMSG: no portable PDB, or a damaged one; -ENOMEM. */
int portable_pdb_open(unsigned char *data, size_t len, struct portable_pdb **ret_pdb, struct parse_error *err);
void portable_pdb_free(struct portable_pdb *pdb);

/* Takes room for what was read and, until it is freed, for what will be: a method that finds none has no lines. room: borrowed as long;
 * NULL: without a limit. False: there is none. */
bool portable_pdb_take_room(struct portable_pdb *pdb, struct pdb_room *room);

/* A file that is the PDB of that GUID, borrowed. 0; -ENOENT: it is another one's; -EBADMSG (also of one that is mostly holes), -E2BIG,
 * -ENOMEM, -errno. */
int portable_pdb_of_file(int fd, const unsigned char guid[16], struct portable_pdb **ret_pdb);

/*
 * The PDB of an image: embedded in it, or the file that its debug directory names, by its id. open_beside gives a descriptor of a
 * file in the image's folder, or another one of that name; its text is the last part of a path, with nothing in it that leads
 * elsewhere. 0; -ENOENT: there is none; -EBADMSG, -E2BIG, -ENOMEM, -errno.
 */
int portable_pdb_of_image(const struct pe *pe, int (*open_beside)(void *ctx, const char *name, int *ret_fd), void *ctx,
			  struct portable_pdb **ret_pdb);

/*
 * The file, without folders, and the line of an offset in the IL of a MethodDef (its row, from 1): as System.Diagnostics.StackTrace
 * has it, the last point that is not hidden and not behind the offset. The name lives as long as the PDB. 0, -ENOENT, -ENOMEM.
 */
int portable_pdb_line(struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset, const char **ret_file, uint32_t *ret_line);

#endif
