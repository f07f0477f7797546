#include "dotnet/portable_pdb.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "container/holes.h"
#include "dotnet/metadata.h"
#include "dotnet/pdb_budget.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define PDB_ID_BYTES 20 /* a GUID and a time stamp */
#define CODEVIEW 2
#define CODEVIEW_BYTES_MAX ((uint32_t)64 << 10)
#define EMBEDDED 17
/* "PM": minor version of a CodeView entry that names a portable PDB. */
#define PORTABLE_MINOR 0x504d

#define NO_NAME UINT32_MAX

/* A visible sequence point of a method. */
struct row {
	uint32_t il, document;
	uint32_t line; /* 0: out of range */
};

/* Sequence points of a method: a range of rows, ordered by il. */
struct method {
	size_t first, n;
};

struct portable_pdb {
	unsigned char *data;
	size_t bytes;
	struct clr_metadata *metadata;
	struct intern names;
	struct hashmap documents; /* rid -> name, or NO_NAME */
	VEC(struct row) rows;
	VEC(struct method) methods;
	struct hashmap by_rid;     /* index into methods */
	uint32_t records;          /* sequence points and document changes read so far */
	struct pdb_budget *budget; /* NULL: no limit */
	uint64_t taken;            /* bytes taken from the budget */
};

/* Reader of compressed numbers (ECMA-335, II.23.2). */
struct blob {
	const unsigned char *p, *end;
	bool bad;
};

static uint32_t blob_unsigned(struct blob *b)
{
	size_t left = (size_t)(b->end - b->p);
	unsigned char first = left ? *b->p : 0xff;
	size_t n = !(first & 0x80) ? 1 : !(first & 0x40) ? 2 : !(first & 0x20) ? 4 : 0;
	uint32_t x;

	if (!n || n > left) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	x = n == 1 ? first : n == 2 ? first & 0x3fu : first & 0x1fu;
	for (size_t i = 1; i < n; i++)
		x = x << 8 | b->p[i];
	b->p += n;
	return x;
}

/* The lowest bit holds the sign. */
static int32_t blob_signed(struct blob *b)
{
	const unsigned char *at = b->p;
	uint32_t x = blob_unsigned(b), bits = b->p - at == 1 ? 6 : b->p - at == 2 ? 13 : 28;

	if (!(x & 1))
		return (int32_t)(x >> 1);
	return (int32_t)(x >> 1) - (int32_t)(UINT32_C(1) << bits);
}

int portable_pdb_open(unsigned char *data, size_t len, struct portable_pdb **ret_pdb,
		      struct parse_error *err)
{
	struct portable_pdb *pdb = calloc(1, sizeof(*pdb));
	size_t id_bytes;

	if (!pdb)
		return -ENOMEM;
	int r = clr_metadata_open(data, len, &pdb->metadata, err);

	if (!r &&
	    (!clr_metadata_stream(pdb->metadata, "#Pdb", &id_bytes) || id_bytes < PDB_ID_BYTES))
		r = parse_fail(err, -EBADMSG, "metadata, but not a portable PDB", 0);
	if (r) {
		portable_pdb_free(pdb);
		return r;
	}
	pdb->data = data;
	pdb->bytes = len;
	*ret_pdb = pdb;
	return 0;
}

bool portable_pdb_charge_budget(struct portable_pdb *pdb, struct pdb_budget *budget)
{
	if (!pdb_budget_take(budget, pdb->bytes))
		return false;
	pdb->budget = budget;
	pdb->taken = pdb->bytes;
	return true;
}

void portable_pdb_free(struct portable_pdb *pdb)
{
	if (!pdb)
		return;
	pdb_budget_release(pdb->budget, pdb->taken);
	clr_metadata_free(pdb->metadata);
	free(pdb->data);
	intern_free(&pdb->names);
	hashmap_free(&pdb->documents);
	hashmap_free(&pdb->by_rid);
	vec_free(&pdb->rows);
	vec_free(&pdb->methods);
	free(pdb);
}

static int inflate_pdb(const unsigned char *packed, uint32_t bytes, uint32_t len,
		       struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *data = malloc((size_t)len + 1);

	if (!data)
		return -ENOMEM;
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)packed,
		      .avail_in = bytes,
		      .next_out = data,
		      .avail_out = len};

	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	int status = inflate(&z, Z_FINISH);

	inflateEnd(&z);
	if (status != Z_STREAM_END || z.avail_out)
		return -EBADMSG;
	int r = portable_pdb_open(data, len, ret_pdb, NULL);

	if (!r)
		TAKE_PTR(data);
	return r;
}

