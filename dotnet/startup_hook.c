#include "dotnet/startup_hook.h"

#include "base/cleanup.h"
#include "dotnet/metadata.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define HOOK_METADATA_MAX ((uint32_t)32 << 20)
#define METHOD_IS_STATIC 0x10 /* MethodAttributes, ECMA-335 II.23.1.10 */

/* A method without parameters, type parameters and a result: ECMA-335 II.23.2.1. */
static const unsigned char hook_signature[] = {0x00, 0x00, 0x01};

static bool hook_is(const char *text, const char *wanted)
{
	return text && !strcmp(text, wanted);
}

static bool hook_is_initialize(const struct clr_metadata *m, uint32_t rid)
{
	uint32_t flags = clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_FLAGS);
	uint32_t name = clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_NAME);
	size_t len = 0;
	const unsigned char *signature = clr_metadata_blob(
		m, clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_SIGNATURE), &len);

	return hook_is(clr_metadata_string(m, name), "Initialize") && (flags & METHOD_IS_STATIC) &&
	       signature && len == sizeof(hook_signature) &&
	       !memcmp(signature, hook_signature, len);
}

static const char *hook_find(const struct clr_metadata *m)
{
	uint32_t types = clr_metadata_rows(m, CLR_TYPE_DEF),
		 methods = clr_metadata_rows(m, CLR_METHOD_DEF);

	for (uint32_t rid = 1; rid <= types; rid++) {
		uint32_t name = clr_metadata_cell(m, CLR_TYPE_DEF, rid, CLR_TYPE_DEF_NAME);
		uint32_t space = clr_metadata_cell(m, CLR_TYPE_DEF, rid, CLR_TYPE_DEF_NAMESPACE);
		const char *in = clr_metadata_string(m, space);

		if (!hook_is(clr_metadata_string(m, name), "StartupHook") || (in && *in) ||
		    clr_metadata_enclosing(m, rid))
			continue;
		for (uint32_t method = 1; method <= methods; method++)
			if (hook_is_initialize(m, method) &&
			    clr_metadata_method_owner(m, method) == rid)
				return NULL;
		return "its class StartupHook has no static method Initialize() without a result";
	}
	return "it has no class StartupHook outside of namespaces";
}

int startup_hook_check(const struct pe_file *file, const char **ret_why)
{
	AUTO_FREE unsigned char *data = NULL;
	struct clr_metadata *m = NULL;
	struct pe_cli cli;
	struct pe pe;
	int r = pe_open(file, &pe, NULL);

	*ret_why = "it is not a .NET assembly";
	if (!r)
		r = pe_cli(&pe, pe.directories[PE_CLI], &cli, NULL);
	if (!r)
		r = pe_read(&pe, cli.metadata, HOOK_METADATA_MAX, &data, NULL);
	if (!r)
		r = clr_metadata_open(data, cli.metadata.bytes, &m, NULL);
	if (r)
		return r == -ENOMEM ? r : -EINVAL;
	*ret_why = hook_find(m);
	clr_metadata_free(m);
	return *ret_why ? -EINVAL : 0;
}
