#include "dotnet/metadata_tables.h"

#include "base/reader.h"

#include <errno.h>
#include <string.h>

#define ROWS_MAX 0xffffff /* largest row number in a token */
#define NO_TABLE 0xff

/* Coded indexes (II.24.2.6): the low bits select the table. */
enum coded {
	TYPE_DEF_OR_REF,
	HAS_CONSTANT,
	HAS_CUSTOM_ATTRIBUTE,
	HAS_FIELD_MARSHAL,
	HAS_DECL_SECURITY,
	MEMBER_REF_PARENT,
	HAS_SEMANTICS,
	METHOD_DEF_OR_REF,
	MEMBER_FORWARDED,
	IMPLEMENTATION,
	CUSTOM_ATTRIBUTE_TYPE,
	RESOLUTION_SCOPE,
	TYPE_OR_METHOD_DEF,
	HAS_CUSTOM_DEBUG_INFORMATION,
};

struct coded_index {
	uint8_t tag_bits, ntables;
	uint8_t tables[27];
};

#define ATTRIBUTED                                                                            \
	CLR_METHOD_DEF, CLR_FIELD, CLR_TYPE_REF, CLR_TYPE_DEF, CLR_PARAM, CLR_INTERFACE_IMPL, \
		CLR_MEMBER_REF, CLR_MODULE, CLR_DECL_SECURITY, CLR_PROPERTY, CLR_EVENT,       \
		CLR_STAND_ALONE_SIG, CLR_MODULE_REF, CLR_TYPE_SPEC, CLR_ASSEMBLY,             \
		CLR_ASSEMBLY_REF, CLR_FILE, CLR_EXPORTED_TYPE, CLR_MANIFEST_RESOURCE,         \
		CLR_GENERIC_PARAM, CLR_GENERIC_PARAM_CONSTRAINT, CLR_METHOD_SPEC

static const struct coded_index coded_indices[] = {
	[TYPE_DEF_OR_REF] = {2, 3, {CLR_TYPE_DEF, CLR_TYPE_REF, CLR_TYPE_SPEC}},
	[HAS_CONSTANT] = {2, 3, {CLR_FIELD, CLR_PARAM, CLR_PROPERTY}},
	[HAS_CUSTOM_ATTRIBUTE] = {5, 22, {ATTRIBUTED}},
	[HAS_FIELD_MARSHAL] = {1, 2, {CLR_FIELD, CLR_PARAM}},
	[HAS_DECL_SECURITY] = {2, 3, {CLR_TYPE_DEF, CLR_METHOD_DEF, CLR_ASSEMBLY}},
	[MEMBER_REF_PARENT] =
		{3, 5, {CLR_TYPE_DEF, CLR_TYPE_REF, CLR_MODULE_REF, CLR_METHOD_DEF, CLR_TYPE_SPEC}},
	[HAS_SEMANTICS] = {1, 2, {CLR_EVENT, CLR_PROPERTY}},
	[METHOD_DEF_OR_REF] = {1, 2, {CLR_METHOD_DEF, CLR_MEMBER_REF}},
	[MEMBER_FORWARDED] = {1, 2, {CLR_FIELD, CLR_METHOD_DEF}},
	[IMPLEMENTATION] = {2, 3, {CLR_FILE, CLR_ASSEMBLY_REF, CLR_EXPORTED_TYPE}},
	[CUSTOM_ATTRIBUTE_TYPE] = {3, 4, {NO_TABLE, NO_TABLE, CLR_METHOD_DEF, CLR_MEMBER_REF}},
	[RESOLUTION_SCOPE] = {2, 4, {CLR_MODULE, CLR_MODULE_REF, CLR_ASSEMBLY_REF, CLR_TYPE_REF}},
	[TYPE_OR_METHOD_DEF] = {1, 2, {CLR_TYPE_DEF, CLR_METHOD_DEF}},
	[HAS_CUSTOM_DEBUG_INFORMATION] = {5,
					  27,
					  {ATTRIBUTED, CLR_DOCUMENT, CLR_LOCAL_SCOPE,
					   CLR_LOCAL_VARIABLE, CLR_LOCAL_CONSTANT,
					   CLR_IMPORT_SCOPE}},
};

/* Type of a column: the number of a table, or one of these. */
#define CODED(index) (0x40 | (index))
#define FIXED(bytes) (0x80 | (bytes))
#define STRING 0x90
#define GUID 0x91
#define BLOB 0x92
#define U8 FIXED(1)
#define U16 FIXED(2)
#define U32 FIXED(4)

