#include "dotnet/pe.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/reader.h"
#include "container/holes.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
	PE_DOS_BYTES = 64,
	PE_DOS_HEADER_AT = 0x3c,
	PE_FILE_HEADER_BYTES = 24, /* with its signature */
	PE_OPTIONAL_BYTES_MAX = 4096,
	PE_SECTION_BYTES = 40,
	PE_MAGIC_32 = 0x10b,
	PE_MAGIC_64 = 0x20b,
	PE_DEBUG_ENTRY_BYTES = 28,
	PE_EXPORT_BYTES = 40,
	PE_CLI_BYTES = 72,
	PE_SMALL_BYTES = 64 << 10, /* read without a look at the memory that is left */
};

static int read_at(const struct pe_file *file, uint64_t at, void *data, size_t len)
{
	if (at > file->bytes || len > file->bytes - at)
		return -EBADMSG;
	int r = file_pread_all(file->fd, data, len, file->offset + at);

	return r == -ENODATA ? -EBADMSG : r;
}

/*
 * In images with native code the .NET runtime XORs the machine with a number for the operating
 * system (pedecoder.h).
 */
static uint16_t plain_machine(uint16_t machine)
{
	static const uint16_t systems[] = {0,
					   0x7b79 /* Linux */,
					   0x4644 /* Apple */,
					   0xadc4 /* FreeBSD */,
					   0x1993 /* NetBSD */,
					   0x1992 /* SunOS */};

	for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++) {
		uint16_t plain = machine ^ systems[i];

		if (plain == PE_X64 || plain == PE_ARM64)
			return plain;
	}
	return machine;
}

static void read_directories(struct pe *pe, struct reader *r)
{
	uint16_t magic = reader_u16(r);

	if (magic != PE_MAGIC_32 && magic != PE_MAGIC_64)
		return;
	reader_seek(r, magic == PE_MAGIC_64 ? 108 : 92);
	uint32_t n = reader_u32(r);

	for (uint32_t i = 0; i < n && i < PE_DIRECTORIES && reader_left(r) >= 8; i++) {
		uint32_t rva = reader_u32(r);

		pe->directories[i] = (struct pe_range){rva, reader_u32(r)};
	}
}

static int read_sections(struct pe *pe, uint64_t at, size_t n, struct parse_error *err)
{
	unsigned char data[PE_SECTIONS_MAX * PE_SECTION_BYTES];

	if (n > PE_SECTIONS_MAX)
		return parse_fail(err, -E2BIG, "too many PE sections", at);
	int error = read_at(&pe->file, at, data, n * PE_SECTION_BYTES);

	if (error)
		return parse_fail(err, error, "the PE section table cannot be read", at);
	struct reader r = reader_of(data, n * PE_SECTION_BYTES);

	for (size_t i = 0; i < n; i++) {
		reader_seek(&r, i * PE_SECTION_BYTES + 8);
		uint32_t memory = reader_u32(&r), rva = reader_u32(&r), bytes = reader_u32(&r),
			 file_off = reader_u32(&r);

		if (memory && memory < bytes)
			bytes = memory;
		if (file_off > pe->file.bytes)
			continue;
		if (bytes > pe->file.bytes - file_off)
			bytes = (uint32_t)(pe->file.bytes - file_off);
		if (bytes > UINT32_MAX - rva)
			bytes = UINT32_MAX - rva;
		pe->sections[pe->nsections++] = (struct pe_section){rva, file_off, bytes};
	}
	return 0;
}

