/*
 * Signatures of methods that the runtime's events name, out of the metadata of the target's modules: an event's own text leaves out
 * assemblies and enclosing types (eventpipe/method_name.h). A module's file is opened in the target's root at its first method and
 * believed only if it is of the build that is loaded.
 */
#ifndef SYMBOLS_EVENT_SIGNATURES_H
#define SYMBOLS_EVENT_SIGNATURES_H

#include "container/opener.h"
#include "eventpipe/rundown.h"

#define EVENT_SIGNATURES_FILE_MAX ((uint64_t)1 << 30) /* bytes of a module's file */
#define EVENT_SIGNATURES_METADATA_MAX ((uint32_t)64 << 20) /* of one module; System.Private.CoreLib has 4 million bytes */
#define EVENT_SIGNATURES_BYTES_MAX ((uint64_t)512 << 20) /* of all modules */

struct event_signatures;

/* For the process pid; o is borrowed for life. 0, -ENOMEM. */
int event_signatures_new(struct opener *o, pid_t pid, struct event_signatures **ret_signatures);
void event_signatures_free(struct event_signatures *s);

/*
 * Appends "[instance ]RETURN NAME(ARGS)", exactly as the perf map has it. ctx: a struct event_signatures; made for struct
 * rundown_listener. 0; -ENOENT: no such file, module in memory or in a bundle, another build, no such method; -E2BIG: over a limit;
 * -ENOMEM; errors of opener_file.
 */
int event_signatures_put(void *ctx, const struct rundown_module *module, uint32_t token, const char *name, size_t len,
			 struct outbuf *out);

#endif
