#include "dotnet/metadata.h"

#include "base/reader.h"
#include "dotnet/signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURE 0x424a5342 /* "BSJB" */
#define STREAMS_MAX 16
#define STREAM_NAME_MAX 31 /* II.24.2.2 */
#define VERSION_MAX 255
#define GUID_BYTES 16
#define PDB_ID_BYTES 20
#define TYPE_VISIBILITY 0x7
#define TYPE_NESTED_PUBLIC 0x2 /* this and all higher visibilities are nested */

struct stream {
	const char *name;
	const unsigned char *data;
	size_t len;
};

struct clr_metadata {
	struct stream streams[STREAMS_MAX];
	size_t nstreams;
	struct stream strings, blobs, guids;
	struct clr_tables tables;
	/* Enclosing type of each TypeDef. Only if the table NestedClass is unsorted. */
	uint32_t *enclosing;
	/* Row in MethodPtr of each MethodDef. Only if the table MethodPtr exists. */
	uint32_t *method_at;
};

const unsigned char *clr_metadata_stream(const struct clr_metadata *m, const char *name,
					 size_t *ret_len)
{
	for (size_t i = 0; i < m->nstreams; i++) {
		if (!strcmp(m->streams[i].name, name)) {
			*ret_len = m->streams[i].len;
			return m->streams[i].data;
		}
	}
	return NULL;
}

static struct stream find_stream(const struct clr_metadata *m, const char *name)
{
	struct stream s = {0};

	s.data = clr_metadata_stream(m, name, &s.len);
	return s;
}

static int read_root(struct clr_metadata *m, const void *data, size_t len, struct parse_error *err)
{
	struct reader r = reader_of(data, len);

	if (reader_u32(&r) != SIGNATURE)
		return parse_fail(err, -EBADMSG, "not .NET metadata", 0);
	reader_skip(&r, 2 + 2 + 4); /* version, reserved */
	uint32_t version_bytes = reader_u32(&r);

	if (version_bytes > VERSION_MAX)
		return parse_fail(err, -EBADMSG, "metadata version text too long", r.pos);
	reader_skip(&r, version_bytes);
	reader_skip(&r, 2); /* flags */
	size_t nstreams = reader_u16(&r);

	if (nstreams > STREAMS_MAX)
		return parse_fail(err, -EBADMSG, "too many metadata streams", r.pos);
	for (size_t i = 0; i < nstreams; i++) {
		uint32_t at = reader_u32(&r), n = reader_u32(&r);
		size_t name_bytes = 0;
		const char *name = reader_cstr(&r, STREAM_NAME_MAX, &name_bytes);

		reader_skip(&r, 3 - name_bytes % 4); /* padding to 4 bytes after the NUL */
		if (r.failed)
			return parse_fail(err, -EBADMSG, "metadata root cut short", r.fail_at);
		if (at > len || n > len - at)
			return parse_fail(err, -EBADMSG,
					  "metadata stream lies outside the metadata", r.pos);
		m->streams[m->nstreams++] =
			(struct stream){name, (const unsigned char *)data + at, n};
	}
	return r.failed ? parse_fail(err, -EBADMSG, "metadata root cut short", r.fail_at) : 0;
}

/*
 * Reads the row counts of the tables that a portable PDB leaves in its assembly. #Pdb holds an id,
 * the entry point, a bit for each table, and the counts.
 */
static int read_external(const struct clr_metadata *m, uint32_t *nrows, struct parse_error *err)
{
	struct stream pdb = find_stream(m, "#Pdb");
	struct reader r = reader_of(pdb.data, pdb.len);

	if (!pdb.data)
		return 0;
	reader_skip(&r, PDB_ID_BYTES + 4);
	uint64_t tables = reader_u64(&r);

	for (unsigned i = 0; i < 64; i++) {
		uint32_t n = tables >> i & 1 ? reader_u32(&r) : 0;

		if (i < CLR_TABLES)
			nrows[i] = n;
	}
	return r.failed ? parse_fail(err, -EBADMSG, "#Pdb stream cut short", r.fail_at) : 0;
}

