#include "profile/idle.h"

#include "base/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Role of a frame in a wait. */
enum idle_part {
	PART_UNSET,
	PART_NATIVE, /* kernel or native code; no evidence */
	PART_JIT,    /* the thread compiles a method */
	PART_WAITS,  /* managed code that only waits */
	PART_LOOP,   /* a thread that runs this is idle when it waits */
	PART_OTHER,  /* other managed code, or time without a CPU, so the wait is not idle */
};

/*
 * Methods in which a thread is idle while it only waits. Sources: dotnet/runtime v8.0 to v10.0,
 * src/libraries; dotnet/aspnetcore, src.
 */
static const char *const loops[] = {
	/*
	 * Thread pool: a worker without work, the thread that adjusts the number of workers, and
	 * the one that waits for registered handles. User code is called from Dispatch, which is
	 * not a method of WorkerThread.
	 */
	"System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart",
	"System.Threading.PortableThreadPool+GateThread::GateThreadStart",
	"System.Threading.PortableThreadPool+WaitThread::WaitThreadStart",
	/* Waits until the next timer is due; callbacks run in the pool. */
	"System.Threading.TimerQueue::TimerThread",
	/* Polls all sockets with epoll; ready ones are handled in the pool. */
	"System.Net.Sockets.SocketAsyncEngine::EventLoop",
	/* Waits for inotify, for example for changes of configuration files. */
	"System.IO.FileSystemWatcher+RunningInstance::ProcessEvents",
	/* Event counters and events of listeners; about once per second. */
	"System.Diagnostics.Tracing.CounterGroup::PollForValues",
	"System.Diagnostics.Tracing.EventPipeEventDispatcher::DispatchEventsToEventListeners",
	/* Kestrel's clock. */
	"Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat::TimerLoop",
	/* Waits while the console logger's queue is empty. */
	"Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor::ProcessLogQueue",
	/* The main thread of a service, which waits for the service's end. */
	"Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::Run",
	"Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::WaitForShutdown",
	"Microsoft.AspNetCore.Hosting.WebHostExtensions::Run",
	"Microsoft.AspNetCore.Hosting.WebHostExtensions::WaitForShutdown",
	"Microsoft.AspNetCore.Builder.WebApplication::Run",
	/* The entry point that C# generates for an asynchronous Main; waits for its task. */
	"::<Main>",
};

/* Methods that can be above a method of `loops` during a wait. None of them calls user code. */
static const char *const waits[] = {
	"System.Threading.LowLevelLifoSemaphore::",
	"System.Threading.LowLevelLifoSemaphoreBase::",
	"System.Threading.LowLevelMonitor::",
	"System.Threading.LowLevelLock::",
	"System.Threading.LowLevelSpinWaiter::",
	"System.Threading.PortableThreadPool+WorkerThread::", /* between work and idleness */
	"System.Threading.PortableThreadPool+GateThread::",
	"System.Threading.WaitSubsystem::",
	"System.Threading.WaitSubsystem+ThreadWaitInfo::",
	"System.Threading.WaitSubsystem+WaitableObject::",
	"System.Threading.WaitHandle::",
	"System.Threading.Monitor::Wait",
	"System.Threading.Monitor::ObjWait",
	"System.Threading.Condition::",
	"System.Threading.ManualResetEventSlim::",
	"System.Threading.SpinWait::",
	"System.Threading.Thread::Sleep",
	"System.Threading.Thread::SleepInternal",
	"System.Threading.Thread::UninterruptibleSleep0",
	"System.Threading.Thread::Yield",
	"System.Threading.Thread::YieldInternal",
	"System.Threading.Tasks.Task::Wait",
	"System.Threading.Tasks.Task::InternalWait",
	"System.Threading.Tasks.Task::InternalWaitCore",
	"System.Threading.Tasks.Task::SpinThenBlockingWait",
	"System.Threading.Tasks.Task::SpinWait",
	"System.Runtime.CompilerServices.TaskAwaiter::",
	"System.IO.FileSystemWatcher+RunningInstance::TryReadEvent",
	"Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor::TryDequeue",
	"Interop+Sys::Read",
	"Interop+Sys::WaitForSocketEvents",
	"::IL_STUB_PInvoke",
};

