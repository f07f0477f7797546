/*
 * Precompiled code of .NET (ReadyToRun) in a PE image: a provider of the names of its methods, made from the image's bytes
 * alone. Those of composite images, and of instances over other assemblies' types, need the other assemblies too.
 */
#ifndef SYMBOLS_R2R_IMAGE_H
#define SYMBOLS_R2R_IMAGE_H

#include "base/error.h"
#include "symbols/pe.h"
#include "symbols/r2r_modules.h"
#include "symbols/symbol.h"

#include <stdbool.h>

/*
 * Reads the image's tables. file is borrowed; what is still to be read later keeps a duplicate of the descriptor. The provider
 * answers by offset in the file's descriptor, file->offset included, with the raw names of .NET's perf map and the tier that the
 * runtime's jitdump has for such code: "instance bool [System.Linq] System.Linq.Enumerable::F(int32)[PreJIT]". Code behind the
 * image's delay loading is "stub ReadyToRun<MethodCallThunk>". A method whose metadata are not to be had has its place for a name,
 * as of SYMBOL_BOUNDS. What is in no runtime function is not known.
 * 0; -EBADMSG: no PE image, none with precompiled code, or damaged; -ENOTSUP: of a version or machine that is not known; -E2BIG;
 * -ENOMEM; -errno.
 */
int r2r_image_open(const struct pe_file *file, const struct r2r_beside *beside, struct symbol_provider **ret_symbols,
		   struct parse_error *err);

/* A method of the image's own metadata, and a place in its code. */
struct r2r_image_method {
	uint32_t rid; /* of its MethodDef */
	uint32_t begin; /* rva of its first runtime function */
	uint32_t native; /* offset in its code */
};

/* The method whose code is at an offset. 0; -ENOENT: none, one of another assembly, or a part that was moved out of its code. */
int r2r_image_method(const struct symbol_provider *symbols, uint64_t addr, struct r2r_image_method *ret_method);

/* Whether a provider is one of these. */
bool r2r_image_is(const struct symbol_provider *symbols);

/* How many pieces the provider's answers have, for those who count on. */
uint32_t r2r_image_pieces(const struct symbol_provider *symbols);

/* The offset at which a piece begins. */
uint64_t r2r_image_piece_file_off(const struct symbol_provider *symbols, uint32_t piece);

#endif
