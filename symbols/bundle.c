#include "symbols/bundle.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/reader.h"
#include "elf/budget.h"
#include "elf/elf_file.h"
#include "symbols/r2r_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define SCAN_BYTES ((size_t)1 << 20)

enum {
	BUNDLE_MAJOR = 6,
	BUNDLE_ASSEMBLY = 1, /* type of a file */
	BUNDLE_ENTRY_BYTES_MIN = 26,
};

/*
 * The host holds the offset of the bundle just before this signature: the SHA-256 of ".net core
 * bundle" and a newline.
 */
static const unsigned char signature[32] = {
	0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
	0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
	0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
};

/* An image with precompiled code. */
struct bundle_image {
	struct symbol_provider *symbols; /* NULL: it has none, or was not read yet */
	uint32_t first_piece;
	bool tried;
};

struct bundle_state {
	int fd;
	struct bundle_files files;
	struct bundle_image *images; /* beside files.files */
	uint32_t pieces;
};

struct bundle {
	struct symbol_provider provider;
	struct bundle_state *state; /* a pointer, because looking up a piece opens images */
};

/* Reads a length of 7 bits a byte, lowest first, and as many bytes of text. */
static const char *read_text(struct reader *r, uint32_t *ret_len)
{
	uint64_t len = 0;
	uint8_t byte;
	unsigned int shift = 0;

	do {
		byte = reader_u8(r);
		len |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && shift < 35);
	if (len > BUNDLE_PATH_MAX)
		r->failed = true;
	*ret_len = (uint32_t)len;
	return reader_bytes(r, r->failed ? 0 : (size_t)len);
}

static int compare_files(const void *x, const void *y)
{
	const struct bundle_file *a = x, *b = y;

	return (a->offset > b->offset) - (a->offset < b->offset);
}

static void read_files(struct reader *r, uint32_t n, uint64_t file_bytes,
		       struct bundle_files *files)
{
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		struct bundle_file f = {.offset = reader_u64(r)};

		f.bytes = reader_u64(r);
		uint64_t compressed_bytes = reader_u64(r);
		uint8_t type = reader_u8(r);

		f.path = read_text(r, &f.path_len);
		if (!r->failed && type == BUNDLE_ASSEMBLY && !compressed_bytes && f.bytes &&
		    f.offset <= file_bytes && f.bytes <= file_bytes - f.offset)
			files->files[files->nfiles++] = f;
	}
}

/*
 * Leaves out files that begin inside another one: otherwise one large file could be counted tens of
 * thousands of times.
 */
static size_t remove_overlaps(struct bundle_file *files, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kept || files[i].offset - files[kept - 1].offset >= files[kept - 1].bytes)
			files[kept++] = files[i];
	return kept;
}

int bundle_manifest(unsigned char *data, size_t len, uint64_t file_bytes,
		    struct bundle_files *ret_files, struct parse_error *err)
{
	struct reader r = reader_of(data, len);
	struct bundle_files files = {.manifest = data};
	uint32_t major = reader_u32(&r), id_len;

	(void)reader_u32(&r);
	uint32_t n = reader_u32(&r);

	(void)read_text(&r, &id_len);
	reader_skip(&r, 5 * sizeof(uint64_t)); /* offsets of two of the files, and flags */
	if (!r.failed && major != BUNDLE_MAJOR)
		return parse_fail(err, -ENOTSUP, "a .NET bundle of another version", 0);
	if (!r.failed && n > BUNDLE_FILES_MAX)
		return parse_fail(err, -E2BIG, "too many files in the .NET bundle", 0);
	if (r.failed || n > reader_left(&r) / BUNDLE_ENTRY_BYTES_MIN)
		return parse_fail(err, -EBADMSG, "the .NET bundle's manifest ends too early",
				  r.pos);
	files.files = calloc((size_t)n + 1, sizeof(*files.files));
	if (!files.files)
		return -ENOMEM;
	read_files(&r, n, file_bytes, &files);
	if (r.failed) {
		free(files.files);
		return parse_fail(err, -EBADMSG, "the .NET bundle's manifest ends too early",
				  r.fail_at);
	}
	if (files.nfiles)
		qsort(files.files, files.nfiles, sizeof(*files.files), compare_files);
	files.nfiles = remove_overlaps(files.files, files.nfiles);
	files.manifest_bytes = r.pos;
	*ret_files = files;
	return 0;
}

void bundle_files_free(struct bundle_files *files)
{
	elf_budget_give(ELF_BUDGET_SECTIONS, files->taken);
	free(files->files);
	free(files->manifest);
	*files = (struct bundle_files){0};
}

