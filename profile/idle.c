#include "profile/idle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a frame says of the wait. */
enum idle_part {
	PART_UNSET,
	PART_NATIVE, /* nothing: of the kernel, or native */
	PART_JIT, /* it compiles */
	PART_WAITS, /* managed code that is only there to wait */
	PART_LOOP, /* what a thread runs that is idle when it waits */
	PART_OTHER, /* other managed code: whatever it waits for, somebody wants it */
};

/* Methods in which a thread is idle while it only waits. Sources: dotnet/runtime v8.0 to v10.0, src/libraries; dotnet/aspnetcore, src. */
static const char *const loops[] = {
	/* Pool: a worker that has no work, the one that counts workers, the one that waits for registered handles. User code is called from
	 * Dispatch, which is no method of WorkerThread. */
	"System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart",
	"System.Threading.PortableThreadPool+GateThread::GateThreadStart",
	"System.Threading.PortableThreadPool+WaitThread::WaitThreadStart",
	/* Until the next timer is due; callbacks go to the pool. */
	"System.Threading.TimerQueue::TimerThread",
	/* epoll of all sockets; what becomes ready goes to the pool. */
	"System.Net.Sockets.SocketAsyncEngine::EventLoop",
	/* inotify, as of configuration files. */
	"System.IO.FileSystemWatcher+RunningInstance::ProcessEvents",
	/* Event counters and events of listeners: once a second or so. */
	"System.Diagnostics.Tracing.CounterGroup::PollForValues",
	"System.Diagnostics.Tracing.EventPipeEventDispatcher::DispatchEventsToEventListeners",
	/* Kestrel's clock. */
	"Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.Heartbeat::TimerLoop",
	/* The console logger's queue is empty. */
	"Microsoft.Extensions.Logging.Console.ConsoleLoggerProcessor::ProcessLogQueue",
	/* The main thread of a service waits until it is to end. */
	"Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::Run",
	"Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::WaitForShutdown",
	"Microsoft.AspNetCore.Hosting.WebHostExtensions::Run",
	"Microsoft.AspNetCore.Hosting.WebHostExtensions::WaitForShutdown",
	"Microsoft.AspNetCore.Builder.WebApplication::Run",
	/* What C# compiles an asynchronous Main to: it waits for the task that Main is. */
	"::<Main>",
};

