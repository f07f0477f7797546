/*
 * Signatures of methods and types in ReadyToRun images (readytorun-format.md, "Fixup signatures"; encoded as ECMA-335,
 * II.23.2, with element types of the runtime's own). They stand in tables before what they belong to, so decoding one is
 * also the way to find its end.
 */
#ifndef SYMBOLS_R2R_SIGNATURE_H
#define SYMBOLS_R2R_SIGNATURE_H

#include "base/outbuf.h"
#include "base/reader.h"

#include <stdbool.h>
#include <stdint.h>

#define R2R_SIGNATURE_DEPTH_MAX 64 /* types in types */
#define R2R_SIGNATURE_ARGUMENTS_MAX 1024 /* of one type or method */
#define R2R_SIGNATURE_NAME_MAX ((size_t)64 << 10) /* bytes of one type's name */

/* The image's own metadata; in composite images there is none. Others are the numbers that signatures have for them. */
#define R2R_OWN_MODULE UINT32_MAX

enum r2r_method_flags {
	R2R_METHOD_UNBOXING = 0x01,
	R2R_METHOD_INSTANTIATING = 0x02,
	R2R_METHOD_HAS_ARGUMENTS = 0x04,
	R2R_METHOD_BY_SLOT = 0x08, /* rid is a slot's number */
	R2R_METHOD_MEMBER_REF = 0x10, /* rid is of a MemberRef */
	R2R_METHOD_CONSTRAINED = 0x20,
	R2R_METHOD_HAS_OWNER = 0x40,
	R2R_METHOD_HAS_MODULE = 0x80,
};

/* Places are in the reader's bytes, 0 where there is nothing (a signature begins with its flags). */
struct r2r_method_signature {
	uint32_t flags, rid;
	uint32_t module; /* whose method rid is, and whose tokens the signature has; R2R_OWN_MODULE */
	uint32_t context; /* whose tokens the signature has */
	bool owner_is_primitive; /* its method is of the core library where the image has no module of its own */
	size_t owner, arguments; /* types: the owner; the first of the method's type arguments */
	uint32_t narguments;
};

/* A method's signature at r, which stands behind it then. r fails where it cannot be read, or where a limit is passed. */
void r2r_signature_method(struct reader *r, struct r2r_method_signature *ret_method);

/*
 * Writes the name of a type definition or reference (token, ECMA-335 II.22) of a module to out. 0; -ENOENT: the module is not to
 * be had; -EBADMSG; -ENOMEM.
 */
typedef int (*r2r_signature_token_fn)(void *ctx, uint32_t module, uint32_t token, struct outbuf *out);

struct r2r_signature_names {
	r2r_signature_token_fn token;
	void *ctx;
};

/*
 * Writes the name of the type at r, whose tokens are of module, as the runtime spells it in instantiations:
 * "System.Collections.Generic.KeyValuePair`2[System.__Canon,System.Int32[]]". r stands behind it then. 0; -EBADMSG; -E2BIG; what
 * `token` gives. What was written when it fails is of no use.
 */
int r2r_signature_type(struct reader *r, const struct r2r_signature_names *names, uint32_t module, struct outbuf *out);

/* As r2r_signature_type, only the type arguments of a generic type: each ends with a NUL. *ret_n 0: it has none. */
int r2r_signature_type_arguments(struct reader *r, const struct r2r_signature_names *names, uint32_t module,
				 struct outbuf *out, uint32_t *ret_n);

#endif
