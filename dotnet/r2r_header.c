#include "dotnet/r2r_header.h"

#include "base/cleanup.h"
#include "base/reader.h"

#include <errno.h>
#include <stdlib.h>

enum {
	R2R_SIGNATURE = 0x00525452, /* "RTR" */
	R2R_HEADER_BYTES = 8,       /* without the part that components have as well */
	R2R_CORE_BYTES = 8,
	R2R_SECTION_BYTES = 12,
	R2R_COMPONENT_BYTES = 16,
	R2R_SMALL_TABLES_BYTES = 256 << 10, /* of an image whose tables have 64 KiB each */
};

static struct pe_range read_range(struct reader *r)
{
	uint32_t rva = reader_u32(r);

	return (struct pe_range){rva, reader_u32(r)};
}

/* Reads the core: flags, number of sections, sections. */
static int read_core(const struct pe *pe, uint32_t rva, struct r2r_header *h,
		     struct parse_error *err)
{
	AUTO_FREE unsigned char *data = NULL;
	struct pe_range range =
		pe_range_at(pe, rva, R2R_CORE_BYTES + R2R_HEADER_SECTIONS_MAX * R2R_SECTION_BYTES);
	int error = pe_read(pe, range, UINT32_MAX, &data, err);

	if (error)
		return error;
	struct reader r = reader_of(data, range.bytes);

	h->flags = reader_u32(&r);
	uint32_t n = reader_u32(&r);

	if (n > R2R_HEADER_SECTIONS_MAX)
		return parse_fail(err, -E2BIG, "too many ReadyToRun sections", rva);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = reader_u32(&r);
		struct pe_range section = read_range(&r);

		if (kind >= R2R_SECTION_FIRST && kind <= R2R_SECTION_LAST)
			h->sections[kind - R2R_SECTION_FIRST] = section;
	}
	return r.failed ? parse_fail(err, -EBADMSG, "the ReadyToRun header ends too early", rva)
			: 0;
}

/* Finds the header: named by the CLI header, or exported in composite images without one. */
static int find_header(const struct pe *pe, uint32_t *ret_rva, struct parse_error *err)
{
	struct pe_cli cli;
	int error = pe_cli(pe, pe->directories[PE_CLI], &cli, err);

	if (!error && cli.native_header.bytes) {
		*ret_rva = cli.native_header.rva;
		return 0;
	}
	if (error && error != -ENOENT)
		return error;
	error = pe_export(pe, "RTR_HEADER", ret_rva);
	return error == -ENOENT ? parse_fail(err, -EBADMSG, "not a ReadyToRun image", 0) : error;
}

int r2r_header_read(const struct pe *pe, struct r2r_header *ret_header, struct parse_error *err)
{
	AUTO_FREE unsigned char *data = NULL;
	struct r2r_header h = {0};
	uint32_t rva;
	int error = find_header(pe, &rva, err);

	if (!error)
		error = pe_read(pe, (struct pe_range){rva, R2R_HEADER_BYTES}, R2R_HEADER_BYTES,
				&data, err);
	if (error)
		return error;
	struct reader r = reader_of(data, R2R_HEADER_BYTES);

	if (reader_u32(&r) != R2R_SIGNATURE)
		return parse_fail(err, -EBADMSG, "not a ReadyToRun image", rva);
	h.major = reader_u16(&r);
	h.minor = reader_u16(&r);
	if (h.major < R2R_HEADER_MAJOR_MIN)
		return parse_fail(err, -ENOTSUP, "a ReadyToRun image older than .NET 7", rva);
	if (pe->machine != PE_X64 && pe->machine != PE_ARM64)
		return parse_fail(err, -ENOTSUP, "a ReadyToRun image for another machine", 0);
	/* The tables of many small images fill memory, too. */
	if (!pe_has_memory(R2R_SMALL_TABLES_BYTES))
		return parse_fail(err, -E2BIG, "a ReadyToRun image needs more memory than is left",
				  rva);
	error = read_core(pe, rva + R2R_HEADER_BYTES, &h, err);
	h.composite = r2r_header_section(&h, R2R_COMPONENT_ASSEMBLIES).bytes;
	if (!error)
		*ret_header = h;
	return error;
}

int r2r_header_components(const struct pe *pe, const struct r2r_header *h,
			  struct r2r_component **ret_components, size_t *ret_n,
			  struct parse_error *err)
{
	AUTO_FREE struct r2r_component *components = NULL;
	AUTO_FREE unsigned char *data = NULL;
	struct pe_range range = r2r_header_section(h, R2R_COMPONENT_ASSEMBLIES);
	size_t n = range.bytes / R2R_COMPONENT_BYTES;
	int error = pe_read(pe, range, R2R_HEADER_COMPONENTS_MAX * R2R_COMPONENT_BYTES, &data, err);

	if (error)
		return error;
	components = calloc(n + 1, sizeof(*components));
	if (!components)
		return -ENOMEM;
	struct reader r = reader_of(data, range.bytes);

	for (size_t i = 0; i < n && !error; i++) {
		struct r2r_header core = {0};

		components[i].cli = read_range(&r);
		struct pe_range at = read_range(&r);

		if (at.bytes)
			error = read_core(pe, at.rva, &core, err);
		components[i].methods = r2r_header_section(&core, R2R_METHOD_ENTRY_POINTS);
	}
	if (error)
		return error;
	*ret_components = TAKE_PTR(components);
	*ret_n = n;
	return 0;
}