/* Builds the indexes for tables that an uncompressed stream may leave unsorted. */
static int index_unordered(struct clr_metadata *m)
{
	uint32_t ntypes = clr_metadata_rows(m, CLR_TYPE_DEF),
		 nnested = clr_metadata_rows(m, CLR_NESTED_CLASS);
	uint32_t nmethods = clr_metadata_rows(m, CLR_METHOD_DEF),
		 npointers = clr_metadata_rows(m, CLR_METHOD_PTR);

	if (nnested && !(m->tables.sorted >> CLR_NESTED_CLASS & 1)) {
		m->enclosing = calloc((size_t)ntypes + 1, sizeof(*m->enclosing));
		if (!m->enclosing)
			return -ENOMEM;
		for (uint32_t i = 1; i <= nnested; i++) {
			uint32_t nested =
				clr_metadata_cell(m, CLR_NESTED_CLASS, i, CLR_NESTED_CLASS_NESTED);

			if (nested <= ntypes)
				m->enclosing[nested] = clr_metadata_cell(
					m, CLR_NESTED_CLASS, i, CLR_NESTED_CLASS_ENCLOSING);
		}
	}
	if (npointers) {
		m->method_at = calloc((size_t)nmethods + 1, sizeof(*m->method_at));
		if (!m->method_at)
			return -ENOMEM;
		for (uint32_t i = 1; i <= npointers; i++) {
			uint32_t method = clr_metadata_cell(m, CLR_METHOD_PTR, i, 0);

			if (method <= nmethods)
				m->method_at[method] = i;
		}
	}
	return 0;
}

static int open_streams(struct clr_metadata *m, const void *data, size_t len,
			struct parse_error *err)
{
	uint32_t external[CLR_TABLES] = {0};
	size_t tables_len = 0;
	int error = read_root(m, data, len, err);

	if (!error)
		error = read_external(m, external, err);
	if (error)
		return error;
	const unsigned char *tables = clr_metadata_stream(m, "#~", &tables_len);

	if (!tables)
		tables = clr_metadata_stream(m, "#-", &tables_len);
	if (!tables)
		return parse_fail(err, -EBADMSG, "metadata without tables", 0);
	size_t wide_len = 0;

	error = clr_tables_open(&m->tables, tables, tables_len, external,
				clr_metadata_stream(m, "#JTD", &wide_len) != NULL, err);
	if (error) {
		if (err)
			err->offset += (uint64_t)(tables - (const unsigned char *)data);
		return error;
	}
	m->strings = find_stream(m, "#Strings");
	m->blobs = find_stream(m, "#Blob");
	m->guids = find_stream(m, "#GUID");
	/* Cut after the last NUL, so that each text in the heap has an end. */
	const unsigned char *last =
		m->strings.len ? memrchr(m->strings.data, 0, m->strings.len) : NULL;

	m->strings.len = last ? (size_t)(last - m->strings.data) + 1 : 0;
	error = index_unordered(m);
	return error ? parse_fail(err, error, "out of memory", 0) : 0;
}

int clr_metadata_open(const void *data, size_t len, struct clr_metadata **ret,
		      struct parse_error *err)
{
	struct clr_metadata *m = calloc(1, sizeof(*m));

	if (!m)
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	int error = open_streams(m, data, len, err);

	if (error) {
		clr_metadata_free(m);
		return error;
	}
	*ret = m;
	return 0;
}

void clr_metadata_free(struct clr_metadata *m)
{
	if (!m)
		return;
	free(m->enclosing);
	free(m->method_at);
	free(m);
}

uint32_t clr_metadata_rows(const struct clr_metadata *m, enum clr_table table)
{
	return (unsigned)table < CLR_TABLES ? m->tables.tables[table].nrows : 0;
}

