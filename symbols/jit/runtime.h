/*
 * The runtimes that compile code while they run, and what each of them needs to write the names of
 * that code for perf. Sources: the manuals of the runtimes, and runs of java 17, node 20 and
 * PostgreSQL 15.
 */
#ifndef SYMBOLS_JIT_RUNTIME_H
#define SYMBOLS_JIT_RUNTIME_H

#include "base/hashmap.h"

#include <stdint.h>

/* In a process with several of them, the last one in this order made most of the code. */
enum jit_runtime {
	JIT_RUNTIME_UNKNOWN,
	JIT_RUNTIME_NATIVE_AOT, /* .NET compiled ahead of time; no image name shows it */
	JIT_RUNTIME_PYTHON,
	JIT_RUNTIME_RUBY,
	JIT_RUNTIME_PHP,
	JIT_RUNTIME_ERLANG,
	JIT_RUNTIME_POSTGRES,
	JIT_RUNTIME_PYPY,
	JIT_RUNTIME_NODE,
	JIT_RUNTIME_JAVA,
	JIT_RUNTIME_DOTNET,
	JIT_RUNTIMES,
};

/* The runtime that a mapped file belongs to, by its name. */
enum jit_runtime jit_runtime_of(const char *path);

/*
 * The way to names of its code, in words. PID and DIR stand for the process and the recording's
 * directory. NULL: there is none. Static.
 */
const char *jit_runtime_remedy(enum jit_runtime runtime);

/* The runtimes of processes. A zeroed struct is empty. */
struct jit_runtimes {
	struct hashmap by_pid;
};

/* A process maps a file of a runtime. Returns 0 or -ENOMEM. */
int jit_runtimes_map(struct jit_runtimes *r, int32_t pid, enum jit_runtime runtime);

/* A fork of a process or, with pid == ppid, of a thread. Returns 0 or -ENOMEM. */
int jit_runtimes_fork(struct jit_runtimes *r, int32_t pid, int32_t ppid);

/* A process executes another program. */
void jit_runtimes_exec(struct jit_runtimes *r, int32_t pid);

enum jit_runtime jit_runtimes_find(const struct jit_runtimes *r, int32_t pid);

void jit_runtimes_free(struct jit_runtimes *r);

#endif
