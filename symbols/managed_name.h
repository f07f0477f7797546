/* The canonical (full) form of managed methods' names: DESIGN.md, "Names of frames". */
#ifndef SYMBOLS_MANAGED_NAME_H
#define SYMBOLS_MANAGED_NAME_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stddef.h>

/* What a perf map's text turned out to be. */
enum managed_name_kind {
	MANAGED_NAME_METHOD, /* "float64 [webapp] Work::Spin(int32)[OptimizedTier1]" */
	MANAGED_NAME_STUB, /* "stub GenerateLookupStub<ResolveStub>" */
	MANAGED_NAME_OTHER, /* another runtime's, taken over as it stands */
};

/*
 * Writes the full form of a perf map's name to out: `Namespace.Type.Method(int32,string)`, async state machines as
 * `Type.Method() [async]`, lambdas and local functions under their outer method's name. text need not be NUL-terminated.
 * Never fails on any input (OTHER is copied). ret_tier (may be NULL) gives the tier's place in text, len 0 without one.
 */
struct managed_name_part {
	size_t at, len;
};
enum managed_name_kind managed_name_full(const char *text, size_t len, struct outbuf *out,
					 struct managed_name_part *ret_tier, struct managed_name_part *ret_module);

#endif