/* Methods that stand above one of those when it waits. User code is called from none of them. */
static const char *const waits[] = {
	"System.Threading.LowLevelLifoSemaphore::",
	"System.Threading.LowLevelLifoSemaphoreBase::",
	"System.Threading.LowLevelMonitor::",
	"System.Threading.LowLevelLock::",
	"System.Threading.LowLevelSpinWaiter::",
	"System.Threading.PortableThreadPool+WorkerThread::", /* on the way from work to no work */
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

/* Threads of the runtime that run no managed code while they wait, as the kernel has their names: 15 characters. src/coreclr: SetThreadName,
 * CreateNewThread, CreateSuspendableThread, PAL_SetCurrentThreadName. */
static const char *const threads[] = {
	".NET Finalizer", /* until there is something to finalize; finalizers are managed */
	".NET Tiered Com", /* until methods were called often enough; what it compiles is told by libclrjit */
	".NET Server GC", /* between collections */
	".NET BGC",
	".NET SynchManag", /* PAL: for signalled objects of other processes */
	".NET EventPipe", /* the diagnostic port's server */
	".NET DebugPipe", /* a debugger that might come */
	".NET Debugger",
	".NET SigHandler", /* for signals that managed code handles */
};

struct idle {
	struct profile *profile;
	uint8_t *parts; /* by frame: enum idle_part */
	uint8_t *stacks; /* by stack: STACK_* */
	uint8_t *comms; /* by thread: 0 not known, 1 one of threads, 2 not */
	uint32_t stack; /* IDLE_NAME */
};

enum { STACK_UNSET, STACK_IDLE, STACK_BUSY, STACK_OF_RUNTIME /* idle if it is a thread of the runtime's */ };

static bool is_identifier(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '<' || c == '>' ||
	       c == '`';
}

/* Whether the name goes on as the method does. The full form has '.' for "::" and for the '+' of nested types. */
static bool begins_with(const char *at, const char *method)
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
		if ((any_type || !i || name[i - 1] == ' ' || name[i - 1] == ']') && begins_with(name + i, method))
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

static const char *base_of(const struct idle *idle, const struct profile_frame *frame)
{
	const char *path = frame->module == PROFILE_NONE ? "" : profile_text_of(idle->profile, frame->module, NULL);
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static enum idle_part look_at(const struct idle *idle, uint32_t number)
{
	const struct profile_frame *frame = profile_frame_of(idle->profile, number);
	const uint32_t texts[] = {frame->perf_name, frame->name};

	if (frame->is_mark || frame->kind == FRAME_KERNEL)
		return PART_NATIVE;
	if (frame->kind != FRAME_MANAGED)
		return strncmp(base_of(idle, frame), "libclrjit.so", 12) ? PART_NATIVE : PART_JIT;
	for (size_t i = 0; i < 2; i++) {
		const char *name = texts[i] == PROFILE_NONE ? "" : profile_text_of(idle->profile, texts[i], NULL);

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
		idle->parts[frame] = (uint8_t)look_at(idle, frame);
	return idle->parts[frame];
}

/* Whether the leaf of the user part is one of libc's calls that wait, for something else than a lock. */
static bool waits_in_libc(const struct idle *idle, uint32_t stack)
{
	for (; stack; stack = profile_stack_parent(idle->profile, stack)) {
		const struct profile_frame *frame = profile_frame_of(idle->profile, profile_stack_frame(idle->profile, stack));
		const char *name = frame->perf_name == PROFILE_NONE ? "" : profile_text_of(idle->profile, frame->perf_name, NULL);
		const char *base = base_of(idle, frame);

		if (frame->is_mark)
			continue;
		if (frame->kind != FRAME_KERNEL)
			return (!strncmp(base, "libc.", 5) || !strncmp(base, "libc-", 5) || !strncmp(base, "libpthread", 10) ||
				!strncmp(base, "ld-musl", 7)) &&
			       !strstr(name, "mutex") && !strstr(name, "lll_lock");
		/* Its CPU was taken away. */
		if (!strncmp(name, "asm_", 4))
			return false;
	}
	return false;
}

static int look_at_stack(struct idle *idle, uint32_t stack)
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
	return leaf && waits_in_libc(idle, leaf) ? STACK_OF_RUNTIME : STACK_BUSY;
}

static bool is_of_runtime(struct idle *idle, uint32_t thread)
{
	const char *comm = profile_text_of(idle->profile, profile_thread_of(idle->profile, thread)->comm, NULL);

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
		idle->stacks[stack] = (uint8_t)look_at_stack(idle, stack);
	return idle->stacks[stack] == STACK_IDLE || (idle->stacks[stack] == STACK_OF_RUNTIME && is_of_runtime(idle, thread));
}

int idle_new(struct profile *profile, struct idle **ret_idle)
{
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

/* Without those above it that ended its wait. */
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
	const struct profile_event *e = profile_event_of(idle->profile, event);

	return e->off_cpu && idle_is(idle, thread, e->wakeup ? sleeper_of(idle, stack) : stack) ? idle->stack : stack;
}

int idle_sum(struct profile *profile, uint64_t *ret_weight)
{
	struct profile_group *groups = NULL;
	struct idle *idle = NULL;
	uint64_t weight = 0;
	size_t n;
	int r = idle_new(profile, &idle);

	if (!r)
		r = profile_groups(profile, NULL, &groups, &n);
	for (size_t i = 0; !r && i < n; i++)
		if (!profile_event_of(profile, groups[i].event)->wakeup &&
		    idle_stack(idle, groups[i].event, groups[i].thread, groups[i].stack) != groups[i].stack)
			weight += groups[i].weight;
	if (!r)
		*ret_weight = weight;
	free(groups);
	idle_free(idle);
	return r;
}
