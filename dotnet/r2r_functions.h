/*
 * Maps the code of a ReadyToRun image to methods, from its runtime functions and the entry points
 * of its methods. A method owns the runtime functions from its entry point up to the next one.
 * Those after its main function are funclets (handlers and filters). Cold parts follow all hot code
 * (HotColdMap).
 */
#ifndef DOTNET_R2R_FUNCTIONS_H
#define DOTNET_R2R_FUNCTIONS_H

#include "base/vec.h"
#include "dotnet/pe.h"
#include "dotnet/r2r_header.h"

#include <stdint.h>

/* Bytes of one table, and of the entry points of all assemblies. */
#define R2R_FUNCTIONS_TABLE_BYTES_MAX ((uint32_t)256 << 20)
/* Methods of all assemblies. A token has 24 bits for those of one assembly. */
#define R2R_FUNCTIONS_METHODS_MAX ((uint32_t)1 << 20)
/*
 * Entries in the tables of one image. All assemblies of .NET 10 with ASP.NET Core together have
 * 460,000.
 */
#define R2R_FUNCTIONS_ENTRIES_MAX ((uint64_t)8 << 20)
#define R2R_FUNCTIONS_INSTANCE UINT32_MAX /* value of r2r_method.assembly */

struct r2r_method {
	/*
	 * Index among the components; 0 if the image has none. R2R_FUNCTIONS_INSTANCE: instance is
	 * set.
	 */
	uint32_t assembly;
	union {
		uint32_t rid;      /* row of its MethodDef */
		uint32_t instance; /* offset of its signature in instances */
	};
	uint32_t begin; /* rva of its first runtime function */
};

/* A range of code that belongs to one method, or to thunks. */
struct r2r_code {
	uint32_t begin, end; /* rva */
	uint32_t method;     /* index into methods, or a value below */
};

/* Bit in r2r_code.method; the other bits are the index. */
#define R2R_CODE_IS_COLD 0x80000000u
/* Value of r2r_code.method: thunks that call methods not bound yet. */
#define R2R_CODE_IS_THUNK UINT32_MAX

struct r2r_functions {
	/* Sorted, without overlaps. Excludes code of unknown methods. */
	VEC(struct r2r_code) code;
	VEC(struct r2r_method) methods;
	unsigned char *instances; /* the section of instance entry points */
	uint32_t instances_bytes;
};

/*
 * Reads the tables. 0; -EBADMSG: damaged, or no code; -E2BIG, -ENOMEM, -errno. A zeroed struct is
 * empty. *ret_entries: entries that were read, also before an error.
 */
int r2r_functions_read(const struct pe *pe, const struct r2r_header *h,
		       const struct r2r_component *components, size_t ncomponents,
		       struct r2r_functions *ret_functions, uint64_t *ret_entries,
		       struct parse_error *err);
void r2r_functions_free(struct r2r_functions *f);

/* The code at rva, or NULL. */
const struct r2r_code *r2r_functions_find(const struct r2r_functions *f, uint32_t rva);

#endif
