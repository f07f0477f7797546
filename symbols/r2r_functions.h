/*
 * Which method the code of a ReadyToRun image is of: its runtime functions, and the entry points that give them to methods.
 * A method has the runtime functions from its entry point's on to the next entry point's: behind its main one they are funclets
 * (handlers and filters). Parts that were moved out of the hot code follow all of it (HotColdMap).
 */
#ifndef SYMBOLS_R2R_FUNCTIONS_H
#define SYMBOLS_R2R_FUNCTIONS_H

#include "base/vec.h"
#include "symbols/pe.h"
#include "symbols/r2r_header.h"

#include <stdint.h>

#define R2R_FUNCTIONS_TABLE_BYTES_MAX ((uint32_t)256 << 20) /* of one table, and of the entry points of all assemblies */
#define R2R_FUNCTIONS_METHODS_MAX ((uint32_t)16 << 20) /* of all assemblies; a token has 24 bits for one */
#define R2R_FUNCTIONS_INSTANCE UINT32_MAX /* as r2r_method.assembly */

struct r2r_method {
	uint32_t assembly; /* index among components, 0 where there are none; R2R_FUNCTIONS_INSTANCE: instance is set */
	union {
		uint32_t rid; /* of its MethodDef */
		uint32_t instance; /* where its signature is in instances */
	};
	uint32_t begin; /* rva of its first runtime function */
};

/* A stretch of code of one method, or of thunks. */
struct r2r_code {
	uint32_t begin, end; /* rva */
	uint32_t method; /* index */
};

#define R2R_CODE_IS_COLD 0x80000000u /* in r2r_code.method, which is an index otherwise */
#define R2R_CODE_IS_THUNK UINT32_MAX /* as r2r_code.method: calls to methods that are not bound yet */

struct r2r_functions {
	VEC(struct r2r_code) code; /* sorted, apart from each other; what no method is known of is left out */
	VEC(struct r2r_method) methods;
	unsigned char *instances; /* the section of instance entry points */
	uint32_t instances_bytes;
};

/* Reads the tables. 0; -EBADMSG damaged, or no code; -E2BIG, -ENOMEM, -errno. A zeroed *f is empty. */
int r2r_functions_read(const struct pe *pe, const struct r2r_header *h, const struct r2r_component *components,
		       size_t ncomponents, struct r2r_functions *ret_functions, struct parse_error *err);
void r2r_functions_free(struct r2r_functions *f);

/* The code at rva, or NULL. */
const struct r2r_code *r2r_functions_find(const struct r2r_functions *f, uint32_t rva);

#endif
