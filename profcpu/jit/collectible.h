/* Whether a runtime may unload assemblies, so that a list of its methods could crash it. */
#ifndef PROFCPU_JIT_COLLECTIBLE_H
#define PROFCPU_JIT_COLLECTIBLE_H

#include "dotnet/eventpipe/rundown.h"

#define JIT_COLLECTIBLE_BYTES 96

/*
 * The memory map shows programs that can unload assemblies, also while none is loaded. The
 * runtime's list of assemblies shows those loaded now, also in a single-file program.
 *
 * what: "" if the list is safe; else what was found, as "it can unload 2 of its assemblies". 0;
 * errors of rundown_count_collectible.
 */
int jit_collectible(struct rundown *rundown, pid_t pid, uint64_t until_ns, char *what, size_t cap,
		    struct port_error *err);

#endif