/* Opens an embedded PDB: "MPDB", its unpacked size, and a deflate stream. */
static int unpack(const unsigned char *packed, uint32_t bytes, struct pdb_budget *budget,
		  struct portable_pdb **ret_pdb)
{
	uint32_t len;

	if (bytes < 8 || memcmp(packed, "MPDB", 4) != 0)
		return -EBADMSG;
	memcpy(&len, packed + 4, 4);
	if (len > PORTABLE_PDB_BYTES_MAX || !pdb_budget_take_unpacked(budget, len))
		return -E2BIG;
	int r = inflate_pdb(packed + 8, bytes - 8, len, ret_pdb);

	pdb_budget_release(budget, len);
	return r;
}

/* Reads the data of a debug directory entry; the caller frees it. */
static int read_entry(const struct pe *pe, const struct pe_debug *entry, uint32_t max,
		      unsigned char **ret_data)
{
	uint64_t at = entry->file_off;

	if (entry->bytes > max)
		return -E2BIG;
	if (at > pe->file.bytes || entry->bytes > pe->file.bytes - at)
		return -EBADMSG;
	AUTO_FREE unsigned char *data = malloc((size_t)entry->bytes + 1);

	if (!data)
		return -ENOMEM;
	int r = file_pread_all(pe->file.fd, data, entry->bytes, pe->file.offset + at);

	if (r)
		return r == -ENODATA ? -EBADMSG : r;
	data[entry->bytes] = 0;
	*ret_data = TAKE_PTR(data);
	return 0;
}

static int read_file(int fd, struct pdb_budget *budget, struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *data = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > PORTABLE_PDB_BYTES_MAX)
		return -E2BIG;
	if (holes_is_sparse(fd))
		return -EBADMSG;
	if (!pdb_budget_take(budget, (uint64_t)st.st_size))
		return -E2BIG;
	pdb_budget_release(budget, (uint64_t)st.st_size); /* the caller charges what it keeps */
	data = malloc((size_t)st.st_size + 1);
	if (!data)
		return -ENOMEM;
	int r = file_pread_all(fd, data, (size_t)st.st_size, 0);

	if (!r)
		r = portable_pdb_open(data, (size_t)st.st_size, ret_pdb, NULL);
	if (!r)
		TAKE_PTR(data);
	return r == -ENODATA ? -EBADMSG : r;
}

/* Last part of a path, for Linux and Windows paths. */
static const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/'), *back = strrchr(slash ? slash : path, '\\');

	return back ? back + 1 : slash ? slash + 1 : path;
}

/* Reads a CodeView entry: "RSDS", a GUID, an age, and the path. A NUL follows the data. */
static int parse_codeview(const unsigned char *codeview, uint32_t bytes,
			  struct portable_pdb_id *ret_id)
{
	if (bytes <= 24 || memcmp(codeview, "RSDS", 4) != 0)
		return -EBADMSG;
	const char *name = path_base((const char *)codeview + 24);

	if (!*name || strlen(name) > PORTABLE_PDB_NAME_MAX || !strcmp(name, "..") ||
	    !strcmp(name, "."))
		return -EBADMSG;
	memcpy(ret_id->guid, codeview + 4, sizeof(ret_id->guid));
	strcpy(ret_id->name, name);
	return 0;
}

int portable_pdb_id(const struct pe *pe, struct portable_pdb_id *ret_id)
{
	struct pe_debug entries[PE_DEBUG_ENTRIES_MAX];
	size_t n = 0;
	int r = pe_debug(pe, entries, &n);

	for (size_t i = 0; i < n && !r; i++) {
		AUTO_FREE unsigned char *data = NULL;

		if (entries[i].type != CODEVIEW)
			continue;
		ret_id->portable = entries[i].minor == PORTABLE_MINOR;
		r = read_entry(pe, &entries[i], CODEVIEW_BYTES_MAX, &data);
		return r ? r : parse_codeview(data, entries[i].bytes, ret_id);
	}
	return r ? r : -ENOENT;
}

int portable_pdb_open_file(int fd, const unsigned char guid[16], struct pdb_budget *budget,
			   struct portable_pdb **ret_pdb)
{
	struct portable_pdb *pdb;
	int r = read_file(fd, budget, &pdb);