/*
 * Names of runtime threads that run no managed code while they wait, cut to the kernel's 15
 * characters. Sources in src/coreclr: SetThreadName, CreateNewThread, CreateSuspendableThread,
 * PAL_SetCurrentThreadName.
 */
static const char *const threads[] = {
	/* Waits for objects to finalize; finalizers themselves are managed code. */
	".NET Finalizer",
	/* Waits for methods to recompile; libclrjit on the stack shows compilation. */
	".NET Tiered Com",
	/* Wait between collections. */
	".NET Server GC",
	".NET BGC",
	/* PAL: waits for signalled objects of other processes. */
	".NET SynchManag",
	/* Server of the diagnostic port. */
	".NET EventPipe",
	/* Wait for a debugger. */
	".NET DebugPipe",
	".NET Debugger",
	/* Waits for signals that managed code handles. */
	".NET SigHandler",
};

struct idle {
	struct profile *profile;
	uint8_t *parts;  /* enum idle_part of each frame */
	uint8_t *stacks; /* STACK_* of each stack */
	uint8_t *comms;  /* of each thread; 0: unknown, 1: a thread of the runtime, 2: another */
	uint32_t stack;  /* the stack of IDLE_NAME */
};

enum {
	STACK_UNSET,
	STACK_IDLE,
	STACK_BUSY,
	STACK_RUNTIME /* idle if the thread belongs to the runtime */
};

static bool is_identifier(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '$' || c == '<' || c == '>' || c == '`';
}

/*
 * Returns whether the text at `at` continues with the method. The full form has '.' for "::" and
 * for the '+' of nested types.
 */
static bool matches_method(const char *at, const char *method)
{
	for (; *method; method++, at++) {
		if (method[0] == ':' && method[1] == ':') {
			if (at[0] == ':' && at[1] == ':')
				at++;
			else if (at[0] != '.')
				return false;
			method++;
			if (!method[1])
				return is_identifier(at[1]) || at[1] == '.';
		} else if (*at != *method && !(*method == '+' && (*at == '.' || *at == '/'))) {
			return false;
		}
	}
	return !is_identifier(*at);
}

bool idle_is_method(const char *name, const char *method)
{
	size_t len = strcspn(name, "(");
	bool any_type = method[0] == ':';

	for (size_t i = 0; i < len; i++)
		if ((any_type || !i || name[i - 1] == ' ' || name[i - 1] == ']') &&
		    matches_method(name + i, method))
			return true;
	return false;
}

static bool is_one_of(const char *name, const char *const *methods, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (idle_is_method(name, methods[i]))
			return true;
	return false;
}

#define IS_ONE_OF(name, methods) is_one_of(name, methods, sizeof(methods) / sizeof((methods)[0]))

static const char *module_file_name(const struct idle *idle, const struct profile_frame *frame)
{
	const char *path = frame->module == PROFILE_NONE
				   ? ""
				   : profile_text_of(idle->profile, frame->module, NULL);

	return path_base(path);
}

static enum idle_part classify_frame(const struct idle *idle, uint32_t number)
{
	const struct profile_frame *frame = profile_frame_of(idle->profile, number);
	const uint32_t texts[] = {frame->perf_name, frame->name};

	if (frame->kind == FRAME_RUNNABLE)
		return PART_OTHER; /* the thread has work */
	if (frame->is_mark || frame->kind == FRAME_KERNEL)
		return PART_NATIVE;
	if (frame->kind != FRAME_MANAGED)
		return strncmp(module_file_name(idle, frame), "libclrjit.so", 12) ? PART_NATIVE
										  : PART_JIT;
	for (size_t i = 0; i < 2; i++) {
		const char *name = texts[i] == PROFILE_NONE
					   ? ""
					   : profile_text_of(idle->profile, texts[i], NULL);

		if (IS_ONE_OF(name, loops))
			return PART_LOOP;
		if (IS_ONE_OF(name, waits))
			return PART_WAITS;
	}
	return PART_OTHER;
}

static enum idle_part part_of(struct idle *idle, uint32_t frame)
{
	if (idle->parts[frame] == PART_UNSET)
		idle->parts[frame] = (uint8_t)classify_frame(idle, frame);
	return idle->parts[frame];
}

/*
 * Returns whether the leaf of the user part is a libc call that waits for something other than a
 * lock.
 */
