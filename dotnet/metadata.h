/*
 * Reader of ECMA-335 metadata (II.24) and of portable PDBs. Reads in place: finds the streams and
 * gives access to rows, heaps and the relations between types and methods. metadata_names.h makes
 * names of them.
 */
#ifndef DOTNET_METADATA_H
#define DOTNET_METADATA_H

#include "base/error.h"
#include "dotnet/metadata_tables.h"

#include <stddef.h>
#include <stdint.h>

/* Immutable once open: any number of threads may read it. */
struct clr_metadata;

/*
 * Opens metadata at its root ("BSJB"). data is borrowed until clr_metadata_free. Reads headers
 * only, no rows. Exception: the two unsorted tables of an uncompressed #- stream. -EBADMSG: not
 * metadata, or damaged; -ENOMEM.
 */
int clr_metadata_open(const void *data, size_t len, struct clr_metadata **ret,
		      struct parse_error *err);
void clr_metadata_free(struct clr_metadata *m);

/*
 * Simple name of the assembly that this module's manifest describes. NULL: a module without a
 * manifest. Valid as long as the data.
 */
const char *clr_metadata_assembly(const struct clr_metadata *m);

/* The MVID of a module or the GUID of a portable PDB: 16 bytes in file order, or NULL. */
const unsigned char *clr_metadata_mvid(const struct clr_metadata *m);

uint32_t clr_metadata_rows(const struct clr_metadata *m, enum clr_table table);

/*
 * The value of a cell, and the token it holds. rid counts from 1. See clr_tables_cell and
 * clr_tables_token.
 */
uint32_t clr_metadata_cell(const struct clr_metadata *m, enum clr_table table, uint32_t rid,
			   unsigned column);
uint32_t clr_metadata_token(const struct clr_metadata *m, enum clr_table table, uint32_t rid,
			    unsigned column);

/*
 * The heap entry at an index: a NUL-terminated text, a blob with its length, or a GUID of 16 bytes.
 * NULL: no such entry.
 */
const char *clr_metadata_string(const struct clr_metadata *m, uint32_t index);
const unsigned char *clr_metadata_blob(const struct clr_metadata *m, uint32_t index,
				       size_t *ret_len);
const unsigned char *clr_metadata_guid(const struct clr_metadata *m, uint32_t index);

/* A whole stream by its name, for example "#Pdb", or NULL. */
const unsigned char *clr_metadata_stream(const struct clr_metadata *m, const char *name,
					 size_t *ret_len);

/* Simple name of a referenced assembly. 0, -ENOENT. */
int clr_metadata_assembly_ref(const struct clr_metadata *m, uint32_t rid, const char **ret_name);

/* The TypeDef that owns a MethodDef, and the TypeDef that encloses a nested TypeDef. 0: none. */
uint32_t clr_metadata_method_owner(const struct clr_metadata *m, uint32_t method_rid);
uint32_t clr_metadata_enclosing(const struct clr_metadata *m, uint32_t type_rid);

#endif