	if (r)
		return r;
	/* Compare only the GUID. Some tools rewrite the time stamp in the id. */
	if (memcmp(clr_metadata_mvid(pdb->metadata), guid, 16) != 0) {
		portable_pdb_free(pdb);
		return -ENOENT;
	}
	*ret_pdb = pdb;
	return 0;
}

/* The parameters of portable_pdb_open_image */
struct image_search {
	const struct pe *pe;
	int (*open_beside)(void *ctx, const char *name, int *ret_fd);
	void *ctx;
	struct pdb_budget *budget;
};

/* Opens the file that a CodeView entry names. */
static int open_named(const struct image_search *s, const struct pe_debug *entry,
		      struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *codeview = NULL;
	struct portable_pdb_id id;
	AUTO_CLOSE int fd = -1;
	int r = read_entry(s->pe, entry, CODEVIEW_BYTES_MAX, &codeview);

	if (!r)
		r = parse_codeview(codeview, entry->bytes, &id);
	if (!r)
		r = s->open_beside(s->ctx, id.name, &fd);
	return r ? r : portable_pdb_open_file(fd, id.guid, s->budget, ret_pdb);
}

static int open_embedded(const struct image_search *s, const struct pe_debug *entry,
			 struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *packed = NULL;

	/* A hole of the image takes its whole size in memory. */
	if (!pdb_budget_take(s->budget, entry->bytes))
		return -E2BIG;
	int r = read_entry(s->pe, entry, PORTABLE_PDB_BYTES_MAX, &packed);

	if (!r)
		r = unpack(packed, entry->bytes, s->budget, ret_pdb);
	pdb_budget_release(s->budget, entry->bytes);
	return r;
}

int portable_pdb_open_image(const struct pe *pe,
			    int (*open_beside)(void *ctx, const char *name, int *ret_fd), void *ctx,
			    struct pdb_budget *budget, struct portable_pdb **ret_pdb)
{
	const struct image_search s = {pe, open_beside, ctx, budget};
	struct pe_debug entries[PE_DEBUG_ENTRIES_MAX];
	bool tried[2] = {false, false};
	size_t n = 0;
	int r = pe_debug(pe, entries, &n), found = -ENOENT;

	if (r)
		return r == -E2BIG ? -EBADMSG : r; /* the PDB is not too large */
	for (size_t i = 0; i < n && found && found != -E2BIG && found != -ENOMEM; i++) {
		bool embedded = entries[i].type == EMBEDDED;

		if (tried[embedded] || (!embedded && (entries[i].type != CODEVIEW ||
						      entries[i].minor != PORTABLE_MINOR)))
			continue;
		tried[embedded] = true;
		found = embedded ? open_embedded(&s, &entries[i], ret_pdb)
				 : open_named(&s, &entries[i], ret_pdb);
	}
	return found;
}

/*
 * Reads the last part of a document's name. Its blob holds a separator and indexes of the parts.
 * *ret_text: NO_NAME if there is no name.
 */
static int read_document_name(struct portable_pdb *pdb, uint32_t rid, uint32_t *ret_text)
{
	char name[PORTABLE_PDB_NAME_MAX + 1] = "";
	size_t len, part_len;
	uint32_t index = 0;
	const unsigned char *parts = clr_metadata_blob(
		pdb->metadata, clr_metadata_cell(pdb->metadata, CLR_DOCUMENT, rid, 0), &len);

	*ret_text = NO_NAME;
	if (!parts || !len || len > PORTABLE_PDB_PARTS_MAX)
		return 0;
	struct blob b = {parts + 1, parts + len, false};

	while (b.p < b.end)
		index = blob_unsigned(&b);
	const unsigned char *last =
		b.bad ? NULL : clr_metadata_blob(pdb->metadata, index, &part_len);

	if (!last || part_len > PORTABLE_PDB_NAME_MAX)
		return 0;
	memcpy(name, last, part_len);
	name[part_len] = 0;
	return intern_str(&pdb->names, path_base(name), ret_text);
}

static int document_name(struct portable_pdb *pdb, uint32_t rid, const char **ret_name)
{
	const uint32_t *known = hashmap_get(&pdb->documents, rid);
	uint32_t text = known ? *known : NO_NAME;
	int r = known ? 0 : read_document_name(pdb, rid, &text);

	if (!r && !known)
		r = hashmap_put(&pdb->documents, rid, text);
	if (r || text == NO_NAME)
		return r ? r : -ENOENT;
	*ret_name = intern_text(&pdb->names, text);
	return 0;
}

