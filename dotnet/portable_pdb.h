/*
 * Portable PDBs: maps an offset in a method's IL to a source line. Format: dotnet/runtime,
 * docs/design/specs/PortablePdb-Metadata.md and PE-COFF.md (debug directory).
 */
#ifndef DOTNET_PORTABLE_PDB_H
#define DOTNET_PORTABLE_PDB_H

#include "base/error.h"
#include "dotnet/pe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORTABLE_PDB_BYTES_MAX ((uint32_t)256 << 20)
/* Sequence points and document changes of one method. A method with more has no lines. */
#define PORTABLE_PDB_POINTS_MAX 1000000u
/* Sequence points and document changes read in all, for all methods. */
#define PORTABLE_PDB_RECORDS_MAX (4u << 20)
/* Bytes of the blob that lists the parts of a document's name. */
#define PORTABLE_PDB_PARTS_MAX ((size_t)4096)
/* Bytes of a document's name, and of the PDB's own name. */
#define PORTABLE_PDB_NAME_MAX 4096

struct pdb_budget;
struct portable_pdb;

/* Identity of the PDB that an image's debug directory names. */
struct portable_pdb_id {
	unsigned char guid[16]; /* bytes in file order */
	bool portable;
	char name[PORTABLE_PDB_NAME_MAX + 1]; /* without folders */
};

/*
 * Reads the id from the debug directory. 0; -ENOENT: none there; -EBADMSG, -E2BIG, -ENOMEM, -errno.
 */
int portable_pdb_id(const struct pe *pe, struct portable_pdb_id *ret_id);

/*
 * Opens a PDB in memory. Takes ownership of data on success. -EBADMSG: not a portable PDB, or
 * damaged; -ENOMEM.
 */
int portable_pdb_open(unsigned char *data, size_t len, struct portable_pdb **ret_pdb,
		      struct parse_error *err);
void portable_pdb_free(struct portable_pdb *pdb);

/*
 * Charges the PDB and data read later to a budget, until it is freed. Methods read after the budget
 * is used up have no lines. budget: borrowed as long as the PDB; NULL: no limit. False: too little
 * is left.
 */
bool portable_pdb_charge_budget(struct portable_pdb *pdb, struct pdb_budget *budget);

/*
 * Opens a file, borrowed, as the PDB with that GUID. Reads it only if it fits in the budget, but
 * charges nothing.
 *
 * 0; -ENOENT: the PDB has another GUID; -EBADMSG (also if the file is mostly holes); -E2BIG: over a
 * limit or the budget; -ENOMEM, -errno.
 */
int portable_pdb_open_file(int fd, const unsigned char guid[16], struct pdb_budget *budget,
			   struct portable_pdb **ret_pdb);

/*
 * Opens the PDB of an image: embedded in it, or the file with the id in its debug directory.
 * The callback opens a file in the image's folder, or another file with that name. The name is the
 * last part of a path, never "." or "..". Only the first entry of each kind counts. Reads or
 * unpacks it only if its stated size fits in the budget. The caller charges the PDB.
 *
 * 0; -ENOENT: none; -E2BIG: over a limit or the budget; -EBADMSG, -ENOMEM, -errno.
 */
int portable_pdb_open_image(const struct pe *pe,
			    int (*open_beside)(void *ctx, const char *name, int *ret_fd), void *ctx,
			    struct pdb_budget *budget, struct portable_pdb **ret_pdb);

/*
 * Finds the file (without folders) and line of an IL offset in a MethodDef (row from 1). Takes the
 * last visible sequence point at or before the offset, as System.Diagnostics.StackTrace does. The
 * name is valid as long as the PDB. 0, -ENOENT, -ENOMEM.
 */
int portable_pdb_line(struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset,
		      const char **ret_file, uint32_t *ret_line);

#endif
