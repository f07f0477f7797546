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

/* Flags of method events. */
#define METHOD_DYNAMIC 0x1u
#define METHOD_JITTED 0x8u /* otherwise precompiled */

/*
 * The perf map's word for a tier, as "OptimizedTier1"; "PreJIT" for precompiled code. Never NULL.
 */
const char *method_name_tier(uint32_t flags);

#endif