uint32_t clr_metadata_cell(const struct clr_metadata *m, enum clr_table table, uint32_t rid,
			   unsigned column)
{
	return clr_tables_cell(&m->tables, table, rid, column);
}

uint32_t clr_metadata_token(const struct clr_metadata *m, enum clr_table table, uint32_t rid,
			    unsigned column)
{
	return clr_tables_token(&m->tables, table, rid, column);
}

const char *clr_metadata_string(const struct clr_metadata *m, uint32_t index)
{
	return index < m->strings.len ? (const char *)m->strings.data + index : NULL;
}

const unsigned char *clr_metadata_blob(const struct clr_metadata *m, uint32_t index,
				       size_t *ret_len)
{
	struct reader r = reader_of(m->blobs.data, m->blobs.len);

	reader_seek(&r, index);
	uint32_t n = clr_signature_read_number(&r);
	const unsigned char *blob = reader_bytes(&r, n);

	if (blob)
		*ret_len = n;
	return blob;
}

const unsigned char *clr_metadata_guid(const struct clr_metadata *m, uint32_t index)
{
	return index && index <= m->guids.len / GUID_BYTES
		       ? m->guids.data + (size_t)(index - 1) * GUID_BYTES
		       : NULL;
}

const char *clr_metadata_assembly(const struct clr_metadata *m)
{
	if (!clr_metadata_rows(m, CLR_ASSEMBLY))
		return NULL;
	return clr_metadata_string(m, clr_metadata_cell(m, CLR_ASSEMBLY, 1, CLR_ASSEMBLY_NAME));
}

const unsigned char *clr_metadata_mvid(const struct clr_metadata *m)
{
	struct stream pdb = find_stream(m, "#Pdb");

	if (pdb.len >= PDB_ID_BYTES)
		return pdb.data;
	return clr_metadata_guid(m, clr_metadata_cell(m, CLR_MODULE, 1, CLR_MODULE_MVID));
}

int clr_metadata_assembly_ref(const struct clr_metadata *m, uint32_t rid, const char **ret_name)
{
	uint32_t index = clr_metadata_cell(m, CLR_ASSEMBLY_REF, rid, CLR_ASSEMBLY_REF_NAME);
	const char *name = index ? clr_metadata_string(m, index) : NULL;

	if (!name)
		return -ENOENT;
	*ret_name = name;
	return 0;
}

uint32_t clr_metadata_method_owner(const struct clr_metadata *m, uint32_t method_rid)
{
	uint32_t at = method_rid, ntypes = clr_metadata_rows(m, CLR_TYPE_DEF), low = 0,
		 high = ntypes;

	if (!method_rid || method_rid > clr_metadata_rows(m, CLR_METHOD_DEF))
		return 0;
	if (m->method_at)
		at = m->method_at[method_rid];
	while (at && low < high) { /* low: number of types whose methods begin at or before it */
		uint32_t middle = low + (high - low) / 2;

		if (clr_metadata_cell(m, CLR_TYPE_DEF, middle + 1, CLR_TYPE_DEF_METHODS) <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t clr_metadata_enclosing(const struct clr_metadata *m, uint32_t type_rid)
{
	uint32_t nnested = clr_metadata_rows(m, CLR_NESTED_CLASS), low = 1, high = nnested + 1;
	uint32_t visibility =
		clr_metadata_cell(m, CLR_TYPE_DEF, type_rid, CLR_TYPE_DEF_FLAGS) & TYPE_VISIBILITY;

	if (visibility < TYPE_NESTED_PUBLIC)
		return 0;
	if (m->enclosing)
		return m->enclosing[type_rid];
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		uint32_t nested =
			clr_metadata_cell(m, CLR_NESTED_CLASS, middle, CLR_NESTED_CLASS_NESTED);

		if (nested == type_rid)
			return clr_metadata_cell(m, CLR_NESTED_CLASS, middle,
						 CLR_NESTED_CLASS_ENCLOSING);
		if (nested < type_rid)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}
