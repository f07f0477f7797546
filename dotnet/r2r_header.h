/*
 * ReadyToRun header of a PE image: its sections and their places. Format: dotnet/runtime,
 * docs/design/coreclr/botr/readytorun-format.md and src/coreclr/inc/readytorun.h.
 */
#ifndef DOTNET_R2R_HEADER_H
#define DOTNET_R2R_HEADER_H

#include "dotnet/pe.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define R2R_HEADER_SECTIONS_MAX \
	((uint32_t)256) /* limit of sections in a header; 24 kinds are known */
#define R2R_HEADER_COMPONENTS_MAX ((uint32_t)4096) /* assemblies of a composite image */
#define R2R_HEADER_MAJOR_MIN 8 /* .NET 7; older versions number modules differently */

enum r2r_section {
	R2R_SECTION_FIRST = 100,
	R2R_RUNTIME_FUNCTIONS = 102,
	R2R_METHOD_ENTRY_POINTS = 103,
	R2R_DEBUG_INFO = 105,
	R2R_METHOD_CALL_THUNKS = 106,
	R2R_INSTANCE_ENTRY_POINTS = 109,
	R2R_MANIFEST_METADATA = 112,
	R2R_COMPONENT_ASSEMBLIES = 115,
	R2R_MANIFEST_MVIDS = 118,
	R2R_HOT_COLD_MAP = 120,
	R2R_SECTION_LAST = 127, /* ignore later kinds */
};

struct r2r_header {
	uint16_t major, minor;
	uint32_t flags;
	/* Contains code of several assemblies, whose metadata is in other files. */
	bool composite;
	struct pe_range sections[R2R_SECTION_LAST - R2R_SECTION_FIRST + 1]; /* bytes 0: absent */
};

/* An assembly of a composite image. */
struct r2r_component {
	/* Its CLI header inside the composite image. bytes 0: only in the assembly's own file. */
	struct pe_range cli;
	struct pe_range methods; /* its method entry points */
};

static inline struct pe_range r2r_header_section(const struct r2r_header *h, enum r2r_section kind)
{
	return h->sections[kind - R2R_SECTION_FIRST];
}

/*
 * Reads the header. 0; -EBADMSG: no header, or damaged; -ENOTSUP: unknown version or machine;
 * -E2BIG, -ENOMEM, -errno.
 */
int r2r_header_read(const struct pe *pe, struct r2r_header *ret_header, struct parse_error *err);

/*
 * Reads the assemblies of a composite image in the order of their numbers; the caller frees them.
 * 0, or as r2r_header_read.
 */
int r2r_header_components(const struct pe *pe, const struct r2r_header *h,
			  struct r2r_component **ret_components, size_t *ret_n,
			  struct parse_error *err);

#endif
