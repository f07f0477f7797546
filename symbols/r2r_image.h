/*
 * A provider of method names for precompiled .NET code (ReadyToRun) in a PE image, made from the
 * image's bytes alone. Methods of composite images, and instances over types of other assemblies,
 * need those assemblies too.
 */
#ifndef SYMBOLS_R2R_IMAGE_H
#define SYMBOLS_R2R_IMAGE_H

#include "base/error.h"
#include "dotnet/pe.h"
#include "dotnet/r2r_modules.h"
#include "symbols/core/symbol.h"

#include <stdbool.h>

/*
 * Reads the image's tables and makes a provider. file is borrowed; the provider keeps a duplicate
 * of its descriptor for later reads. Addresses are offsets in that descriptor's file, file->offset
 * included. Names are the raw ones of .NET's perf map, with the tier that the runtime's jitdump has
 * for such code: "instance bool [System.Linq] System.Linq.Enumerable::F(int32)[PreJIT]". Code
 * of the image's delay loading is named "stub ReadyToRun<MethodCallThunk>". A method without
 * readable metadata gets its place as a name, as SYMBOL_BOUNDS does. Addresses outside of runtime
 * functions have no symbol. Returns 0; -EBADMSG: no PE image, no precompiled code, or damaged;
 * -ENOTSUP: unknown version or machine; -E2BIG; -ENOMEM; -errno.
 */
int r2r_image_open(const struct pe_file *file, const struct r2r_assembly_opener *beside,
		   struct symbol_provider **ret_symbols, struct parse_error *err);

/* A method of the image's own metadata, and a place in its code. */
struct r2r_image_method {
	uint32_t rid;    /* row of its MethodDef */
	uint32_t begin;  /* RVA of its first runtime function */
	uint32_t native; /* offset in its code */
};

/*
 * Gets the method whose code is at an offset. Returns 0; -ENOENT: none, one of another assembly, or
 * cold code that was moved away from its method.
 */
int r2r_image_method(const struct symbol_provider *symbols, uint64_t addr,
		     struct r2r_image_method *ret_method);

/* Whether this module made a provider. */
bool r2r_image_is(const struct symbol_provider *symbols);

/* Bytes of memory that the provider takes. */
uint64_t r2r_image_bytes(const struct symbol_provider *symbols);

/* The number of pieces of the provider, for callers that number on from there. */
uint32_t r2r_image_pieces(const struct symbol_provider *symbols);

/* The file offset at which a piece begins. */
uint64_t r2r_image_piece_file_off(const struct symbol_provider *symbols, uint32_t piece);

#endif
