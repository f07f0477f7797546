/* The names on a stack tell why its thread waits. */
#include "profcpu/managed/cause_rules.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define CORECLR "/app/libcoreclr.so!f"
#define COND "/lib/libc.so.6!pthread_cond_wait@@GLIBC_2.3.2"
#define PROGRAM ",Program.Main(string[])"

static struct profile *profile;

/* The stack of frames, innermost first: "k:NAME" of the kernel, "PATH!NAME" native, else managed.
 */
static uint32_t stack_of(const char *frames)
{
	uint32_t ids[32], stack;
	size_t n = 0;
	bool cut;
	AUTO_FREE char *copy = strdup(frames);
	char *next = copy;

	assert_non_null(copy);
	/* Commas end a frame, except between parentheses. */
	for (int depth = 0; next;) {
		struct profile_frame f = {.perf_name = PROFILE_NONE,
					  .module = PROFILE_NONE,
					  .srcline = PROFILE_NONE,
					  .kind = FRAME_MANAGED};
		char *name = next, *at = next, *bang;

		for (; *at && (depth || *at != ','); at++)
			depth += (*at == '(') - (*at == ')');
		next = *at ? at + 1 : NULL;
		*at = 0;
		bang = strchr(name, '!');
		if (!strncmp(name, "k:", 2)) {
			f.kind = FRAME_KERNEL;
			name += 2;
		} else if (bang) {
			*bang = 0;
			f.kind = strstr(name, "libcl") || strstr(name, "libcoreclr") ||
						 strstr(name, "libSystem")
					 ? FRAME_RUNTIME
					 : FRAME_NATIVE;
			assert_int_equal(profile_text(profile, name, strlen(name), &f.module), 0);
			name = bang + 1;
		}
		assert_int_equal(profile_text(profile, name, strlen(name), &f.name), 0);
		assert_int_equal(profile_frame(profile, &f, &ids[n++]), 0);
	}
	assert_int_equal(profile_stack_of(profile, ids, n, false, &stack, &cut), 0);
	return stack;
}

