/* Which methods belong to .NET itself. */
#ifndef PROFCPU_MANAGED_FRAMEWORK_H
#define PROFCPU_MANAGED_FRAMEWORK_H

#include <stdbool.h>
#include <string.h>

/* Methods of .NET's own libraries are known by their namespaces. */
static inline bool managed_is_framework(const char *name)
{
	return !strncmp(name, "[stub]", 6) || !strncmp(name, "System.", 7) ||
	       !strncmp(name, "Microsoft.", 10) || !strncmp(name, "Interop.", 8) ||
	       !strncmp(name, "Interop+", 8);
}

#endif
