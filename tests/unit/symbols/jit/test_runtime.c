/* symbols/jit/runtime: names of files give the runtime of a process, and the runtime gives the
 * remedy. */
#include "symbols/jit/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof(*(a)))

static const struct {
	const char *path;
	enum jit_runtime runtime;
	const char *remedy; /* a part of it that no other runtime's has; NULL: it has none */
} files[] = {
	{"/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", JIT_RUNTIME_JAVA,
	 "jcmd PID Compiler.perfmap"},
	{"/usr/bin/node", JIT_RUNTIME_NODE, "--perf-basic-prof"},
	{"/usr/bin/nodejs (deleted)", JIT_RUNTIME_NODE, "--perf-prof"},
	{"/usr/lib/x86_64-linux-gnu/libnode.so.108", JIT_RUNTIME_NODE, "node"},
	{"/usr/bin/python3.12", JIT_RUNTIME_PYTHON, "-X perf"},
	{"/usr/lib/x86_64-linux-gnu/libpython3.13.so.1.0", JIT_RUNTIME_PYTHON, "3.12 or later"},
	{"/usr/lib/x86_64-linux-gnu/libpypy3.9-c.so", JIT_RUNTIME_PYPY, "vmprof"},
	{"/usr/bin/pypy3", JIT_RUNTIME_PYPY, "vmprof"},
	{"/usr/lib/postgresql/15/lib/llvmjit.so", JIT_RUNTIME_POSTGRES, "jit_profiling_support"},
	{"/usr/lib/php/20220829/opcache.so", JIT_RUNTIME_PHP, "opcache.jit_debug"},
	{"/usr/bin/ruby3.3", JIT_RUNTIME_RUBY, "--yjit-perf"},
	{"/usr/lib/x86_64-linux-gnu/libruby-3.3.so.3.3", JIT_RUNTIME_RUBY, "--yjit-perf"},
	{"/usr/lib/erlang/erts-13.1.5/bin/beam.smp", JIT_RUNTIME_ERLANG, "+JPperf"},
	{"/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0/libcoreclr.so", JIT_RUNTIME_DOTNET,
	 NULL},
	{"/usr/bin/nodejs-exporter", JIT_RUNTIME_UNKNOWN, "if its runtime has an option"},
	{"/usr/bin/node_exporter", JIT_RUNTIME_UNKNOWN, "if its runtime has an option"},
	{"/srv/node/app", JIT_RUNTIME_UNKNOWN, "if its runtime has an option"},
	{"/usr/lib/libpythonic.so", JIT_RUNTIME_UNKNOWN, "if its runtime has an option"},
	{"libjvm.so", JIT_RUNTIME_JAVA, "-XX:+PreserveFramePointer"},
	{"", JIT_RUNTIME_UNKNOWN, "if its runtime has an option"},
};

static void each_runtime_has_its_own_remedy(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		enum jit_runtime runtime = jit_runtime_of(files[i].path);
		const char *remedy = jit_runtime_remedy(runtime);

		assert_int_equal(runtime, files[i].runtime);
		if (!files[i].remedy) {
			assert_null(remedy);
			continue;
		}
		assert_non_null(strstr(remedy, files[i].remedy));
		assert_true(runtime == JIT_RUNTIME_NODE || !strstr(remedy, "node"));
		assert_null(strstr(remedy, "jit-names"));
	}
	/* Its stubs have no names anywhere. */
	assert_null(jit_runtime_remedy(JIT_RUNTIME_NATIVE_AOT));
}

static void processes_have_the_runtimes_that_they_map(void **state)
{
	struct jit_runtimes r = {0};

	(void)state;
	jit_runtimes_exec(&r, 1);
	assert_int_equal(jit_runtimes_find(&r, 1), JIT_RUNTIME_UNKNOWN);
	assert_int_equal(jit_runtimes_map(&r, 1, JIT_RUNTIME_UNKNOWN), 0);
	assert_int_equal(r.by_pid.len, 0);
	assert_int_equal(jit_runtimes_map(&r, 1, JIT_RUNTIME_POSTGRES), 0);
	/* A JVM inside of another program makes most of its code, whatever comes first. */
	assert_int_equal(jit_runtimes_map(&r, 1, JIT_RUNTIME_JAVA), 0);
	assert_int_equal(jit_runtimes_map(&r, 1, JIT_RUNTIME_PYTHON), 0);
	assert_int_equal(jit_runtimes_find(&r, 1), JIT_RUNTIME_JAVA);
	/* A thread, and a child with the same maps */
	assert_int_equal(jit_runtimes_fork(&r, 1, 1), 0);
	assert_int_equal(jit_runtimes_fork(&r, 2, 1), 0);
	assert_int_equal(jit_runtimes_find(&r, 1), JIT_RUNTIME_JAVA);
	assert_int_equal(jit_runtimes_find(&r, 2), JIT_RUNTIME_JAVA);
	jit_runtimes_exec(&r, 2);
	assert_int_equal(jit_runtimes_find(&r, 2), JIT_RUNTIME_UNKNOWN);
	/* A PID that is used again */
	assert_int_equal(jit_runtimes_fork(&r, 1, 2), 0);
	assert_int_equal(jit_runtimes_find(&r, 1), JIT_RUNTIME_UNKNOWN);
	jit_runtimes_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_runtime_has_its_own_remedy),
		cmocka_unit_test(processes_have_the_runtimes_that_they_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