struct layout {
	uint8_t ncolumns;
	uint8_t columns[CLR_COLUMNS_MAX];
};

#define COLUMNS(...)                              \
	{                                         \
		sizeof((uint8_t[]){__VA_ARGS__}), \
		{                                 \
			__VA_ARGS__               \
		}                                 \
	}

static const struct layout layouts[CLR_TABLES] = {
	[CLR_MODULE] = COLUMNS(U16, STRING, GUID, GUID, GUID),
	[CLR_TYPE_REF] = COLUMNS(CODED(RESOLUTION_SCOPE), STRING, STRING),
	[CLR_TYPE_DEF] =
		COLUMNS(U32, STRING, STRING, CODED(TYPE_DEF_OR_REF), CLR_FIELD, CLR_METHOD_DEF),
	[CLR_FIELD_PTR] = COLUMNS(CLR_FIELD),
	[CLR_FIELD] = COLUMNS(U16, STRING, BLOB),
	[CLR_METHOD_PTR] = COLUMNS(CLR_METHOD_DEF),
	[CLR_METHOD_DEF] = COLUMNS(U32, U16, U16, STRING, BLOB, CLR_PARAM),
	[CLR_PARAM_PTR] = COLUMNS(CLR_PARAM),
	[CLR_PARAM] = COLUMNS(U16, U16, STRING),
	[CLR_INTERFACE_IMPL] = COLUMNS(CLR_TYPE_DEF, CODED(TYPE_DEF_OR_REF)),
	[CLR_MEMBER_REF] = COLUMNS(CODED(MEMBER_REF_PARENT), STRING, BLOB),
	[CLR_CONSTANT] = COLUMNS(U8, U8, CODED(HAS_CONSTANT), BLOB),
	[CLR_CUSTOM_ATTRIBUTE] =
		COLUMNS(CODED(HAS_CUSTOM_ATTRIBUTE), CODED(CUSTOM_ATTRIBUTE_TYPE), BLOB),
	[CLR_FIELD_MARSHAL] = COLUMNS(CODED(HAS_FIELD_MARSHAL), BLOB),
	[CLR_DECL_SECURITY] = COLUMNS(U16, CODED(HAS_DECL_SECURITY), BLOB),
	[CLR_CLASS_LAYOUT] = COLUMNS(U16, U32, CLR_TYPE_DEF),
	[CLR_FIELD_LAYOUT] = COLUMNS(U32, CLR_FIELD),
	[CLR_STAND_ALONE_SIG] = COLUMNS(BLOB),
	[CLR_EVENT_MAP] = COLUMNS(CLR_TYPE_DEF, CLR_EVENT),
	[CLR_EVENT_PTR] = COLUMNS(CLR_EVENT),
	[CLR_EVENT] = COLUMNS(U16, STRING, CODED(TYPE_DEF_OR_REF)),
	[CLR_PROPERTY_MAP] = COLUMNS(CLR_TYPE_DEF, CLR_PROPERTY),
	[CLR_PROPERTY_PTR] = COLUMNS(CLR_PROPERTY),
	[CLR_PROPERTY] = COLUMNS(U16, STRING, BLOB),
	[CLR_METHOD_SEMANTICS] = COLUMNS(U16, CLR_METHOD_DEF, CODED(HAS_SEMANTICS)),
	[CLR_METHOD_IMPL] =
		COLUMNS(CLR_TYPE_DEF, CODED(METHOD_DEF_OR_REF), CODED(METHOD_DEF_OR_REF)),
	[CLR_MODULE_REF] = COLUMNS(STRING),
	[CLR_TYPE_SPEC] = COLUMNS(BLOB),
	[CLR_IMPL_MAP] = COLUMNS(U16, CODED(MEMBER_FORWARDED), STRING, CLR_MODULE_REF),
	[CLR_FIELD_RVA] = COLUMNS(U32, CLR_FIELD),
	[CLR_ENC_LOG] = COLUMNS(U32, U32),
	[CLR_ENC_MAP] = COLUMNS(U32),
	[CLR_ASSEMBLY] = COLUMNS(U32, U16, U16, U16, U16, U32, BLOB, STRING, STRING),
	[CLR_ASSEMBLY_PROCESSOR] = COLUMNS(U32),
	[CLR_ASSEMBLY_OS] = COLUMNS(U32, U32, U32),
	[CLR_ASSEMBLY_REF] = COLUMNS(U16, U16, U16, U16, U32, BLOB, STRING, STRING, BLOB),
	[CLR_ASSEMBLY_REF_PROCESSOR] = COLUMNS(U32, CLR_ASSEMBLY_REF),
	[CLR_ASSEMBLY_REF_OS] = COLUMNS(U32, U32, U32, CLR_ASSEMBLY_REF),
	[CLR_FILE] = COLUMNS(U32, STRING, BLOB),
	[CLR_EXPORTED_TYPE] = COLUMNS(U32, U32, STRING, STRING, CODED(IMPLEMENTATION)),
	[CLR_MANIFEST_RESOURCE] = COLUMNS(U32, U32, STRING, CODED(IMPLEMENTATION)),
	[CLR_NESTED_CLASS] = COLUMNS(CLR_TYPE_DEF, CLR_TYPE_DEF),
	[CLR_GENERIC_PARAM] = COLUMNS(U16, U16, CODED(TYPE_OR_METHOD_DEF), STRING),
	[CLR_METHOD_SPEC] = COLUMNS(CODED(METHOD_DEF_OR_REF), BLOB),
	[CLR_GENERIC_PARAM_CONSTRAINT] = COLUMNS(CLR_GENERIC_PARAM, CODED(TYPE_DEF_OR_REF)),
	[CLR_DOCUMENT] = COLUMNS(BLOB, GUID, BLOB, GUID),
	[CLR_METHOD_DEBUG_INFORMATION] = COLUMNS(CLR_DOCUMENT, BLOB),
	[CLR_LOCAL_SCOPE] = COLUMNS(CLR_METHOD_DEF, CLR_IMPORT_SCOPE, CLR_LOCAL_VARIABLE,
				    CLR_LOCAL_CONSTANT, U32, U32),
	[CLR_LOCAL_VARIABLE] = COLUMNS(U16, U16, STRING),
	[CLR_LOCAL_CONSTANT] = COLUMNS(STRING, BLOB),
	[CLR_IMPORT_SCOPE] = COLUMNS(CLR_IMPORT_SCOPE, BLOB),
	[CLR_STATE_MACHINE_METHOD] = COLUMNS(CLR_METHOD_DEF, CLR_METHOD_DEF),
	[CLR_CUSTOM_DEBUG_INFORMATION] = COLUMNS(CODED(HAS_CUSTOM_DEBUG_INFORMATION), GUID, BLOB),
};