int pe_open(const struct pe_file *file, struct pe *ret_pe, struct parse_error *err)
{
	unsigned char dos[PE_DOS_BYTES], head[PE_FILE_HEADER_BYTES],
		optional[PE_OPTIONAL_BYTES_MAX];
	struct pe pe = {.file = *file};
	int error = read_at(file, 0, dos, sizeof(dos));

	if (error || dos[0] != 'M' || dos[1] != 'Z')
		return parse_fail(err, error ? error : -EBADMSG, "not a PE image", 0);
	struct reader r = reader_of(dos, sizeof(dos));

	reader_seek(&r, PE_DOS_HEADER_AT);
	uint64_t at = reader_u32(&r);

	error = read_at(file, at, head, sizeof(head));
	if (error || memcmp(head, "PE\0", 4) != 0)
		return parse_fail(err, error ? error : -EBADMSG, "not a PE image", at);
	r = reader_of(head, sizeof(head));
	reader_seek(&r, 4);
	pe.machine = plain_machine(reader_u16(&r));
	size_t nsections = reader_u16(&r);

	reader_seek(&r, 20);
	size_t optional_bytes = reader_u16(&r), used = optional_bytes;

	if (used > sizeof(optional))
		used = sizeof(optional);
	at += sizeof(head);
	error = read_at(file, at, optional, used);
	if (error)
		return parse_fail(err, error, "the PE header ends too early", at);
	r = reader_of(optional, used);
	read_directories(&pe, &r);
	error = read_sections(&pe, at + optional_bytes, nsections, err);
	if (!error)
		*ret_pe = pe;
	return error;
}

static const struct pe_section *find_section(const struct pe *pe, uint32_t rva)
{
	for (size_t i = 0; i < pe->nsections; i++)
		if (rva - pe->sections[i].rva < pe->sections[i].bytes && rva >= pe->sections[i].rva)
			return &pe->sections[i];
	return NULL;
}

struct pe_range pe_range_at(const struct pe *pe, uint32_t rva, uint32_t bytes)
{
	const struct pe_section *s = find_section(pe, rva);
	uint32_t left = s ? s->bytes - (rva - s->rva) : 0;

	return (struct pe_range){rva, bytes < left ? bytes : left};
}

bool pe_has_memory(uint32_t bytes)
{
	static _Atomic uint64_t first_left;
	uint64_t first = atomic_load(&first_left), taken = memory_taken();

	if (!first) {
		first = memory_left();
		first = first < UINT64_MAX - taken ? first + taken : UINT64_MAX; /* unknown */
		atomic_store(&first_left, first);
	}
	return taken <= first / 2 && bytes <= (first - taken) / 8;
}

int pe_read(const struct pe *pe, struct pe_range range, uint32_t max, unsigned char **ret_data,
	    struct parse_error *err)
{
	AUTO_FREE unsigned char *data = NULL;
	uint64_t at = 0;

	if (range.bytes > max || range.bytes > PE_READ_BYTES_MAX)
		return parse_fail(err, -E2BIG, "a part of the PE image is too large", range.rva);
	if (range.bytes && (pe_range_at(pe, range.rva, range.bytes).bytes != range.bytes ||
			    pe_file_off(pe, range.rva, &at)))
		return parse_fail(err, -EBADMSG, "a part of the PE image lies outside its sections",
				  range.rva);
	if (range.bytes > PE_SMALL_BYTES && !pe_has_memory(range.bytes))
		return parse_fail(err, -E2BIG,
				  "a part of the PE image needs more memory than is left",
				  range.rva);
	if (range.bytes > PE_SMALL_BYTES && holes_is_sparse(pe->file.fd))
		return parse_fail(err, -EBADMSG, "the file has holes", at);
	data = malloc(range.bytes ? range.bytes : 1);
	if (!data)
		return -ENOMEM;
	int error = read_at(&pe->file, at, data, range.bytes);

	if (error)
		return parse_fail(err, error, "a part of the PE image cannot be read", at);
	*ret_data = TAKE_PTR(data);
	return 0;
}

int pe_file_off(const struct pe *pe, uint32_t rva, uint64_t *ret_file_off)
{
	const struct pe_section *s = find_section(pe, rva);

	if (!s)
		return -ENOENT;
	*ret_file_off = (uint64_t)s->file_off + (rva - s->rva);
	return 0;
}

int pe_rva(const struct pe *pe, uint64_t file_off, uint32_t *ret_rva)
{
	for (size_t i = 0; i < pe->nsections; i++) {
		const struct pe_section *s = &pe->sections[i];

		if (file_off >= s->file_off && file_off - s->file_off < s->bytes) {
			*ret_rva = s->rva + (uint32_t)(file_off - s->file_off);
			return 0;
		}
	}
	return -ENOENT;
}

int pe_cli(const struct pe *pe, struct pe_range range, struct pe_cli *ret_cli,
	   struct parse_error *err)
{
	AUTO_FREE unsigned char *data = NULL;

