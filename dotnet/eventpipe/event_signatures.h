/*
 * Signatures of methods in the runtime's events, from the metadata of the target's modules. The
 * text in an event omits assemblies and enclosing types (dotnet/eventpipe/method_name.h). Opens a
 * module's file in the target's root at its first method. Uses it only if it has the build of the
 * loaded module.
 */
#ifndef DOTNET_EVENTPIPE_EVENT_SIGNATURES_H
#define DOTNET_EVENTPIPE_EVENT_SIGNATURES_H

#include "container/opener.h"
#include "dotnet/eventpipe/rundown.h"

#define EVENT_SIGNATURES_FILE_MAX ((uint64_t)1 << 30) /* bytes of a module's file */
/* Bytes of one module; System.Private.CoreLib has 4 million. */
#define EVENT_SIGNATURES_METADATA_MAX ((uint32_t)64 << 20)
#define EVENT_SIGNATURES_BYTES_MAX ((uint64_t)512 << 20) /* bytes of all modules */

struct event_signatures;

/*
 * Prepares for process pid; o and memory are borrowed until event_signatures_free. memory counts
 * the metadata; NULL: no limit but the above. 0, -ENOMEM.
 */
int event_signatures_new(struct opener *o, pid_t pid, struct share *memory,
			 struct event_signatures **ret_signatures);
void event_signatures_free(struct event_signatures *s);

/*
 * Appends "[instance ]RETURN NAME(ARGS)", exactly as the perf map has it. ctx: a struct
 * event_signatures. The function fits rundown_listener.signature.
 *   0;
 *   -ENOENT: no such file or method, another build, or a module in memory or in a bundle;
 *   -E2BIG: over a limit; -ENOMEM; errors of opener_file.
 */
int event_signatures_put(void *ctx, const struct rundown_module *module, uint32_t token,
			 const char *name, size_t len, struct outbuf *out);

#endif
