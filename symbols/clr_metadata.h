/* ECMA-335 metadata (II.24) and portable PDBs, read in place, and the names of what is in them as the .NET runtime spells them. */
#ifndef SYMBOLS_CLR_METADATA_H
#define SYMBOLS_CLR_METADATA_H

#include "base/error.h"
#include "base/outbuf.h"
#include "symbols/clr_tables.h"

#include <stddef.h>
#include <stdint.h>

struct clr_metadata; /* never changes once it is open: any number of threads may read */

/*
 * Opens metadata from its root ("BSJB"). data is borrowed for life. Looks at headers only, at no row (of an uncompressed #- stream
 * at the two tables that have no order). -EBADMSG: no metadata or damaged, -ENOMEM.
 */
int clr_metadata_open(const void *data, size_t len, struct clr_metadata **ret, struct parse_error *err);
void clr_metadata_free(struct clr_metadata *m);

/* The simple name of the assembly whose manifest this is; NULL: a module without manifest. Lives as long as the data. */
const char *clr_metadata_assembly(const struct clr_metadata *m);

/* A module's MVID or a portable PDB's GUID as 16 bytes in the file's order, or NULL. */
const unsigned char *clr_metadata_mvid(const struct clr_metadata *m);

uint32_t clr_metadata_rows(const struct clr_metadata *m, enum clr_table table);

/* Cells; rid counts from 1. See clr_tables.h. */
uint32_t clr_metadata_cell(const struct clr_metadata *m, enum clr_table table, uint32_t rid, unsigned column);
uint32_t clr_metadata_token(const struct clr_metadata *m, enum clr_table table, uint32_t rid, unsigned column);

/* What a cell of a heap's index points to: a text (NUL-terminated), a blob with its length, 16 bytes; NULL where nothing is there. */
const char *clr_metadata_string(const struct clr_metadata *m, uint32_t index);
const unsigned char *clr_metadata_blob(const struct clr_metadata *m, uint32_t index, size_t *ret_len);
const unsigned char *clr_metadata_guid(const struct clr_metadata *m, uint32_t index);

/* A whole stream, as "#Pdb", or NULL. */
const unsigned char *clr_metadata_stream(const struct clr_metadata *m, const char *name, size_t *ret_len);

/* The simple name of a referenced assembly. 0, -ENOENT. */
int clr_metadata_assembly_ref(const struct clr_metadata *m, uint32_t rid, const char **ret_name);

/* The TypeDef that a MethodDef belongs to, and the one that a nested TypeDef is in; 0: none. */
uint32_t clr_metadata_method_owner(const struct clr_metadata *m, uint32_t method_rid);
uint32_t clr_metadata_enclosing(const struct clr_metadata *m, uint32_t type_rid);

/*
 * Type arguments of a method's type as texts that the runtime spells ("System.Int32", "System.__Canon", what clr_metadata_type_name
 * writes). Those of the method itself are no part of a name in the runtime's perf map, so there is no place for them here.
 */
struct clr_instantiation {
	const char *const *type_args;
	size_t ntype_args;
};

/*
 * Appends a MethodDef's name in the grammar of .NET's perf map, equal to what the runtime writes:
 * "instance !1& [System.Private.CoreLib] System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::FindValue(!0)".
 * assembly: NULL for the own one (a module without manifest has to be told). inst: NULL where it is not known or there is none;
 * then the type has no brackets. tier, without brackets, may be NULL. out: one that keeps its text in memory.
 * 0; -ENOENT no such method, -EBADMSG damaged, -E2BIG deeper or longer than limits of ours, -ENOMEM; then out is as before.
 */
int clr_metadata_method_name(const struct clr_metadata *m, uint32_t rid, const char *assembly, const struct clr_instantiation *inst,
			     const char *tier, struct outbuf *out);

/*
 * Appends the name of a TypeDef, TypeRef or TypeSpec as it stands in an instantiation, and as a method's type:
 * "System.Collections.Generic.Dictionary`2+Entry[System.Int32,System.String[]]". out and errors as above.
 */
int clr_metadata_type_name(const struct clr_metadata *m, uint32_t token, struct outbuf *out);

#endif