enum heap_sizes {
	WIDE_STRINGS = 0x01,
	WIDE_GUIDS = 0x02,
	WIDE_BLOBS = 0x04,
	EXTRA_DATA = 0x40, /* four more bytes follow the row counts */
	WIDE_ALL = 0x100,  /* our own; not a bit of the stream */
};

/* The table that list columns refer to: the table of pointers if it exists (only in #-). */
static enum clr_table listed(const uint32_t *nrows, uint8_t table)
{
	static const uint8_t pointers[] = {CLR_FIELD_PTR, CLR_METHOD_PTR, CLR_PARAM_PTR,
					   CLR_EVENT_PTR, CLR_PROPERTY_PTR};

	for (size_t i = 0; i < sizeof(pointers); i++) {
		if (table == pointers[i] + 1 && nrows[pointers[i]])
			return pointers[i];
	}
	return table;
}

static uint8_t column_width(uint8_t column, unsigned heaps, const uint32_t *nrows)
{
	if (heaps & WIDE_ALL && column < FIXED(0))
		return 4;
	switch (column) {
	case STRING:
		return heaps & WIDE_STRINGS ? 4 : 2;
	case GUID:
		return heaps & WIDE_GUIDS ? 4 : 2;
	case BLOB:
		return heaps & WIDE_BLOBS ? 4 : 2;
	default:
		break;
	}
	if (column >= FIXED(0))
		return column & 0x0f;
	if (column < CODED(0))
		return nrows[column] > 0xffff || nrows[listed(nrows, column)] > 0xffff ? 4 : 2;
	const struct coded_index *coded = &coded_indices[column & 0x3f];

	for (size_t i = 0; i < coded->ntables; i++) {
		if (coded->tables[i] != NO_TABLE &&
		    nrows[coded->tables[i]] >= 1u << (16 - coded->tag_bits))
			return 4;
	}
	return 2;
}

