#include "symbols/jit/runtime.h"

#include "base/path.h"

#include <stdbool.h>
#include <string.h>

/* How the name of a file goes on after that of its runtime. */
enum jit_runtime_rest {
	REST_NONE,
	REST_VERSION, /* "3", "3.12", "3.9-c.so", or nothing */
	REST_ANY,
};

static const struct jit_runtime_file {
	const char *name;
	enum jit_runtime_rest rest;
	enum jit_runtime runtime;
} jit_runtime_files[] = {
	{"libcoreclr.so", REST_NONE, JIT_RUNTIME_DOTNET},
	{"libjvm.so", REST_NONE, JIT_RUNTIME_JAVA},
	{"node", REST_VERSION, JIT_RUNTIME_NODE},
	{"nodejs", REST_NONE, JIT_RUNTIME_NODE},
	{"libnode.so", REST_ANY, JIT_RUNTIME_NODE},
	{"pypy", REST_VERSION, JIT_RUNTIME_PYPY},
	{"libpypy", REST_VERSION, JIT_RUNTIME_PYPY},
	{"llvmjit.so", REST_NONE, JIT_RUNTIME_POSTGRES},
	{"beam.smp", REST_NONE, JIT_RUNTIME_ERLANG},
	{"opcache.so", REST_NONE, JIT_RUNTIME_PHP},
	{"ruby", REST_VERSION, JIT_RUNTIME_RUBY},
	{"libruby", REST_ANY, JIT_RUNTIME_RUBY},
	{"python", REST_VERSION, JIT_RUNTIME_PYTHON},
	{"libpython", REST_VERSION, JIT_RUNTIME_PYTHON},
};

static const char *const jit_runtime_remedies[JIT_RUNTIMES] = {
	[JIT_RUNTIME_UNKNOWN] = "switch one of them on, if its runtime has an option for that",
	[JIT_RUNTIME_PYTHON] =
		"`python3 -X perf` (3.12 or later) names Python functions; code that "
		"an extension compiled needs an option of that extension",
	[JIT_RUNTIME_RUBY] = "start it with `ruby --yjit --yjit-perf` (3.3 or later)",
	[JIT_RUNTIME_PHP] = "start it with `php -d opcache.jit_debug=16`, or set that in php.ini",
	[JIT_RUNTIME_ERLANG] = "start it with `erl +JPperf true` (OTP 24 or later)",
	[JIT_RUNTIME_POSTGRES] = "set jit_profiling_support = on in postgresql.conf and reload; "
				 "sessions that begin later write jitdumps",
	[JIT_RUNTIME_PYPY] = "PyPy has no option for that; its own profiler vmprof names Python "
			     "functions",
	[JIT_RUNTIME_NODE] = "start it with `node --perf-basic-prof` or `node --perf-prof`",
	[JIT_RUNTIME_JAVA] =
		"`jcmd PID Compiler.perfmap` before it ends, then `profcpu postprocess DIR`; or "
		"start java (17 or later) with -XX:+UnlockDiagnosticVMOptions "
		"-XX:+DumpPerfMapAtExit; add -XX:+PreserveFramePointer for whole stacks",
};

/* Whether a text begins like a version does, or is empty. */
static bool jit_is_version(const char *text)
{
	return !*text || (*text >= '0' && *text <= '9');
}

enum jit_runtime jit_runtime_of(const char *path)
{
	const char *name = path_base(path);
	size_t len = strcspn(name, " "); /* " (deleted)" may follow */

	for (size_t i = 0; i < sizeof(jit_runtime_files) / sizeof(*jit_runtime_files); i++) {
		const struct jit_runtime_file *f = &jit_runtime_files[i];
		size_t n = strlen(f->name);

		if (n > len || strncmp(name, f->name, n))
			continue;
		if (n == len || f->rest == REST_ANY ||
		    (f->rest == REST_VERSION && jit_is_version(name + n)))
			return f->runtime;
	}
	return JIT_RUNTIME_UNKNOWN;
}

const char *jit_runtime_remedy(enum jit_runtime runtime)
{
	return jit_runtime_remedies[runtime];
}

int jit_runtimes_map(struct jit_runtimes *r, int32_t pid, enum jit_runtime runtime)
{
	if (runtime <= jit_runtimes_find(r, pid))
		return 0;
	return hashmap_put(&r->by_pid, (uint32_t)pid, runtime);
}

int jit_runtimes_fork(struct jit_runtimes *r, int32_t pid, int32_t ppid)
{
	enum jit_runtime runtime = jit_runtimes_find(r, ppid);

	if (runtime)
		return hashmap_put(&r->by_pid, (uint32_t)pid, runtime);
	hashmap_remove(&r->by_pid, (uint32_t)pid);
	return 0;
}

void jit_runtimes_exec(struct jit_runtimes *r, int32_t pid)
{
	hashmap_remove(&r->by_pid, (uint32_t)pid);
}

enum jit_runtime jit_runtimes_find(const struct jit_runtimes *r, int32_t pid)
{
	const uint32_t *known = hashmap_get(&r->by_pid, (uint32_t)pid);

	return known ? (enum jit_runtime) * known : JIT_RUNTIME_UNKNOWN;
}

void jit_runtimes_free(struct jit_runtimes *r)
{
	hashmap_free(&r->by_pid);
}
