/* Names of methods and types, made from metadata in the spelling of the .NET runtime. */
#ifndef DOTNET_METADATA_NAMES_H
#define DOTNET_METADATA_NAMES_H

#include "base/outbuf.h"
#include "dotnet/metadata.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Type arguments of a method's owner type, as texts in the runtime's spelling ("System.Int32",
 * "System.__Canon"). clr_metadata_type_name writes such texts. The type arguments of the method
 * itself are not part of a name in the runtime's perf map.
 */
struct clr_instantiation {
	const char *const *type_args;
	size_t ntype_args;
};

/*
 * Appends the name of a MethodDef exactly as the runtime writes it into its perf map.
 *   Example: "instance !1& [System.Private.CoreLib]
 *   System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]::FindValue(!0)"
 *   assembly: name of the assembly; NULL: the metadata's own. Required without a manifest.
 *   inst: type arguments of the owner; NULL: unknown or none, so the type has no brackets.
 *   tier: without brackets; NULL: none.
 *   out: an in-memory buffer, unchanged on an error.
 *   Returns 0; -ENOENT: no such method; -EBADMSG: damaged; -E2BIG: too deep or too long (limits in
 *   signature_text.h); -ENOMEM.
 */
int clr_metadata_method_name(const struct clr_metadata *m, uint32_t rid, const char *assembly,
			     const struct clr_instantiation *inst, const char *tier,
			     struct outbuf *out);

/*
 * Appends the name of a TypeDef, TypeRef or TypeSpec as it appears in an instantiation and as a
 * method's owner: "System.Collections.Generic.Dictionary`2+Entry[System.Int32,System.String[]]".
 * out and errors as above.
 */
int clr_metadata_type_name(const struct clr_metadata *m, uint32_t token, struct outbuf *out);

#endif
