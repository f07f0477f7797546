/*
 * A method's name out of the runtime's events, in the grammar of its perf map. Type and method are spelled alike in both; the signature of
 * an event is another spelling ("instance void  (class System.String,unsigned int8[])") that leaves out assemblies, the types that
 * others are nested in, and all before a function pointer. So whoever can should write it from the module's metadata.
 */
#ifndef EVENTPIPE_METHOD_NAME_H
#define EVENTPIPE_METHOD_NAME_H

#include "base/outbuf.h"

#include <stddef.h>
#include <stdint.h>

#define METHOD_NAME_DEPTH_MAX 64 /* of types in each other */

/*
 * Appends "[instance ]RETURN NAME(ARGS)" with the types of an event's signature in the perf map's spelling. What is no signature
 * is appended as it stands behind the name. 0; -EBADMSG it was none; out->error as ever.
 */
int method_name_signature(const char *signature, size_t len, const char *name, size_t name_len, struct outbuf *out);

/* Flags of a method's events. */
#define METHOD_DYNAMIC 0x1u
#define METHOD_JITTED 0x8u /* else precompiled */

/* The perf map's word for the tier: "OptimizedTier1", and of precompiled code "PreJIT". Never NULL. */
const char *method_name_tier(uint32_t flags);

#endif
