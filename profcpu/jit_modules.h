/* The metadata of the assemblies that a process has loaded from files, for exact names of their methods. */
#ifndef PROFCPU_JIT_MODULES_H
#define PROFCPU_JIT_MODULES_H

#include "container/opener.h"
#include "symbols/clr_metadata.h"

struct jit_modules;

/* opener is borrowed; used by the caller's thread. 0 or -ENOMEM. */
int jit_modules_new(struct opener *opener, pid_t pid, struct jit_modules **ret_modules);
void jit_modules_free(struct jit_modules *m);

/* The metadata of the assembly at a path in the target's root, read when it is asked for first; NULL: it cannot be had. */
const struct clr_metadata *jit_modules_get(struct jit_modules *m, const char *path);

/* Appends "[instance ]RETURN NAME(ARGS)" for a MethodDef. 0, -ENOENT, -EBADMSG, -E2BIG, -ENOMEM. */
int jit_modules_signature(const struct clr_metadata *metadata, uint32_t token, const char *name, size_t len, struct outbuf *out);

#endif
