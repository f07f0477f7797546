/*
 * Writes ECMA-335 types and method signatures (II.23.2) as text, in the two spellings that the .NET
 * runtime uses.
 */
#ifndef DOTNET_SIGNATURE_TEXT_H
#define DOTNET_SIGNATURE_TEXT_H

#include "base/outbuf.h"
#include "base/reader.h"
#include "dotnet/metadata.h"

#include <stdbool.h>

#define CLR_TEXT_BYTES_MAX ((size_t)64 << 10) /* bytes of one name */
/* Types in one name. Limits TypeSpecs that contain each other many times. */
#define CLR_TEXT_ELEMENTS_MAX 4096
#define CLR_TEXT_DEPTH_MAX 64 /* depth of nested types */

enum clr_text_style {
	/* In signatures: "class [System.Runtime]System.Func`2<!0,valuetype A/B>[]" */
	CLR_ILASM,
	/* In owner types and type arguments: "System.Func`2[System.Int32,A+B][]" */
	CLR_REFLECTION,
};

struct clr_text;

/*
 * Callbacks for types that a signature does not name by a token. A NULL callback makes such types
 * an error (-EBADMSG). Both return 0, or -errno, which becomes the error of the text.
 *
 * find: the metadata of another module, by its index. ReadyToRun images use it
 * (ELEMENT_TYPE_MODULE_ZAPSIG).
 * handle: writes a type by its address in the runtime's memory (ELEMENT_TYPE_INTERNAL). Only
 * signatures made by a running runtime have these.
 */
struct clr_type_resolver {
	int (*find)(void *ctx, uint32_t index, const struct clr_metadata **ret);
	int (*handle)(void *ctx, struct clr_text *t, uint64_t addr, enum clr_text_style style);
	void *ctx;
};

/*
 * A name while it is written, with its limits. Keeps the first error: -EBADMSG, -E2BIG, or one from
 * a callback.
 */
struct clr_text {
	struct outbuf *out;                      /* must be an in-memory buffer */
	const struct clr_type_resolver *modules; /* NULL: types of other modules are an error */
	size_t start;
	unsigned elements, depth;
	int error;
};

struct clr_text clr_text_begin(struct outbuf *out, const struct clr_type_resolver *modules);

/* Returns 0 or the error. On an error it removes the text written so far. */
int clr_text_end(struct clr_text *t);

/* Writes the name of a TypeDef, TypeRef or TypeSpec. */
void clr_text_put_token(struct clr_text *t, const struct clr_metadata *m, uint32_t token,
			enum clr_text_style style);

/*
 * Writes the type at sig, and moves sig past it. m NULL: only types that name their module can be
 * written.
 */
void clr_text_put_type(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
		       enum clr_text_style style);

/* Writes "instance RETURN NAME(ARGS)" for a method's signature. The callback name writes NAME. */
void clr_text_put_method(struct clr_text *t, const struct clr_metadata *m, struct reader *sig,
			 void (*name)(struct clr_text *t, const void *ctx), const void *ctx);

/*
 * Appends a text from a metadata heap; NULL appends nothing. Replaces line breaks by ?, because
 * names are stored one per line.
 */
void clr_text_put(struct clr_text *t, const char *text);

#endif
