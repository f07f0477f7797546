/* Types and method signatures of ECMA-335 (II.23.2) as text, in the two spellings that the .NET runtime has for them. */
#ifndef SYMBOLS_CLR_SIGNATURE_H
#define SYMBOLS_CLR_SIGNATURE_H

#include "base/outbuf.h"
#include "base/reader.h"
#include "symbols/clr_metadata.h"

#include <stdbool.h>

#define CLR_TEXT_BYTES_MAX ((size_t)64 << 10) /* of one name */
#define CLR_TEXT_ELEMENTS_MAX 4096 /* types in one name: those of TypeSpecs multiply */
#define CLR_TEXT_DEPTH_MAX 64 /* of types in each other */

enum clr_style {
	CLR_ILASM, /* in signatures: "class [System.Runtime]System.Func`2<!0,valuetype A/B>[]" */
	CLR_REFLECTION, /* of owners and type arguments: "System.Func`2[System.Int32,A+B][]" */
};

struct clr_text;

/*
 * Signatures in ReadyToRun images name types of other modules by a module's index (ELEMENT_TYPE_MODULE_ZAPSIG); find gives the
 * metadata for one. Those that a running runtime made name types by their addresses there (ELEMENT_TYPE_INTERNAL); handle writes
 * such a type. Both give 0, or -errno that becomes the text's error; NULL: such types are damage.
 */
struct clr_modules {
	int (*find)(void *ctx, uint32_t index, const struct clr_metadata **ret);
	int (*handle)(void *ctx, struct clr_text *t, uint64_t addr, enum clr_style style);
	void *ctx;
};

/* A text that is being written, with its limits. The first error sticks (-EBADMSG, -E2BIG). */
struct clr_text {
	struct outbuf *out; /* in memory */
	const struct clr_modules *modules; /* NULL: such types are damage */
	size_t start;
	unsigned elements, depth;
	int error;
};

struct clr_text clr_text_begin(struct outbuf *out, const struct clr_modules *modules);

/* 0 or the error, after taking back what was written. */
int clr_text_end(struct clr_text *t);

/* The name of a TypeDef, TypeRef or TypeSpec. */
void clr_text_type(struct clr_text *t, const struct clr_metadata *m, uint32_t token, enum clr_style style);

/* The type at sig's place, moving behind it. m NULL: only types that say their module have names. */
void clr_text_signature(struct clr_text *t, const struct clr_metadata *m, struct reader *sig, enum clr_style style);

/* "instance RETURN NAME(ARGS)" of a method's signature; name writes the NAME. */
void clr_text_method(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
		     void (*name)(struct clr_text *t, const void *ctx), const void *ctx);

/* Appends a text of the metadata's heap (NULL: nothing); a newline becomes ?, as names are kept in lines. */
void clr_text_put(struct clr_text *t, const char *text);

/* Moves behind a type; r fails where it is none, or is nested more deeply than CLR_TEXT_DEPTH_MAX. */
void clr_signature_skip(struct reader *r);

/* Moves to the first type argument of a generic type. False where the type at r is none; r is then of no use. */
bool clr_signature_generic(struct reader *r, uint32_t *ret_nargs);

/* The module that is said before a type. False where none is; r is then of no use. */
bool clr_signature_module(struct reader *r, uint32_t *ret_module);

/* Whether the type at r is one that has an element of its own, as System.Int32 has. */
bool clr_signature_is_primitive(struct reader r);

/* A compressed unsigned number (II.23.2); a bad one makes the reader fail. */
uint32_t clr_signature_number(struct reader *r);

#endif
