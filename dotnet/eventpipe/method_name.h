/*
 * Names of methods from the runtime's events, in the grammar of its perf map. Type and method name
 * have one spelling in both. The signature in an event has another:
 *   "instance void  (class System.String,unsigned int8[])"
 * It omits assemblies, enclosing types and the calling convention of function pointers. So prefer
 * the signature from the module's metadata (event_signatures.h).
 */
#ifndef DOTNET_EVENTPIPE_METHOD_NAME_H
#define DOTNET_EVENTPIPE_METHOD_NAME_H

#include "base/outbuf.h"

#include <stddef.h>
#include <stdint.h>

#define METHOD_NAME_DEPTH_MAX 64 /* depth of nested types */

/*
 * Appends "[instance ]RETURN NAME(ARGS)", with the types of an event's signature in the perf map's
 * spelling. An invalid signature is appended unchanged after the name. 0; -EBADMSG: invalid;
 * out->error.
 */
int method_name_signature(const char *signature, size_t len, const char *name, size_t name_len,
			  struct outbuf *out);

/* The parts of a raw name: texts in it, without NULs. */
struct method_name_parts {
	const char *assembly, *type, *name;
	size_t assembly_len, type_len, name_len;
};

/*
 * Takes a raw name apart, "instance void [A] N.T::M(string)[PreJIT]", into the fields of an event
 * about the method. Appends the signature in an event's spelling to an in-memory buffer. It lacks
 * the word that tells generic methods from others, which a raw name does not have. 0; -EBADMSG: not
 * the name of a method, such as a stub's; signature->error. After an error signature is unchanged.
 */
int method_name_split(const char *raw, size_t len, struct method_name_parts *ret_parts,
		      struct outbuf *signature);

/* Flags of method events. */
#define METHOD_DYNAMIC 0x1u
#define METHOD_JITTED 0x8u /* otherwise precompiled */

/*
 * The perf map's word for a tier, as "OptimizedTier1"; "PreJIT" for precompiled code. Never NULL.
 */
const char *method_name_tier(uint32_t flags);

#endif