static const struct {
	const char *frames;
	enum wait_cause cause;
	bool in_runtime;
} cases[] = {
	/* Managed code names the cause, whatever is below it. */
	{"k:schedule,k:futex_wait," COND "," CORECLR
	 ",System.Threading.Thread.Sleep(int32)" PROGRAM,
	 CAUSE_TIMER, true},
	{COND "," CORECLR ",System.Threading.Monitor.Enter_Slowpath(object)" PROGRAM, CAUSE_LOCK,
	 true},
	{COND "," CORECLR
	      ",System.Threading.WaitHandle.WaitOneNoCheck(int32,bool,object,WaitHandle)"
	      ",System.Threading.Lock.TryEnterSlow(int32,Lock.ThreadId)" PROGRAM,
	 CAUSE_LOCK, true},
	{COND "," CORECLR ",System.Threading.WaitHandle.WaitOne()" PROGRAM, CAUSE_EVENT, true},
	/* The outermost of the methods that wait. */
	{COND "," CORECLR ",System.Threading.Monitor.Wait(object,int32)"
	      ",System.Threading.ManualResetEventSlim.Wait(int32,CancellationToken)"
	      ",System.Threading.Tasks.Task.SpinThenBlockingWait(int32,CancellationToken)"
	      ",System.Threading.Tasks.Task.InternalWaitCore(int32,CancellationToken)" PROGRAM,
	 CAUSE_TASK, true},
	{COND "," CORECLR ",System.Threading.Monitor.Wait(object,int32)"
	      ",System.Threading.SemaphoreSlim.WaitCore(int64,CancellationToken)" PROGRAM,
	 CAUSE_SEMAPHORE, true},
	/* A task that waits may have been started by a thread that waits for it. */
	{COND
	 "," CORECLR ",System.Threading.Thread.Sleep(int32)"
	 ",System.Threading.ExecutionContext.RunInternal(ExecutionContext,ContextCallback,object)"
	 ",System.Threading.Tasks.Task.InternalWaitCore(int32,CancellationToken)" PROGRAM,
	 CAUSE_TIMER, true},
	{COND "," CORECLR ",System.Threading.Thread.Sleep(int32),Program.Item()"
	      ",System.Threading.Tasks.Task.InternalWaitCore(int32,CancellationToken)" PROGRAM,
	 CAUSE_TIMER, true},
	/* As the runtime spells names. */
	{COND "," CORECLR ",bool [System.Private.CoreLib] System.Threading.Thread::Sleep(int32)",
	 CAUSE_TIMER, true},
	/* The kernel names what managed code does not. */
	{"k:schedule,k:sk_wait_data,k:tcp_recvmsg,/lib/libc.so.6!__libc_recvmsg"
	 ",/app/libSystem.Native.so!SystemNative_ReceiveMessage"
	 ",Interop.Sys.ReceiveMessage(SafeHandle,Interop.Sys.MessageHeader*,SocketFlags,int64*)"
	 ",System.Net.Sockets.Socket.Receive(uint8[])" PROGRAM,
	 CAUSE_NETWORK, false},
	{"k:anon_pipe_read,/lib/libc.so.6!read,[stub] PInvoke(native int,uint8*,int32)" PROGRAM,
	 CAUSE_PIPE, false},
	{"k:io_schedule,k:folio_wait_bit,k:ext4_sync_file,/lib/libc.so.6!fsync" PROGRAM, CAUSE_DISK,
	 false},
	{"k:schedule,k:rwsem_down_read_slowpath,k:asm_exc_page_fault," CORECLR PROGRAM,
	 CAUSE_MEMORY, true},
	{"k:rwsem_down_write_slowpath,k:vm_mmap_pgoff,/lib/libc.so.6!mmap64," CORECLR PROGRAM,
	 CAUSE_MEMORY, true},
	/* The lock of a file. */
	{"k:rwsem_down_write_slowpath,k:down_write,k:ext4_buffered_write_iter,k:vfs_write"
	 ",/lib/libc.so.6!__libc_pwrite" PROGRAM,
	 CAUSE_DISK, false},
	{COND "," CORECLR ",System.Threading.WaitHandle.WaitOneNoCheck(int32,bool)"
	      ",System.Diagnostics.ProcessWaitState.WaitForExit(int32)"
	      ",System.Diagnostics.Process.WaitForExitCore(int32)" PROGRAM,
	 CAUSE_PROCESS, true},
	{"k:do_wait,/lib/libc.so.6!wait4,/app/app!main", CAUSE_PROCESS, false},
	{"k:do_epoll_wait,/lib/libc.so.6!epoll_wait,/app/app!main", CAUSE_POLL, false},
	{COND "," CORECLR ",System.Threading.Thread.Join()" PROGRAM, CAUSE_THREAD, true},
	{COND "," CORECLR ",System.Threading.Tasks.Task.InternalWaitCore(int32,CancellationToken)"
	      ",System.Threading.Tasks.TaskReplicator.Run(Parallel.RangeWorker)"
	      ",System.Threading.Tasks.Parallel.ForWorker(int32,int32)" PROGRAM,
	 CAUSE_EVENT, true},
	/* Without kernel frames, libc does. */
	{"/lib/libc.so.6!__libc_recvmsg,/app/libSystem.Native.so!SystemNative_ReceiveMessage"
	 ",Interop.Sys.ReceiveMessage(SafeHandle)" PROGRAM,
	 CAUSE_NETWORK, false},
	{"/lib/libc.so.6!clock_nanosleep@@GLIBC_2.17,/app/app!main", CAUSE_TIMER, false},
	{"/lib/libc.so.6!__GI___lll_lock_wait,/lib/libc.so.6!pthread_mutex_lock@@GLIBC_2.2.5,/app/"
	 "app!main",
	 CAUSE_LOCK, false},
	{COND ",/app/app!main", CAUSE_EVENT, false},
	{"/lib/libc.so.6!recvmsg_more,/app/app!main", CAUSE_NETWORK, false},
	{"/lib/libc.so.6!connection,/app/app!main", CAUSE_UNKNOWN, false},
	/* Locks and conditions of libc say nothing in the runtime. */
	{"/lib/libc.so.6!pthread_mutex_lock@@GLIBC_2.2.5," CORECLR PROGRAM, CAUSE_RUNTIME, true},
	{COND "," CORECLR ",Program.Work()" PROGRAM, CAUSE_RUNTIME, true},
	{COND ",/app/libcoreclr.so!Thread::RareDisablePreemptiveGC()" PROGRAM, CAUSE_GC, true},
	{COND ",/app/libcoreclr.so!AwareLock::EnterEpilogHelper(Thread*, int)" PROGRAM, CAUSE_LOCK,
	 true},
	{COND "," CORECLR ",/app/libclrjit.so!f," CORECLR PROGRAM, CAUSE_JIT, true},
	{"/lib/libc.so.6!mmap64,/app/libclrjit.so!f," CORECLR PROGRAM, CAUSE_JIT, false},
	/* Libraries that wait, if the stack shows no more. */
	{COND "," CORECLR ",Interop.Sys.FSync(SafeFileHandle)"
	      ",System.IO.Strategies.FileStreamHelpers.FlushToDisk(SafeFileHandle)" PROGRAM,
	 CAUSE_DISK, true},
	{"k:schedule,/app/app!main", CAUSE_UNKNOWN, false},
};

static void each_stack_has_its_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cause_by_names found = cause_of_stack(profile, stack_of(cases[i].frames));

		if (found.cause != cases[i].cause || found.in_runtime != cases[i].in_runtime)
			fail_msg("%s: %s, in the runtime: %d", cases[i].frames,
				 cause_word(found.cause), found.in_runtime);
	}
}

static void a_missing_stack_is_told(void **state)
{
	uint32_t stack;

	(void)state;
	assert_int_equal(profile_label(profile, PROFILE_NO_STACK, FRAME_LABEL, &stack), 0);
	assert_int_equal(cause_of_stack(profile, stack).cause, CAUSE_NO_STACK);
}

static void causes_have_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CAUSES; i++) {
		assert_non_null(cause_word(i));
		assert_int_equal(cause_label(i)[0], '[');
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(cause_word(i), cause_word(k));
	}
}

static int setup(void **state)
{
	(void)state;
	return profile_new(&profile);
}

static int teardown(void **state)
{
	(void)state;
	profile_free(profile);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_stack_has_its_cause, setup, teardown),
		cmocka_unit_test_setup_teardown(a_missing_stack_is_told, setup, teardown),
		cmocka_unit_test(causes_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
