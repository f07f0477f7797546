/* profile/idle: waits of idle threads are distinguished from waits of user code. */
#include "profile/idle.h"

#include "flamegraph/collapse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile *profile;
static uint32_t waits, on_cpu;

static uint32_t text(const char *s)
{
	uint32_t id;

	assert_int_equal(profile_text(profile, s, strlen(s), &id), 0);
	return id;
}

static int begin(void **state)
{
	struct profile_event event = {.has_period = true};

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	event.name = text("cpu-clock");
	assert_int_equal(profile_event(profile, &event, &on_cpu), 0);
	event.name = text("offcpu-time");
	event.off_cpu = true;
	assert_int_equal(profile_event(profile, &event, &waits), 0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	profile_free(profile);
	return 0;
}

/* "KIND MODULE NAME": k kernel, n native, r runtime, m managed in perf's form, f managed in full
 * form. */
static uint32_t frame(const char *what)
{
	struct profile_frame f = {
		.perf_name = PROFILE_NONE, .srcline = PROFILE_NONE, .status = FRAME_IS_NAMED};
	char module[32] = "", name[300] = "";
	uint32_t id;

	assert_int_equal(sscanf(what + 2, "%31s %299[^\n]", module, name), 2);
	f.kind = *what == 'k'   ? FRAME_KERNEL
		 : *what == 'n' ? FRAME_NATIVE
		 : *what == 'r' ? FRAME_RUNTIME
				: FRAME_MANAGED;
	f.module = text(module);
	f.name = text(name);
	if (*what != 'f')
		f.perf_name = f.name;
	assert_int_equal(profile_frame(profile, &f, &id), 0);
	return id;
}

/* Root first. */
static uint32_t stack_of(const char *const *frames)
{
	uint32_t stack = PROFILE_STACK_EMPTY;

	for (; *frames; frames++)
		assert_int_equal(profile_stack(profile, stack, frame(*frames), &stack), 0);
	return stack;
}

static uint32_t thread(const char *comm)
{
	struct profile_thread t = {.pid = 7, .tid = 8, .comm = text(comm)};
	uint32_t id;

	assert_int_equal(profile_thread(profile, &t, &id), 0);
	return id;
}

static bool is_idle(const char *comm, const char *const *frames)
{
	uint32_t t = thread(comm), stack = stack_of(frames);
	struct idle *idle;
	bool is;

	assert_int_equal(idle_new(profile, &idle), 0);
	is = idle_is(idle, t, stack);
	assert_int_equal(idle_is(idle, t, stack), is);
	assert_int_equal(idle_stack(idle, on_cpu, t, stack), stack);
	assert_int_equal(idle_stack(idle, waits, t, stack) != stack, is);
	idle_free(idle);
	return is;
}

#define STACK(...) ((const char *const[]){__VA_ARGS__, NULL})
#define WORKER                                          \
	"m jit instance void [System.Private.CoreLib] " \
	"System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart()[Tier0]"
#define FUTEX "n /lib/libc.so.6 pthread_cond_wait", "k [kernel] futex_wait", "k [kernel] schedule"
#define START "n /lib/libc.so.6 clone3", "r /x/libcoreclr.so [libcoreclr.so+0x10]"

static void a_thread_that_waits_for_a_cpu_is_not_idle(void **state)
{
	uint32_t t = thread(".NET TP Worker"), waiting,
		 stack = stack_of(STACK(START, WORKER,
					"m jit bool System.Threading.LowLevelLifoSemaphore::Wait()",
					FUTEX));
	struct idle *idle;

	(void)state;
	assert_int_equal(profile_mark(profile, stack, PROFILE_RUNNABLE, FRAME_RUNNABLE, &waiting),
			 0);
	assert_int_equal(idle_new(profile, &idle), 0);
	assert_true(idle_is(idle, t, stack));
	assert_false(idle_is(idle, t, waiting));
	assert_int_equal(idle_stack(idle, waits, t, waiting), waiting);
	idle_free(idle);
	/* Threads of the runtime are recognised by name. */
	stack = stack_of(STACK("r /x/libcoreclr.so [libcoreclr.so+0x10]", FUTEX));
	t = thread(".NET Finalizer");
	assert_int_equal(profile_mark(profile, stack, PROFILE_RUNNABLE, FRAME_RUNNABLE, &waiting),
			 0);
	assert_int_equal(idle_new(profile, &idle), 0);
	assert_true(idle_is(idle, t, stack));
	assert_false(idle_is(idle, t, waiting));
	idle_free(idle);
}

static void pool_threads_without_work_are_idle(void **state)
{
	(void)state;
	assert_true(is_idle(
		".NET TP Worker",
		STACK(START, WORKER,
		      "m jit bool System.Threading.LowLevelLifoSemaphore::WaitForSignal(int32)",
		      FUTEX)));
	assert_true(is_idle("renamed",
			    STACK(START, WORKER,
				  "m jit bool System.Threading.LowLevelLifoSemaphore::Wait(int32)",
				  "n /lib/libc.so.6 __sched_yield")));
	assert_true(is_idle(
		"x",
		STACK("f aot System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart()",
		      "f aot System.Threading.LowLevelLifoSemaphore.WaitForSignal(int32)", FUTEX)));
	assert_true(
		is_idle(".NET Timer", STACK(START,
					    "m jit void [System.Private.CoreLib] "
					    "System.Threading.TimerQueue::TimerThread()",
					    "m jit bool [System.Private.CoreLib] "
					    "System.Threading.WaitHandle::WaitOneNoCheck(int32)",
					    FUTEX)));
	assert_true(is_idle(".NET Sockets",
			    STACK(START,
				  "m jit void [System.Net.Sockets] "
				  "System.Net.Sockets.SocketAsyncEngine::EventLoop()",
				  "m jit valuetype Interop/Error [System.Net.Sockets] "
				  "Interop+Sys::WaitForSocketEvents(native int)",
				  "r /x/libSystem.Native.so SystemNative_WaitForSocketEvents",
				  "n /lib/libc.so.6 epoll_wait")));
}

static void waits_of_user_code_are_not_idle(void **state)
{
	(void)state;
	/* A lock, a task and a sleep in a pool thread. */
	assert_false(is_idle(".NET TP Worker",
			     STACK(START, WORKER,
				   "m jit bool System.Threading.ThreadPoolWorkQueue::Dispatch()",
				   "m jit void [app] Shop.Orders::Find()",
				   "m jit void System.Threading.Monitor::Enter(object)", FUTEX)));
	assert_false(is_idle(
		".NET TP Worker",
		STACK(START, WORKER, "m jit void [app] Shop.Orders::Find()", /* Dispatch inlined */
		      "m jit bool System.Threading.Tasks.Task::InternalWait()", FUTEX)));
	assert_false(is_idle(".NET TP Worker",
			     STACK(START, WORKER, "m jit void [app] Shop.Orders::Find()", FUTEX)));
	assert_false(is_idle("dotnet",
			     STACK(START, "m jit void [app] Program::Main()",
				   "m jit void System.Threading.Thread::Sleep(int32)", FUTEX)));
	assert_false(is_idle(".NET Finalizer",
			     STACK(START, "m jit void [app] Shop.Lock::Finalize()", FUTEX)));
	/* Names that are only similar. */
	assert_false(is_idle(
		"x", STACK(START, "m jit void [app] My.System.Threading.TimerQueue::TimerThread()",
			   FUTEX)));
	assert_false(is_idle(
		"x",
		STACK(START, "m jit void System.Threading.TimerQueue::TimerThreadToo()", FUTEX)));
	assert_false(is_idle(
		"x",
		STACK(START, "m jit void [app] Shop::Run(System.Threading.TimerQueue::TimerThread)",
		      FUTEX)));
	assert_false(
		is_idle("x", STACK("n /bin/app System.Threading.TimerQueue::TimerThread", FUTEX)));
	/* A native program. */
	assert_false(is_idle("app", STACK("n /lib/libc.so.6 clone3", "n /bin/app worker", FUTEX)));
}

static void a_waiting_main_thread_is_idle(void **state)
{
	(void)state;
	assert_true(is_idle("dotnet",
			    STACK("n /lib/libc.so.6 __libc_start_main",
				  "m jit void [app] Program::<Main>$(string[])",
				  "m jit void [H] "
				  "Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::"
				  "Run(class IHost)",
				  "m jit bool System.Threading.Tasks.Task::InternalWait(int32)",
				  "m jit bool System.Threading.ManualResetEventSlim::Wait()",
				  "m jit bool System.Threading.Monitor::Wait(object)", FUTEX)));
	assert_true(is_idle(
		"app",
		STACK("m jit void [app] Program::<Main>(string[])",
		      "m jit void System.Runtime.CompilerServices.TaskAwaiter::GetResult()",
		      "m jit bool System.Threading.Tasks.Task::SpinThenBlockingWait()", FUTEX)));
	/* The top-level program itself counts as user code. */
	assert_false(
		is_idle("app", STACK("m jit void [app] Program::<Main>$(string[])",
				     "m jit bool System.Threading.Tasks.Task::InternalWait(int32)",
				     FUTEX)));
	assert_false(
		is_idle("app", STACK("m jit void [app] Program::<Main>(string[])",
				     "m jit void [app] Program+<Main>d__0::MoveNext()",
				     "m jit bool System.Threading.Monitor::Wait(object)", FUTEX)));
}

static void runtime_threads_without_managed_code_are_idle(void **state)
{
	(void)state;
	assert_true(is_idle(".NET Finalizer", STACK(START, FUTEX)));
	assert_true(is_idle(".NET EventPipe", STACK(START, "n /lib/libc.so.6 __poll")));
	assert_true(is_idle(".NET SigHandler",
			    STACK("n /lib/ld-musl-x86_64.so.1 start",
				  "r /x/libSystem.Native.so [libSystem.Native.so+0x1]",
				  "n /lib/ld-musl-x86_64.so.1 read")));
	assert_false(is_idle("worker", STACK(START, FUTEX)));
	assert_false(is_idle(".NET Tiered Com",
			     STACK(START, "r /x/libclrjit.so [libclrjit.so+0x1]", FUTEX)));
	assert_false(is_idle(".NET Tiered Com", STACK(START, "n /lib/libc.so.6 pthread_mutex_lock",
						      "k [kernel] futex_wait")));
	assert_false(is_idle(".NET Tiered Com", STACK(START, "n /lib/libc.so.6 memcpy",
						      "k [kernel] asm_sysvec_apic_timer_interrupt",
						      "k [kernel] schedule")));
	assert_false(is_idle(".NET Server GC", STACK(START, "r /x/libcoreclr.so mark")));
	assert_false(is_idle(".NET Finalizer", STACK("k [kernel] schedule")));
}

static void put_wait(uint32_t event, const char *comm, uint64_t ns, const char *const *frames)
{
	const struct profile_sample s = {
		.weight = ns, .event = event, .thread = thread(comm), .stack = stack_of(frames)};

	assert_int_equal(profile_sample(profile, &s), 0);
}

static void assert_folded(bool show_idle, const char *expected)
{
	struct collapse_options options = {
		.names = COLLAPSE_PERF, .event_filter = "offcpu-time", .divisor = 1000};
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;

	if (!show_idle)
		assert_int_equal(idle_new(profile, &options.idle), 0);
	assert_int_equal(collapse_write(profile, &options, &out, &stats), 0);
	idle_free(options.idle);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, expected);
	outbuf_close(&out);
}

