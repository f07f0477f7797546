#include "symbols/portable_pdb.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "symbols/clr_metadata.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#define PDB_ID_BYTES 20 /* a GUID, and a time */
#define CODEVIEW 2
#define EMBEDDED 17
#define PORTABLE_MINOR 0x504d /* "PM", the minor version of a CodeView entry that means a portable PDB */

struct portable_pdb {
	unsigned char *data;
	struct clr_metadata *metadata;
	struct intern names;
	struct hashmap documents; /* rid -> name */
};

/* Compressed numbers of ECMA-335, II.23.2. */
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

/* The sign is the lowest bit. */
static int32_t blob_signed(struct blob *b)
{
	const unsigned char *at = b->p;
	uint32_t x = blob_unsigned(b), bits = b->p - at == 1 ? 6 : b->p - at == 2 ? 13 : 28;

	if (!(x & 1))
		return (int32_t)(x >> 1);
	return (int32_t)(x >> 1) - (int32_t)(UINT32_C(1) << bits);
}

int portable_pdb_open(unsigned char *data, size_t len, struct portable_pdb **ret_pdb, struct parse_error *err)
{
	struct portable_pdb *pdb = calloc(1, sizeof(*pdb));
	size_t id_bytes;

	if (!pdb)
		return -ENOMEM;
	int r = clr_metadata_open(data, len, &pdb->metadata, err);

	if (!r && (!clr_metadata_stream(pdb->metadata, "#Pdb", &id_bytes) || id_bytes < PDB_ID_BYTES))
		r = parse_fail(err, -EBADMSG, "metadata, but no portable PDB", 0);
	if (r) {
		portable_pdb_free(pdb);
		return r;
	}
	pdb->data = data;
	*ret_pdb = pdb;
	return 0;
}

void portable_pdb_free(struct portable_pdb *pdb)
{
	if (!pdb)
		return;
	clr_metadata_free(pdb->metadata);
	free(pdb->data);
	intern_free(&pdb->names);
	hashmap_free(&pdb->documents);
	free(pdb);
}

/* Embedded: "MPDB", the size that it has unpacked, and the deflate stream. */
static int unpack(const unsigned char *packed, uint32_t bytes, struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *data = NULL;
	uint32_t len;

	if (bytes < 8 || memcmp(packed, "MPDB", 4) != 0)
		return -EBADMSG;
	memcpy(&len, packed + 4, 4);
	if (len > PORTABLE_PDB_BYTES_MAX)
		return -E2BIG;
	data = malloc((size_t)len + 1);
	if (!data)
		return -ENOMEM;
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)(packed + 8), .avail_in = bytes - 8, .next_out = data,
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

/* The data of a debug directory's entry; the caller frees. */
static int read_entry(const struct pe *pe, const struct pe_debug *entry, unsigned char **ret_data)
{
	uint64_t at = entry->file_off;

	if (entry->bytes > PORTABLE_PDB_BYTES_MAX)
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

static int read_file(int fd, struct portable_pdb **ret_pdb)
{
	AUTO_FREE unsigned char *data = NULL;
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EBADMSG;
	if ((uint64_t)st.st_size > PORTABLE_PDB_BYTES_MAX)
		return -E2BIG;
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

/* The last part of a path of Linux or of Windows. */
static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *back = strrchr(slash ? slash : path, '\\');

	return back ? back + 1 : slash ? slash + 1 : path;
}

/* What a CodeView entry says: "RSDS", a GUID, a count, the path. What is read is followed by a NUL. */
static int read_id(const unsigned char *codeview, uint32_t bytes, struct portable_pdb_id *ret_id)
{
	if (bytes <= 24 || memcmp(codeview, "RSDS", 4) != 0)
		return -EBADMSG;
	const char *name = base_of((const char *)codeview + 24);

	if (!*name || strlen(name) > PORTABLE_PDB_NAME_MAX || !strcmp(name, "..") || !strcmp(name, "."))
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
		r = read_entry(pe, &entries[i], &data);
		return r ? r : read_id(data, entries[i].bytes, ret_id);
	}
	return r ? r : -ENOENT;
}

int portable_pdb_of_file(int fd, const unsigned char guid[16], struct portable_pdb **ret_pdb)
{
	struct portable_pdb *pdb;
	int r = read_file(fd, &pdb);

	if (r)
		return r;
	/* Some rewrite the time that is a part of the id; the GUID says which build it is. */
	if (memcmp(clr_metadata_mvid(pdb->metadata), guid, 16) != 0) {
		portable_pdb_free(pdb);
		return -ENOENT;
	}
	*ret_pdb = pdb;
	return 0;
}

