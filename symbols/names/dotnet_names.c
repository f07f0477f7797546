#include "symbols/names/dotnet_names.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

static bool is_one_of(const char *base, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(base, names[i]))
			return true;
	return false;
}

#define ONE_OF(base, names) is_one_of(base, names, sizeof(names) / sizeof(*(names)))

bool dotnet_names_is_native(const char *base)
{
	static const char *const names[] = {
		"libcoreclr.so",      "libclrjit.so",     "libclrgc.so",
		"libclrgcexp.so",     "libhostpolicy.so", "libhostfxr.so",
		"libmscordaccore.so", "libmscordbi.so",   "libclretwrc.so",
		"libnethost.so",      "dotnet",
	};

	return !strncmp(base, "libSystem.", 10) || !strncmp(base, "libcoreclrtrace", 15) ||
	       ONE_OF(base, names);
}

bool dotnet_names_is_tool(const char *base)
{
	static const char *const names[] = {"createdump", "libsos.so", "libdbgshim.so",
					    "libclrinterpreter.so"};

	return ONE_OF(base, names);
}

bool dotnet_names_is_framework(const char *base)
{
	static const char *const whole[] = {"mscorlib", "netstandard", "WindowsBase", "System"};
	const char *dot = strrchr(base, '.');
	size_t len = dot ? (size_t)(dot - base) : 0;

	if (!dot ||
	    (strcasecmp(dot, ".dll") && strcasecmp(dot, ".pdb") && strcasecmp(dot, ".r2rmap")))
		return false;
	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (strlen(whole[i]) == len && !strncasecmp(base, whole[i], len))
			return true;
	return !strncasecmp(base, "System.", 7) || !strncasecmp(base, "Microsoft.", 10) ||
	       !strncasecmp(base, "framework-r2r.", 14);
}