/* Finds the end of the ELF file's own bytes; a bundle follows them. */
static int host_end(int fd, uint64_t *ret_end)
{
	struct elf_file f;
	uint64_t end;
	int error = elf_file_open(&f, fd, NULL, 0, NULL);

	if (error)
		return error;
	/* The table of sections is last in most files. */
	end = f.section_headers_end;
	for (size_t i = 0; i < f.nsegments; i++)
		if (end < f.segments[i].file_off + f.segments[i].file_bytes)
			end = f.segments[i].file_off + f.segments[i].file_bytes;
	for (size_t i = 0; i < f.nsections; i++)
		if (f.sections[i].type != SHT_NOBITS &&
		    end < f.sections[i].file_off + f.sections[i].bytes)
			end = f.sections[i].file_off + f.sections[i].bytes;
	elf_file_close(&f);
	*ret_end = end;
	return 0;
}

/* Searches the host, [0, end), for the offset of the manifest. */
static int find_manifest(int fd, uint64_t end, uint64_t *ret_offset)
{
	AUTO_FREE unsigned char *data = malloc(SCAN_BYTES);
	size_t kept = sizeof(uint64_t) + sizeof(signature);

	if (!data)
		return -ENOMEM;
	/* A search is four times as fast as other work. */
	if (!elf_budget_work(end / 4))
		return -E2BIG;
	for (uint64_t at = 0; at + kept < end; at += SCAN_BYTES - kept) {
		size_t len = end - at < SCAN_BYTES ? (size_t)(end - at) : SCAN_BYTES;
		int error = file_pread_all(fd, data, len, at);
		const unsigned char *found =
			error ? NULL : memmem(data + 8, len - 8, signature, sizeof(signature));

		if (error)
			return error;
		if (found) {
			memcpy(ret_offset, found - 8, sizeof(*ret_offset));
			return 0;
		}
	}
	return -ENOENT;
}

/* Reads the bytes from the manifest on. The caller frees *ret_data. */
static int read_tail(int fd, unsigned char **ret_data, size_t *ret_len, uint64_t *ret_file_bytes)
{
	AUTO_FREE unsigned char *data = NULL;
	uint64_t end = 0, offset, bytes, len;
	struct stat st;
	int error = fstat(fd, &st) ? -errno : host_end(fd, &end);

	if (error)
		return error == -EBADMSG ? -ENOENT : error;
	bytes = (uint64_t)st.st_size;
	if (bytes <= end + sizeof(Elf64_Ehdr) || end > BUNDLE_HOST_BYTES_MAX)
		return -ENOENT;
	error = find_manifest(fd, end, &offset);
	if (error)
		return error;
	if (offset < end || offset >= bytes)
		return -ENOENT;
	len = bytes - offset < BUNDLE_MANIFEST_BYTES_MAX ? bytes - offset
							 : BUNDLE_MANIFEST_BYTES_MAX;
	data = malloc((size_t)len);
	if (!data)
		return -ENOMEM;
	error = file_pread_all(fd, data, (size_t)len, offset);
	if (error)
		return error;
	*ret_data = TAKE_PTR(data);
	*ret_len = (size_t)len;
	*ret_file_bytes = bytes;
	return 0;
}

/* Keeps the manifest without the bytes behind it, if memory is left. */
static int keep_manifest(struct bundle_files *files, struct parse_error *err)
{
	uint64_t bytes = files->manifest_bytes + files->nfiles * sizeof(*files->files);

	if (elf_budget_take(ELF_BUDGET_SECTIONS, bytes))
		return parse_fail(err, -E2BIG, "a .NET bundle needs more memory than is left", 0);
	files->taken = bytes;
	unsigned char *kept = malloc(files->manifest_bytes + 1);

	if (!kept)
		return -ENOMEM;
	memcpy(kept, files->manifest, files->manifest_bytes);
	for (size_t i = 0; i < files->nfiles; i++) {
		struct bundle_file *f = &files->files[i];

		f->path = (const char *)kept + ((const unsigned char *)f->path - files->manifest);
	}
	free(files->manifest);
	files->manifest = kept;
	return 0;
}

int bundle_read(int fd, struct bundle_files *ret_files, struct parse_error *err)
{
	AUTO_FREE unsigned char *data = NULL;
	uint64_t file_bytes;
	size_t len;
	int error = read_tail(fd, &data, &len, &file_bytes);

	if (!error)
		error = bundle_manifest(data, len, file_bytes, ret_files, err);
	if (error)
		return error;
	(void)TAKE_PTR(data);
	error = keep_manifest(ret_files, err);
	if (error)
		bundle_files_free(ret_files);
	return error;
}