/* The current sequence point while decoding. The format stores differences. */
struct point {
	uint32_t il, document;
	int64_t line; /* 0: no line read yet */
	bool hidden;
};

/*
 * Decodes the next sequence point. *left: records that may still be read. False: no more points, or
 * *left has reached 0.
 */
static bool next_point(struct blob *b, bool first, struct point *p, uint32_t *left)
{
	uint32_t delta = 0;

	/* A zero step after the first point announces another document. */
	while (b->p < b->end) {
		if (!--*left)
			return false;
		delta = blob_unsigned(b);
		if (delta || first)
			break;
		p->document = blob_unsigned(b);
	}
	if (b->bad || (!delta && !first) || delta > UINT32_MAX - p->il)
		return false;
	p->il += delta;
	uint32_t lines = blob_unsigned(b);
	int32_t columns = lines ? blob_signed(b) : (int32_t)blob_unsigned(b);

	p->hidden = !lines && !columns;
	if (p->hidden || b->bad)
		return !b->bad;
	if (!p->line) {
		p->line = blob_unsigned(b);
		blob_unsigned(b);
	} else {
		p->line += blob_signed(b);
		blob_signed(b);
	}
	return !b->bad;
}

/* Reads the sequence points of a method. 0 or -ENOMEM. */
static int read_points(struct portable_pdb *pdb, uint32_t rid, const unsigned char *data,
		       size_t len, struct method *method)
{
	struct point p = {
		.document = clr_metadata_cell(pdb->metadata, CLR_METHOD_DEBUG_INFORMATION, rid, 0)};
	uint32_t unread = PORTABLE_PDB_RECORDS_MAX - pdb->records,
		 most = unread < PORTABLE_PDB_POINTS_MAX ? unread : PORTABLE_PDB_POINTS_MAX;
	uint32_t left = most + 1;
	struct blob b = {data, data + len, false};

	method->first = pdb->rows.len;
	blob_unsigned(&b); /* signature of the local variables */
	if (!p.document)
		p.document = blob_unsigned(&b);
	for (bool first = true; b.p < b.end && next_point(&b, first, &p, &left); first = false) {
		struct row row = {p.il, p.document,
				  p.line > 0 && p.line <= INT32_MAX ? (uint32_t)p.line : 0};

		if (!p.hidden && vec_push(&pdb->rows, row))
			return -ENOMEM;
	}
	uint64_t bytes = (pdb->rows.len - method->first) * sizeof(*pdb->rows.v);

	/* Drop a method that was not read to its end: its last line would cover all the rest. */
	if (!left || !pdb_budget_take(pdb->budget, bytes))
		pdb->rows.len = method->first;
	else
		pdb->taken += bytes;
	pdb->records += left ? most + 1 - left : most;
	method->n = pdb->rows.len - method->first;
	return 0;
}

/* Finds the sequence points of a method; reads them on the first lookup. 0, -ENOENT, -ENOMEM. */
static int method_points(struct portable_pdb *pdb, uint32_t rid, const struct method **ret_method)
{
	const uint32_t *known = hashmap_get(&pdb->by_rid, rid);
	uint32_t index =
		known ? 0 : clr_metadata_cell(pdb->metadata, CLR_METHOD_DEBUG_INFORMATION, rid, 1);
	struct method method;
	size_t len;
	const unsigned char *data = index ? clr_metadata_blob(pdb->metadata, index, &len) : NULL;

	if (known) {
		*ret_method = &pdb->methods.v[*known];
		return 0;
	}
	if (!data)
		return -ENOENT;
	if (vec_reserve(&pdb->methods, 1) || read_points(pdb, rid, data, len, &method) ||
	    hashmap_put(&pdb->by_rid, rid, (uint32_t)pdb->methods.len))
		return -ENOMEM;
	pdb->methods.v[pdb->methods.len] = method;
	*ret_method = &pdb->methods.v[pdb->methods.len++];
	return 0;
}

int portable_pdb_line(struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset,
		      const char **ret_file, uint32_t *ret_line)
{
	const struct method *method;
	int r = method_points(pdb, method_rid, &method);

	if (r)
		return r;
	size_t low = 0, high = method->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pdb->rows.v[method->first + mid].il <= il_offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return -ENOENT;
	const struct row *row = &pdb->rows.v[method->first + low - 1];

	if (!row->line)
		return -ENOENT;
	*ret_line = row->line;
	return document_name(pdb, row->document, ret_file);
}