static bool waits_in_libc(const struct idle *idle, uint32_t stack)
{
	for (; stack; stack = profile_stack_parent(idle->profile, stack)) {
		const struct profile_frame *frame =
			profile_frame_of(idle->profile, profile_stack_frame(idle->profile, stack));
		const char *name = frame->perf_name == PROFILE_NONE
					   ? ""
					   : profile_text_of(idle->profile, frame->perf_name, NULL);
		const char *base = module_file_name(idle, frame);

		if (frame->is_mark)
			continue;
		if (frame->kind != FRAME_KERNEL)
			return (!strncmp(base, "libc.", 5) || !strncmp(base, "libc-", 5) ||
				!strncmp(base, "libpthread", 10) || !strncmp(base, "ld-musl", 7)) &&
			       !strstr(name, "mutex") && !strstr(name, "lll_lock");
		/* The thread was preempted. */
		if (!strncmp(name, "asm_", 4))
			return false;
	}
	return false;
}

static int classify_stack(struct idle *idle, uint32_t stack)
{
	uint32_t leaf = stack;

	for (; stack; stack = profile_stack_parent(idle->profile, stack)) {
		switch (part_of(idle, profile_stack_frame(idle->profile, stack))) {
		case PART_LOOP:
			return STACK_IDLE;
		case PART_JIT:
		case PART_OTHER:
			return STACK_BUSY;
		case PART_WAITS:
			leaf = 0;
			break;
		default:
			break;
		}
	}
	return leaf && waits_in_libc(idle, leaf) ? STACK_RUNTIME : STACK_BUSY;
}

static bool is_runtime_thread(struct idle *idle, uint32_t thread)
{
	const char *comm = profile_text_of(idle->profile,
					   profile_thread_of(idle->profile, thread)->comm, NULL);

	if (!idle->comms[thread]) {
		idle->comms[thread] = 2;
		for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
			if (!strcmp(comm, threads[i]))
				idle->comms[thread] = 1;
	}
	return idle->comms[thread] == 1;
}

bool idle_is(struct idle *idle, uint32_t thread, uint32_t stack)
{
	if (!idle->stacks[stack])
		idle->stacks[stack] = (uint8_t)classify_stack(idle, stack);
	return idle->stacks[stack] == STACK_IDLE ||
	       (idle->stacks[stack] == STACK_RUNTIME && is_runtime_thread(idle, thread));
}

int idle_new(struct profile *profile, struct idle **ret_idle)
{
	if (profile_off_cpu_event(profile) == PROFILE_NONE) {
		*ret_idle = NULL;
		return 0;
	}
	struct idle *idle = calloc(1, sizeof(*idle));
	int r = idle ? profile_label(profile, IDLE_NAME, FRAME_IDLE, &idle->stack) : -ENOMEM;

	if (!r) {
		idle->profile = profile;
		idle->parts = calloc(profile_nframes(profile) + (size_t)1, 1);
		idle->stacks = calloc(profile_nstacks(profile) + (size_t)1, 1);
		idle->comms = calloc(profile_nthreads(profile) + (size_t)1, 1);
		r = idle->parts && idle->stacks && idle->comms ? 0 : -ENOMEM;
	}
	if (r)
		idle_free(idle);
	else
		*ret_idle = idle;
	return r;
}

void idle_free(struct idle *idle)
{
	if (!idle)
		return;
	free(idle->parts);
	free(idle->stacks);
	free(idle->comms);
	free(idle);
}

/* Returns the sleeper's part of a stack, without the wakers above it. */
static uint32_t sleeper_of(const struct idle *idle, uint32_t stack)
{
	const struct profile *p = idle->profile;
	uint32_t sleeper = stack;

	for (uint32_t s = stack; s != PROFILE_STACK_EMPTY; s = profile_stack_parent(p, s))
		if (profile_frame_of(p, profile_stack_frame(p, s))->kind == FRAME_WAKEUP)
			sleeper = profile_stack_parent(p, s);
	return sleeper;
}

uint32_t idle_stack(struct idle *idle, uint32_t event, uint32_t thread, uint32_t stack)
{
	if (!idle)
		return stack;
	const struct profile_event *e = profile_event_of(idle->profile, event);

	return e->off_cpu && idle_is(idle, thread, e->wakeup ? sleeper_of(idle, stack) : stack)
		       ? idle->stack
		       : stack;
}