static void lay_out(struct clr_table_rows *rows, const struct layout *layout, unsigned heaps,
		    const uint32_t *nrows)
{
	rows->ncolumns = layout->ncolumns;
	for (size_t i = 0; i < layout->ncolumns; i++) {
		rows->at[i] = rows->row_bytes;
		rows->width[i] = column_width(layout->columns[i], heaps, nrows);
		rows->row_bytes = (uint8_t)(rows->row_bytes + rows->width[i]);
	}
}

static int read_counts(struct reader *r, uint64_t valid, const uint32_t *external,
		       struct clr_tables *t, uint32_t *nrows, struct parse_error *err)
{
	for (unsigned i = 0; i < 64; i++) {
		if (!(valid >> i & 1))
			continue;
		uint32_t n = reader_u32(r);

		if (r->failed)
			return parse_fail(err, -EBADMSG, "metadata tables without their row counts",
					  r->fail_at);
		if (i >= CLR_TABLES || !layouts[i].ncolumns)
			return parse_fail(err, -EBADMSG, "unknown metadata table",
					  r->pos - sizeof(n));
		if (n > ROWS_MAX)
			return parse_fail(err, -EBADMSG,
					  "metadata table with more rows than tokens can name",
					  r->pos - sizeof(n));
		t->tables[i].nrows = nrows[i] = n;
	}
	for (unsigned i = 0; external && i < CLR_TABLES; i++) {
		if (!(valid >> i & 1))
			nrows[i] = external[i];
	}
	return 0;
}

int clr_tables_open(struct clr_tables *t, const void *stream, size_t len, const uint32_t *external,
		    bool wide, struct parse_error *err)
{
	struct reader r = reader_of(stream, len);
	uint32_t nrows[CLR_TABLES] = {0};

	memset(t, 0, sizeof(*t));
	reader_skip(&r, 4 + 2); /* reserved, version */
	unsigned heaps = reader_u8(&r);

	reader_skip(&r, 1);
	uint64_t valid = reader_u64(&r);

	t->sorted = reader_u64(&r);
	int error = read_counts(&r, valid, external, t, nrows, err);

	if (error)
		return error;
	if (heaps & EXTRA_DATA)
		reader_skip(&r, 4);
	heaps |= wide ? WIDE_ALL | WIDE_STRINGS | WIDE_GUIDS | WIDE_BLOBS : 0;
	for (size_t i = 0; i < CLR_TABLES; i++) {
		struct clr_table_rows *rows = &t->tables[i];

		lay_out(rows, &layouts[i], heaps, nrows);
		rows->rows = reader_bytes(&r, (size_t)rows->nrows * rows->row_bytes);
		if (r.failed)
			return parse_fail(err, -EBADMSG, "metadata table cut short", r.fail_at);
	}
	return 0;
}

uint32_t clr_tables_cell(const struct clr_tables *t, enum clr_table table, uint32_t rid,
			 unsigned column)
{
	if ((unsigned)table >= CLR_TABLES)
		return 0;
	const struct clr_table_rows *rows = &t->tables[table];

	if (!rid || rid > rows->nrows || column >= rows->ncolumns)
		return 0;
	const unsigned char *cell =
		rows->rows + (size_t)(rid - 1) * rows->row_bytes + rows->at[column];
	uint32_t wide;
	uint16_t narrow;

	switch (rows->width[column]) {
	case 4:
		memcpy(&wide, cell, sizeof(wide));
		return wide;
	case 2:
		memcpy(&narrow, cell, sizeof(narrow));
		return narrow;
	default:
		return *cell;
	}
}

uint32_t clr_tables_token(const struct clr_tables *t, enum clr_table table, uint32_t rid,
			  unsigned column)
{
	uint32_t cell = clr_tables_cell(t, table, rid, column);

	if (!cell)
		return 0;
	uint8_t kind = layouts[table].columns[column];

	if (kind < CODED(0))
		return cell <= ROWS_MAX ? clr_token(kind, cell) : 0;
	if (kind >= FIXED(0))
		return 0;
	const struct coded_index *coded = &coded_indices[kind & 0x3f];
	uint32_t tag = cell & ((1u << coded->tag_bits) - 1), row = cell >> coded->tag_bits;

	if (!row || row > ROWS_MAX || tag >= coded->ntables || coded->tables[tag] == NO_TABLE)
		return 0;
	return clr_token(coded->tables[tag], row);
}
