/*
 * Checks a startup hook: an assembly with a class StartupHook, in no namespace, and its static
 * method Initialize without parameters. Specification: dotnet/runtime,
 * docs/design/features/host-startup-hook.md.
 */
#ifndef DOTNET_STARTUP_HOOK_H
#define DOTNET_STARTUP_HOOK_H

#include "dotnet/pe.h"

#define STARTUP_HOOK_BYTES_MAX ((uint64_t)64 << 20) /* of its file */

/*
 * Whether a runtime can run the file as a hook. A file that it cannot run ends its process. 0;
 * -EINVAL: it is no hook, and *ret_why (static) tells why; -ENOMEM.
 */
int startup_hook_check(const struct pe_file *file, const char **ret_why);

#endif
