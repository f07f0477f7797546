/*
 * Tables of ECMA-335 metadata (II.22) and of portable PDBs. Reads them in place from a #~ or #-
 * stream (II.24.2.6).
 */
#ifndef DOTNET_METADATA_TABLES_H
#define DOTNET_METADATA_TABLES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Table numbers. A token holds the table in its upper byte and the row, from 1, in the other three.
 */
enum clr_table {
	CLR_MODULE = 0x00,
	CLR_TYPE_REF = 0x01,
	CLR_TYPE_DEF = 0x02,
	CLR_FIELD_PTR = 0x03,
	CLR_FIELD = 0x04,
	CLR_METHOD_PTR = 0x05,
	CLR_METHOD_DEF = 0x06,
	CLR_PARAM_PTR = 0x07,
	CLR_PARAM = 0x08,
	CLR_INTERFACE_IMPL = 0x09,
	CLR_MEMBER_REF = 0x0a,
	CLR_CONSTANT = 0x0b,
	CLR_CUSTOM_ATTRIBUTE = 0x0c,
	CLR_FIELD_MARSHAL = 0x0d,
	CLR_DECL_SECURITY = 0x0e,
	CLR_CLASS_LAYOUT = 0x0f,
	CLR_FIELD_LAYOUT = 0x10,
	CLR_STAND_ALONE_SIG = 0x11,
	CLR_EVENT_MAP = 0x12,
	CLR_EVENT_PTR = 0x13,
	CLR_EVENT = 0x14,
	CLR_PROPERTY_MAP = 0x15,
	CLR_PROPERTY_PTR = 0x16,
	CLR_PROPERTY = 0x17,
	CLR_METHOD_SEMANTICS = 0x18,
	CLR_METHOD_IMPL = 0x19,
	CLR_MODULE_REF = 0x1a,
	CLR_TYPE_SPEC = 0x1b,
	CLR_IMPL_MAP = 0x1c,
	CLR_FIELD_RVA = 0x1d,
	CLR_ENC_LOG = 0x1e,
	CLR_ENC_MAP = 0x1f,
	CLR_ASSEMBLY = 0x20,
	CLR_ASSEMBLY_PROCESSOR = 0x21,
	CLR_ASSEMBLY_OS = 0x22,
	CLR_ASSEMBLY_REF = 0x23,
	CLR_ASSEMBLY_REF_PROCESSOR = 0x24,
	CLR_ASSEMBLY_REF_OS = 0x25,
	CLR_FILE = 0x26,
	CLR_EXPORTED_TYPE = 0x27,
	CLR_MANIFEST_RESOURCE = 0x28,
	CLR_NESTED_CLASS = 0x29,
	CLR_GENERIC_PARAM = 0x2a,
	CLR_METHOD_SPEC = 0x2b,
	CLR_GENERIC_PARAM_CONSTRAINT = 0x2c,
	/* portable PDB */
	CLR_DOCUMENT = 0x30,
	CLR_METHOD_DEBUG_INFORMATION = 0x31,
	CLR_LOCAL_SCOPE = 0x32,
	CLR_LOCAL_VARIABLE = 0x33,
	CLR_LOCAL_CONSTANT = 0x34,
	CLR_IMPORT_SCOPE = 0x35,
	CLR_STATE_MACHINE_METHOD = 0x36,
	CLR_CUSTOM_DEBUG_INFORMATION = 0x37,
	CLR_TABLES
};

/* Column numbers of the tables that this program reads, in the order of the specification. */
enum {
	CLR_MODULE_MVID = 2,
	CLR_TYPE_REF_SCOPE = 0,
	CLR_TYPE_REF_NAME,
	CLR_TYPE_REF_NAMESPACE,
	CLR_TYPE_DEF_FLAGS = 0,
	CLR_TYPE_DEF_NAME,
	CLR_TYPE_DEF_NAMESPACE,
	CLR_TYPE_DEF_EXTENDS,
	CLR_TYPE_DEF_FIELDS,
	CLR_TYPE_DEF_METHODS,
	CLR_METHOD_DEF_RVA = 0,
	CLR_METHOD_DEF_IMPL_FLAGS,
	CLR_METHOD_DEF_FLAGS,
	CLR_METHOD_DEF_NAME,
	CLR_METHOD_DEF_SIGNATURE,
	CLR_METHOD_DEF_PARAMS,
	CLR_MEMBER_REF_PARENT = 0,
	CLR_MEMBER_REF_NAME,
	CLR_MEMBER_REF_SIGNATURE,
	CLR_MODULE_REF_NAME = 0,
	CLR_TYPE_SPEC_SIGNATURE = 0,
	CLR_ASSEMBLY_NAME = 7,
	CLR_ASSEMBLY_REF_NAME = 6,
	CLR_NESTED_CLASS_NESTED = 0,
	CLR_NESTED_CLASS_ENCLOSING,
};

#define CLR_COLUMNS_MAX 9 /* columns of one table */

struct clr_table_rows {
	const unsigned char *rows;
	uint32_t nrows;
	uint8_t row_bytes, ncolumns;
	uint8_t at[CLR_COLUMNS_MAX], width[CLR_COLUMNS_MAX];
};

struct clr_tables {
	struct clr_table_rows tables[CLR_TABLES];
	uint64_t sorted; /* one bit per table */
};

/*
 * Lays out the tables of a #~ or #- stream. Reads the header and the row counts, no rows.
 *   stream: borrowed as long as t is used. The two kinds differ only in the tables they may hold.
 *   external: row counts of tables in another file (CLR_TABLES numbers), or NULL. The stream #Pdb
 *   of a portable PDB has them.
 *   wide: all indexes have 4 bytes, as in metadata that has a stream #JTD.
 * 0; -EBADMSG: unknown tables, or the stream ends before their rows.
 */
int clr_tables_open(struct clr_tables *t, const void *stream, size_t len, const uint32_t *external,
		    bool wide, struct parse_error *err);

/* One cell as stored in the file; 0 if the row or the column does not exist. rid counts from 1. */
uint32_t clr_tables_cell(const struct clr_tables *t, enum clr_table table, uint32_t rid,
			 unsigned column);

/*
 * The token in a cell that refers to a row, by a plain or coded index. 0: nothing, or an invalid
 * tag. The row may be missing.
 */
uint32_t clr_tables_token(const struct clr_tables *t, enum clr_table table, uint32_t rid,
			  unsigned column);

static inline uint32_t clr_token(enum clr_table table, uint32_t rid)
{
	return (uint32_t)table << 24 | rid;
}

static inline enum clr_table clr_token_table(uint32_t token)
{
	return (enum clr_table)(token >> 24);
}

static inline uint32_t clr_token_rid(uint32_t token)
{
	return token & 0xffffff;
}

#endif