static void idle_waits_fold_to_one_frame_below_the_thread(void **state)
{
	(void)state;
	put_wait(waits, ".NET Finalizer", 5000, STACK(START, FUTEX));
	put_wait(waits, ".NET Finalizer", 2000, STACK(START, "n /lib/libc.so.6 __poll"));
	put_wait(waits, "app", 3000, STACK("n /bin/app worker", "n /lib/libc.so.6 read"));
	put_wait(on_cpu, ".NET Finalizer", 9000, STACK(START, FUTEX));
	put_wait(waits, ".NET Finalizer", 1000, (const char *const[]){NULL});
	assert_folded(false, ".NET_Finalizer 1\n.NET_Finalizer;[idle] 7\napp;worker;read 3\n");
	assert_folded(true,
		      ".NET_Finalizer 1\n.NET_Finalizer;clone3;[libcoreclr.so+0x10];__poll 2\n"
		      ".NET_Finalizer;clone3;[libcoreclr.so+0x10];pthread_cond_wait;futex_wait;"
		      "schedule 5\napp;worker;read 3\n");
}

static void methods_are_found_by_name(void **state)
{
	(void)state;
	assert_true(idle_is_method("A.B::C", "A.B::C"));
	assert_true(idle_is_method("void [x] A.B::C(int32)[Tier1]", "A.B::C"));
	assert_true(idle_is_method("void [x]A.B+D::C(int32)", "A.B+D::C"));
	assert_true(idle_is_method("A.B.D.C(int32)", "A.B+D::C"));
	assert_true(idle_is_method("A.B::Anything", "A.B::"));
	assert_true(idle_is_method("x A.B::<Main>(string[])", "::<Main>"));
	assert_false(idle_is_method("A.B::C2", "A.B::C"));
	assert_false(idle_is_method("A.B::<Main>$", "::<Main>"));
	assert_false(idle_is_method("AA.B::C", "A.B::C"));
	assert_false(idle_is_method("A.B+D::C", "A.B::C"));
	assert_false(idle_is_method("A.B::", "A.B::"));
	assert_false(idle_is_method("A.B", "A.B::C"));
	assert_false(idle_is_method("A.B:", "A.B::C"));
	assert_false(idle_is_method("", "A.B::C"));
	assert_false(idle_is_method("X(A.B::C)", "A.B::C"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(pool_threads_without_work_are_idle, begin, end),
		cmocka_unit_test_setup_teardown(a_thread_that_waits_for_a_cpu_is_not_idle, begin,
						end),
		cmocka_unit_test_setup_teardown(waits_of_user_code_are_not_idle, begin, end),
		cmocka_unit_test_setup_teardown(a_waiting_main_thread_is_idle, begin, end),
		cmocka_unit_test_setup_teardown(runtime_threads_without_managed_code_are_idle,
						begin, end),
		cmocka_unit_test_setup_teardown(idle_waits_fold_to_one_frame_below_the_thread,
						begin, end),
		cmocka_unit_test(methods_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