/* A file that a CodeView entry names. */
static int open_named(const unsigned char *codeview, uint32_t bytes, int (*open_beside)(void *ctx, const char *name, int *ret_fd),
		      void *ctx, struct portable_pdb **ret_pdb)
{
	struct portable_pdb_id id;
	AUTO_CLOSE int fd = -1;
	int r = read_id(codeview, bytes, &id);

	if (!r)
		r = open_beside(ctx, id.name, &fd);
	return r ? r : portable_pdb_of_file(fd, id.guid, ret_pdb);
}

int portable_pdb_of_image(const struct pe *pe, int (*open_beside)(void *ctx, const char *name, int *ret_fd), void *ctx,
			  struct portable_pdb **ret_pdb)
{
	struct pe_debug entries[PE_DEBUG_ENTRIES_MAX];
	size_t n = 0;
	int r = pe_debug(pe, entries, &n), found = -ENOENT;

	for (size_t i = 0; i < n && !r && found; i++) {
		bool embedded = entries[i].type == EMBEDDED;
		AUTO_FREE unsigned char *data = NULL;

		if (!embedded && (entries[i].type != CODEVIEW || entries[i].minor != PORTABLE_MINOR))
			continue;
		found = read_entry(pe, &entries[i], &data);
		if (!found)
			found = embedded ? unpack(data, entries[i].bytes, ret_pdb)
					 : open_named(data, entries[i].bytes, open_beside, ctx, ret_pdb);
		r = found == -ENOMEM ? found : 0;
	}
	return r ? r : found;
}

/* Lines */

/* The last part of a document's name, which is a separator and parts that lie elsewhere. */
static int document_name(struct portable_pdb *pdb, uint32_t rid, const char **ret_name)
{
	const uint32_t *known = hashmap_get(&pdb->documents, rid);
	char name[PORTABLE_PDB_NAME_MAX + 1] = "";
	size_t len, part_len;
	uint32_t text, index = 0;

	if (known) {
		*ret_name = intern_text(&pdb->names, *known);
		return 0;
	}
	const unsigned char *parts = clr_metadata_blob(pdb->metadata, clr_metadata_cell(pdb->metadata, CLR_DOCUMENT, rid, 0), &len);

	if (!parts || !len)
		return -ENOENT;
	struct blob b = {parts + 1, parts + len, false};

	while (b.p < b.end)
		index = blob_unsigned(&b);
	const unsigned char *last = b.bad ? NULL : clr_metadata_blob(pdb->metadata, index, &part_len);

	if (!last || part_len > PORTABLE_PDB_NAME_MAX)
		return -ENOENT;
	memcpy(name, last, part_len);
	name[part_len] = 0;
	int r = intern_str(&pdb->names, base_of(name), &text);

	if (!r)
		r = hashmap_put(&pdb->documents, rid, text);
	if (!r)
		*ret_name = intern_text(&pdb->names, text);
	return r;
}

/* A point while they are read: each is told by what it differs from the one before. */
struct point {
	uint32_t il, document;
	int64_t line; /* 0: no line was there yet */
	bool hidden;
};

/* The next point. False: there are no more. */
static bool next_point(struct blob *b, bool first, struct point *p)
{
	uint32_t delta = 0;

	/* A step of 0 that is not the first means another document. */
	while (b->p < b->end) {
		delta = blob_unsigned(b);
		if (delta || first)
			break;
		p->document = blob_unsigned(b);
	}
	if (b->bad || (!delta && !first))
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

int portable_pdb_line(struct portable_pdb *pdb, uint32_t method_rid, uint32_t il_offset, const char **ret_file, uint32_t *ret_line)
{
	struct point p = {.document = clr_metadata_cell(pdb->metadata, CLR_METHOD_DEBUG_INFORMATION, method_rid, 0)}, best = {0};
	uint32_t index = clr_metadata_cell(pdb->metadata, CLR_METHOD_DEBUG_INFORMATION, method_rid, 1);
	size_t len;
	const unsigned char *data = index ? clr_metadata_blob(pdb->metadata, index, &len) : NULL;
	bool found = false;

	if (!data)
		return -ENOENT;
	struct blob b = {data, data + len, false};

	blob_unsigned(&b); /* signature of the locals */
	if (!p.document)
		p.document = blob_unsigned(&b);
	for (int i = 0; i < PORTABLE_PDB_POINTS_MAX && b.p < b.end && next_point(&b, !i, &p) && p.il <= il_offset; i++) {
		if (p.hidden)
			continue;
		best = p;
		found = true;
	}
	if (!found || best.line <= 0 || best.line > INT32_MAX)
		return -ENOENT;
	*ret_line = (uint32_t)best.line;
	return document_name(pdb, best.document, ret_file);
}