	if (!range.bytes)
		return -ENOENT;
	if (range.bytes < PE_CLI_BYTES)
		return parse_fail(err, -EBADMSG, "the CLI header is too short", range.rva);
	range.bytes = PE_CLI_BYTES;
	int error = pe_read(pe, range, PE_CLI_BYTES, &data, err);

	if (error)
		return error;
	struct reader r = reader_of(data, PE_CLI_BYTES);

	reader_seek(&r, 8);
	ret_cli->metadata.rva = reader_u32(&r);
	ret_cli->metadata.bytes = reader_u32(&r);
	ret_cli->flags = reader_u32(&r);
	reader_seek(&r, 64);
	ret_cli->native_header.rva = reader_u32(&r);
	ret_cli->native_header.bytes = reader_u32(&r);
	return 0;
}

/* Whether the text at rva equals name. */
static bool is_name(const struct pe *pe, uint32_t rva, const char *name, size_t len)
{
	struct pe_range range = pe_range_at(pe, rva, (uint32_t)len + 1);
	unsigned char text[PE_EXPORT_NAME_MAX];
	uint64_t at;

	return range.bytes == len + 1 && !pe_file_off(pe, rva, &at) &&
	       !read_at(&pe->file, at, text, len + 1) && !memcmp(text, name, len + 1);
}

/* Reads a 16-bit or 32-bit element of an array in the image. */
static int read_element(const struct pe *pe, uint32_t array, uint32_t index, uint32_t width,
			uint32_t *ret_value)
{
	unsigned char bytes[4] = {0};
	uint64_t at;

	if ((uint64_t)array + (uint64_t)index * width > UINT32_MAX ||
	    pe_file_off(pe, array + index * width, &at))
		return -EBADMSG;
	int r = read_at(&pe->file, at, bytes, width);

	if (!r)
		*ret_value = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
			     (uint32_t)bytes[3] << 24;
	return r;
}

int pe_export(const struct pe *pe, const char *name, uint32_t *ret_rva)
{
	AUTO_FREE unsigned char *data = NULL;
	struct pe_range range = pe->directories[PE_EXPORTS];
	size_t len = strlen(name);
	uint32_t at, index;

	if (!range.bytes || len >= PE_EXPORT_NAME_MAX)
		return -ENOENT;
	int error = pe_read(pe, (struct pe_range){range.rva, PE_EXPORT_BYTES}, PE_EXPORT_BYTES,
			    &data, NULL);

	if (error)
		return error;
	struct reader r = reader_of(data, PE_EXPORT_BYTES);

	reader_seek(&r, 24);
	uint32_t names = reader_u32(&r), functions = reader_u32(&r), name_array = reader_u32(&r),
		 ordinals = reader_u32(&r);

	if (names > PE_EXPORTS_MAX)
		return -E2BIG;
	for (uint32_t i = 0; i < names; i++) {
		error = read_element(pe, name_array, i, 4, &at);
		if (error)
			return error;
		if (!is_name(pe, at, name, len))
			continue;
		error = read_element(pe, ordinals, i, 2, &index);
		return error ? error : read_element(pe, functions, index, 4, ret_rva);
	}
	return -ENOENT;
}

int pe_debug(const struct pe *pe, struct pe_debug entries[PE_DEBUG_ENTRIES_MAX], size_t *ret_n)
{
	AUTO_FREE unsigned char *data = NULL;
	struct pe_range range = pe->directories[PE_DEBUG];
	size_t n = range.bytes / PE_DEBUG_ENTRY_BYTES;

	if (n > PE_DEBUG_ENTRIES_MAX)
		return -E2BIG;
	int error = pe_read(pe, range, PE_DEBUG_ENTRIES_MAX * PE_DEBUG_ENTRY_BYTES, &data, NULL);

	if (error)
		return error;
	struct reader r = reader_of(data, range.bytes);

	for (size_t i = 0; i < n; i++) {
		struct pe_debug *d = &entries[i];

		reader_skip(&r, 4);
		d->stamp = reader_u32(&r);
		d->major = reader_u16(&r);
		d->minor = reader_u16(&r);
		d->type = reader_u32(&r);
		d->bytes = reader_u32(&r);
		d->rva = reader_u32(&r);
		d->file_off = reader_u32(&r);
	}
	*ret_n = n;
	return 0;
}