int bundle_identity(int fd, uint64_t *ret_identity)
{
	AUTO_FREE unsigned char *data = NULL;
	uint64_t file_bytes;
	size_t len;
	int error = read_tail(fd, &data, &len, &file_bytes);

	if (!error)
		*ret_identity = hash_mix(hash_bytes(data, len), file_bytes);
	return error;
}

/* r2r_assembly_opener: opens another assembly of the bundle. */
static int open_beside(void *ctx, const char *name, struct pe_file *ret_file)
{
	const struct bundle_state *s = ctx;

	for (size_t i = 0; i < s->files.nfiles; i++) {
		const struct bundle_file *f = &s->files.files[i];

		if (f->path_len != strlen(name) || memcmp(f->path, name, f->path_len) != 0)
			continue;
		*ret_file = (struct pe_file){fcntl(s->fd, F_DUPFD_CLOEXEC, 0), f->offset, f->bytes};
		return ret_file->fd < 0 ? -ENOENT : 0;
	}
	return -ENOENT;
}

static int open_image(struct bundle_state *s, size_t i)
{
	struct pe_file file = {s->fd, s->files.files[i].offset, s->files.files[i].bytes};
	struct r2r_assembly_opener beside = {.open = open_beside, .ctx = s};
	struct bundle_image *image = &s->images[i];

	if (image->tried)
		return 0;
	image->tried = true;
	int error = r2r_image_open(&file, &beside, &image->symbols, NULL);

	if (error == -ENOMEM)
		image->tried = false;
	if (error)
		return error == -ENOMEM ? error : 0;
	image->first_piece = s->pieces;
	s->pieces += r2r_image_pieces(image->symbols);
	return 0;
}

/* The image that contains an offset, or NULL. */
static const struct bundle_image *find_image(const struct bundle *b, uint64_t file_off)
{
	struct bundle_state *s = b->state;
	size_t low = 0, high = s->files.nfiles;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->files.files[mid].offset <= file_off)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || file_off - s->files.files[low - 1].offset >= s->files.files[low - 1].bytes ||
	    open_image(s, low - 1))
		return NULL;
	return s->images[low - 1].symbols ? &s->images[low - 1] : NULL;
}

static int bundle_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
		       struct symbol *ret_symbol)
{
	const struct bundle_image *image = find_image((const struct bundle *)p, addr);
	int error =
		image ? symbol_provider_find(image->symbols, addr, time_ns, ret_symbol) : -ENOENT;

	if (!error)
		ret_symbol->piece += image->first_piece;
	return error;
}

static uint32_t bundle_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	const struct bundle_image *image = find_image((const struct bundle *)p, addr);
	uint32_t piece =
		image ? symbol_provider_piece(image->symbols, addr, time_ns) : SYMBOL_NO_PIECE;

	return piece == SYMBOL_NO_PIECE ? piece : piece + image->first_piece;
}

static void free_state(struct bundle_state *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->images && i < s->files.nfiles; i++)
		symbol_provider_free(s->images[i].symbols);
	free(s->images);
	bundle_files_free(&s->files);
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

static void bundle_free(struct symbol_provider *p)
{
	struct bundle *b = (struct bundle *)p;

	free_state(b->state);
	free(b);
}

static const struct symbol_provider_ops bundle_ops = {
	.name = "bundle",
	.find = bundle_find,
	.piece = bundle_piece,
	.free = bundle_free,
};

int bundle_open(int fd, struct symbol_provider **ret_symbols, struct parse_error *err)
{
	struct bundle_files files = {0};
	int error = bundle_read(fd, &files, err);

	if (error)
		return error;
	struct bundle *b = calloc(1, sizeof(*b));
	struct bundle_state *s = b ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		free(b);
		bundle_files_free(&files);
		return -ENOMEM;
	}
	*b = (struct bundle){.provider.ops = &bundle_ops, .state = s};
	s->files = files;
	s->images = calloc(files.nfiles + 1, sizeof(*s->images));
	s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (!s->images || s->fd < 0) {
		error = s->images ? -errno : -ENOMEM;
		bundle_free(&b->provider);
		return error;
	}
	*ret_symbols = &b->provider;
	return 0;
}

int bundle_each(struct symbol_provider *bundle,
		int (*image)(void *ctx, struct symbol_provider *symbols), void *ctx)
{
	struct bundle_state *s = ((struct bundle *)bundle)->state;
	int r = 0;

	for (size_t i = 0; i < s->files.nfiles && !r; i++) {
		r = open_image(s, i);
		if (!r && s->images[i].symbols)
			r = image(ctx, s->images[i].symbols);
	}
	return r;
}
