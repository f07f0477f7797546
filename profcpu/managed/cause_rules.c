#include "profcpu/managed/cause_rules.h"

#include "base/path.h"
#include "profile/idle.h"

#include <string.h>

static const struct {
	const char *word, *label;
} texts[CAUSES] = {
	[CAUSE_UNKNOWN] = {"unknown", "[wait: unknown]"},
	[CAUSE_CPU] = {"waiting for a CPU", PROFILE_RUNNABLE},
	[CAUSE_NO_STACK] = {"no stack", "[wait: no stack]"},
	[CAUSE_IDLE] = {"idle", IDLE_NAME},
	[CAUSE_LOCK] = {"lock", "[wait: lock]"},
	[CAUSE_GC] = {"GC", "[wait: GC]"},
	[CAUSE_TASK] = {"sync over async", "[wait: task, sync over async]"},
	[CAUSE_STARVATION] = {"pool starvation", "[wait: task, pool starvation]"},
	[CAUSE_JIT] = {"JIT", "[wait: JIT]"},
	[CAUSE_TIMER] = {"timer", "[wait: timer]"},
	[CAUSE_NETWORK] = {"network", "[wait: network]"},
	[CAUSE_DISK] = {"disk", "[wait: disk]"},
	[CAUSE_PIPE] = {"pipe or terminal", "[wait: pipe or terminal]"},
	[CAUSE_POLL] = {"poll", "[wait: poll]"},
	[CAUSE_SEMAPHORE] = {"semaphore", "[wait: semaphore]"},
	[CAUSE_EVENT] = {"event or condition", "[wait: event or condition]"},
	[CAUSE_THREAD] = {"another thread's end", "[wait: another thread's end]"},
	[CAUSE_PROCESS] = {"another process", "[wait: another process]"},
	[CAUSE_MEMORY] = {"memory", "[wait: memory]"},
	[CAUSE_RUNTIME] = {"in the runtime", "[wait: in the runtime]"},
};

/* A name, or the start of one that ends with '*'. */
struct rule {
	const char *name;
	enum wait_cause cause;
};

/* Functions of the kernel; the innermost that is here decides. Sources: Linux 4.19 to 6.18. */
static const struct rule of_kernel[] = {
	{"hrtimer_nanosleep", CAUSE_TIMER},
	{"do_nanosleep", CAUSE_TIMER},
	{"tcp_*", CAUSE_NETWORK},
	{"udp_*", CAUSE_NETWORK},
	{"udpv6_*", CAUSE_NETWORK},
	{"inet_*", CAUSE_NETWORK},
	{"unix_*", CAUSE_NETWORK},
	{"sk_wait_data", CAUSE_NETWORK},
	{"sk_stream_wait_memory", CAUSE_NETWORK},
	{"__skb_wait_for_more_packets", CAUSE_NETWORK},
	{"__skb_recv_*", CAUSE_NETWORK},
	{"netlink_recvmsg", CAUSE_NETWORK},
	{"anon_pipe_*", CAUSE_PIPE},
	{"fifo_pipe_*", CAUSE_PIPE},
	{"pipe_*", CAUSE_PIPE},
	{"n_tty_*", CAUSE_PIPE},
	{"tty_*", CAUSE_PIPE},
	{"io_schedule*", CAUSE_DISK},
	{"folio_wait_*", CAUSE_DISK},
	{"submit_bio_wait", CAUSE_DISK},
	{"wait_on_page_*", CAUSE_DISK},
	{"do_fsync", CAUSE_DISK},
	{"ksys_sync*", CAUSE_DISK},
	/* Files, if no function above tells another kind of file. */
	{"ext4_*", CAUSE_DISK},
	{"xfs_*", CAUSE_DISK},
	{"btrfs_*", CAUSE_DISK},
	{"nfs_*", CAUSE_DISK},
	{"vfs_read", CAUSE_DISK},
	{"vfs_write", CAUSE_DISK},
	{"do_sys_openat2", CAUSE_DISK},
	{"do_epoll_wait", CAUSE_POLL},
	{"ep_poll", CAUSE_POLL},
	{"do_sys_poll", CAUSE_POLL},
	{"do_select", CAUSE_POLL},
	{"inotify_read", CAUSE_POLL},
	{"eventfd_read", CAUSE_EVENT},
	{"do_wait", CAUSE_PROCESS},
	{"kernel_wait4", CAUSE_PROCESS},
	{"vm_mmap_*", CAUSE_MEMORY},
	{"ksys_mmap_*", CAUSE_MEMORY},
	{"do_mmap", CAUSE_MEMORY},
	{"__vm_munmap", CAUSE_MEMORY},
	{"do_mprotect_*", CAUSE_MEMORY},
	{"do_madvise*", CAUSE_MEMORY},
	{"madvise_*", CAUSE_MEMORY},
	{"do_user_addr_fault", CAUSE_MEMORY},
	{"exc_page_fault", CAUSE_MEMORY},
	{"asm_exc_page_fault", CAUSE_MEMORY},
	{"do_page_fault", CAUSE_MEMORY},
};

/* Functions of C libraries, without "@@" and the version; for stacks without kernel frames too. */
static const struct rule of_libc[] = {
	{"nanosleep", CAUSE_TIMER},
	{"__nanosleep", CAUSE_TIMER},
	{"clock_nanosleep", CAUSE_TIMER},
	{"__clock_nanosleep", CAUSE_TIMER},
	{"usleep", CAUSE_TIMER},
	{"pthread_join", CAUSE_THREAD},
	{"__pthread_clockjoin_ex", CAUSE_THREAD},
	{"recv*", CAUSE_NETWORK},
	{"__libc_recv*", CAUSE_NETWORK},
	{"send*", CAUSE_NETWORK},
	{"__libc_send*", CAUSE_NETWORK},
	{"accept*", CAUSE_NETWORK},
	{"connect", CAUSE_NETWORK},
	{"fsync", CAUSE_DISK},
	{"fdatasync", CAUSE_DISK},
	{"pread*", CAUSE_DISK},
	{"pwrite*", CAUSE_DISK},
	{"epoll_wait", CAUSE_POLL},
	{"epoll_pwait*", CAUSE_POLL},
	{"poll", CAUSE_POLL},
	{"__poll", CAUSE_POLL},
	{"ppoll", CAUSE_POLL},
	{"select", CAUSE_POLL},
	{"pselect", CAUSE_POLL},
	{"wait4", CAUSE_PROCESS},
	{"waitpid", CAUSE_PROCESS},
	{"__wait4", CAUSE_PROCESS},
	{"waitid", CAUSE_PROCESS},
};

static const struct rule of_libc_locks[] = {
	{"pthread_mutex_*", CAUSE_LOCK},       {"__pthread_mutex_*", CAUSE_LOCK},
	{"___pthread_mutex_*", CAUSE_LOCK},    {"pthread_rwlock_*", CAUSE_LOCK},
	{"__pthread_rwlock_*", CAUSE_LOCK},    {"__lll_lock_wait*", CAUSE_LOCK},
	{"__GI___lll_lock_wait*", CAUSE_LOCK}, {"sem_wait*", CAUSE_SEMAPHORE},
	{"sem_timedwait*", CAUSE_SEMAPHORE},   {"__new_sem_wait*", CAUSE_SEMAPHORE},
	{"pthread_cond_*", CAUSE_EVENT},       {"__pthread_cond_*", CAUSE_EVENT},
};

/* Functions of the runtime, if its symbols are known. Source: dotnet/runtime, src/coreclr. */
static const struct rule of_runtime[] = {
	{"AwareLock::", CAUSE_LOCK},
	{"SyncBlock::Enter", CAUSE_LOCK},
	{"RareDisablePreemptiveGC", CAUSE_GC},
	{"WaitUntilGCComplete", CAUSE_GC},
	{"WaitSuspendEvents", CAUSE_GC},
	{"SuspendEE", CAUSE_GC},
	{"gc_heap::", CAUSE_GC},
	{"JitCompileCode", CAUSE_JIT},
};

/* Methods that wait, as idle_is_method takes them. Source: dotnet/runtime v8.0 to v10.0. */
static const struct rule of_managed[] = {
	{"System.Threading.Monitor::Enter", CAUSE_LOCK},
	{"System.Threading.Monitor::Enter_Slowpath", CAUSE_LOCK},
	{"System.Threading.Monitor::ReliableEnter", CAUSE_LOCK},
	{"System.Threading.Monitor::ReliableEnterTimeout", CAUSE_LOCK},
	{"System.Threading.Monitor::TryEnter", CAUSE_LOCK},
	{"System.Threading.Monitor::TryEnter_Slowpath", CAUSE_LOCK},
	{"System.Threading.Lock::", CAUSE_LOCK},
	{"System.Threading.ReaderWriterLockSlim::", CAUSE_LOCK},
	{"System.Threading.ReaderWriterLock::", CAUSE_LOCK},
	{"System.Threading.SpinLock::", CAUSE_LOCK},
	{"System.Threading.SemaphoreSlim::", CAUSE_SEMAPHORE},
	{"System.Threading.Monitor::Wait", CAUSE_EVENT},
	{"System.Threading.Monitor::ObjWait", CAUSE_EVENT},
	{"System.Threading.Condition::", CAUSE_EVENT},
	{"System.Threading.WaitHandle::", CAUSE_EVENT},
	{"System.Threading.ManualResetEventSlim::", CAUSE_EVENT},
	{"System.Threading.CountdownEvent::", CAUSE_EVENT},
	{"System.Threading.Barrier::", CAUSE_EVENT},
	{"System.Threading.Thread::Join", CAUSE_THREAD},
	{"System.Threading.Thread::Sleep", CAUSE_TIMER},
	{"System.Threading.Thread::SleepInternal", CAUSE_TIMER},
	{"System.Threading.Thread::UninterruptibleSleep0", CAUSE_TIMER},
	{"System.Threading.Thread.PollGC::PollGCWorker", CAUSE_GC},
	{"System.Threading.Thread+PollGC::PollGCWorker", CAUSE_GC},
	{"System.Threading.Tasks.Task::Wait", CAUSE_TASK},
	{"System.Threading.Tasks.Task::InternalWait", CAUSE_TASK},
	{"System.Threading.Tasks.Task::InternalWaitCore", CAUSE_TASK},
	{"System.Threading.Tasks.Task::SpinThenBlockingWait", CAUSE_TASK},
	{"System.Threading.Tasks.Task::SpinWait", CAUSE_TASK},
	{"System.Threading.Tasks.Task::WaitAll", CAUSE_TASK},
	{"System.Threading.Tasks.Task::WaitAllCore", CAUSE_TASK},
	{"System.Threading.Tasks.Task::WaitAny", CAUSE_TASK},
	{"System.Threading.Tasks.Task::WaitAnyCore", CAUSE_TASK},
	/* A loop whose parts run on several threads waits for the others. */
	{"System.Threading.Tasks.TaskReplicator::", CAUSE_EVENT},
	{"System.Threading.Tasks.Parallel::", CAUSE_EVENT},
	{"System.Diagnostics.ProcessWaitState::", CAUSE_PROCESS},
	{"System.Diagnostics.Process::WaitForExit", CAUSE_PROCESS},
	{"System.Diagnostics.Process::WaitForExitCore", CAUSE_PROCESS},
};

/* Methods on whose stacks a wait has this cause if nothing above them tells another. */
static const struct rule of_libraries[] = {
	{"Interop+Sys::FSync", CAUSE_DISK},       {"Interop+Sys::PRead", CAUSE_DISK},
	{"Interop+Sys::PWrite", CAUSE_DISK},      {"Interop+Sys::ReceiveMessage", CAUSE_NETWORK},
	{"Interop+Sys::Receive", CAUSE_NETWORK},  {"Interop+Sys::Send", CAUSE_NETWORK},
	{"Interop+Sys::Accept", CAUSE_NETWORK},   {"Interop+Sys::Connect", CAUSE_NETWORK},
	{"System.IO.RandomAccess::", CAUSE_DISK}, {"System.Net.Sockets.SocketPal::", CAUSE_NETWORK},
};

#define RULES(list) list, sizeof(list) / sizeof((list)[0])

const char *cause_word(enum wait_cause cause)
{
	return texts[cause].word;
}

const char *cause_label(enum wait_cause cause)
{
	return texts[cause].label;
}

/* By the name of a C function. */
static enum wait_cause by_function(const char *name, const struct rule *rules, size_t n)
{
	size_t len = strcspn(name, "@");

	for (size_t i = 0; i < n; i++) {
		size_t want = strcspn(rules[i].name, "*");

		if (!strncmp(name, rules[i].name, want) && (rules[i].name[want] || len == want))
			return rules[i].cause;
	}
	return CAUSE_UNKNOWN;
}

/* By a part of the name of a C++ function. */
static enum wait_cause by_part(const char *name, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(name, rules[i].name))
			return rules[i].cause;
	return CAUSE_UNKNOWN;
}

static enum wait_cause by_method(const char *name, const struct rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (idle_is_method(name, rules[i].name))
			return rules[i].cause;
	return CAUSE_UNKNOWN;
}

/* Whether a method may be between one that waits and the code that called it. */
static bool is_between(const char *name)
{
	static const char *const begins[] = {"System.Threading.",
					     "Interop.",
					     "Interop+",
					     "PInvoke",
					     "System.Diagnostics.Process",
					     "System.Runtime.CompilerServices.TaskAwaiter",
					     "System.Runtime.CompilerServices.ValueTaskAwaiter",
					     "IL_STUB_PInvoke"};
	size_t from = strcspn(name, "(");

	while (from && name[from - 1] != ' ')
		from--;
	/* It calls any code. */
	if (!strncmp(name + from, "System.Threading.ExecutionContext", 33))
		return false;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name + from, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* The walk from the leaf to the root of a stack. */
struct walk {
	const struct profile *profile;
	struct cause_by_names found;
	enum wait_cause weak; /* if nothing else is found */
	bool in_code;         /* beyond the kernel and libc */
	bool in_managed;      /* beyond native code */
};

static bool is_module(const struct walk *w, const struct profile_frame *f, const char *begins)
{
	const char *path =
		f->module == PROFILE_NONE ? "" : profile_text_of(w->profile, f->module, NULL);

	return !strncmp(path_base(path), begins, strlen(begins));
}

static bool is_libc(const struct walk *w, const struct profile_frame *f)
{
	return is_module(w, f, "libc.") || is_module(w, f, "libc-") ||
	       is_module(w, f, "libpthread") || is_module(w, f, "ld-musl");
}

static void take_native(struct walk *w, const struct profile_frame *f, const char *name)
{
	bool known = w->found.cause != CAUSE_UNKNOWN;

	if (f->kind == FRAME_KERNEL) {
		w->found.cause = known ? w->found.cause : by_function(name, RULES(of_kernel));
		return;
	}
	if (is_libc(w, f)) {
		if (!known)
			w->found.cause = by_function(name, RULES(of_libc));
		/* Other ways to wait are made from these. */
		if (!w->weak && !w->in_code)
			w->weak = by_function(name, RULES(of_libc_locks));
		return;
	}
	w->found.in_native |= !w->in_code;
	if (f->kind == FRAME_RUNTIME && is_module(w, f, "libclrjit.so")) {
		w->found.in_jit |= !w->in_managed;
		if (!known)
			w->found.cause = CAUSE_JIT;
	} else if (f->kind == FRAME_RUNTIME) {
		w->found.in_runtime |= !w->in_code && !is_module(w, f, "libSystem.");
		if (!known)
			w->found.cause = by_part(name, RULES(of_runtime));
		w->weak = w->found.in_runtime ? CAUSE_RUNTIME : w->weak;
	}
	w->in_code = true;
}

/* Returns whether the callers may tell more. */
static bool take_managed(struct walk *w, const char *name)
{
	enum wait_cause cause = by_method(name, RULES(of_managed));

	w->in_code = w->in_managed = true;
	if (cause != CAUSE_UNKNOWN) {
		w->found.cause = cause;
		return true;
	}
	cause = by_method(name, RULES(of_libraries));
	if (cause != CAUSE_UNKNOWN)
		w->weak = cause;
	return is_between(name);
}

struct cause_by_names cause_of_stack(const struct profile *profile, uint32_t stack)
{
	struct walk w = {.profile = profile};
	bool goes_on = true;

	for (; goes_on && stack != PROFILE_STACK_EMPTY;
	     stack = profile_stack_parent(profile, stack)) {
		const struct profile_frame *f =
			profile_frame_of(profile, profile_stack_frame(profile, stack));
		const char *name = profile_text_of(profile, f->name, NULL);

		if (f->kind == FRAME_LABEL)
			w.found.cause = CAUSE_NO_STACK;
		else if (f->kind == FRAME_MANAGED)
			goes_on = take_managed(&w, name);
		else if (frame_kind_is_code(f->kind))
			take_native(&w, f, name);
	}
	if (w.found.cause == CAUSE_UNKNOWN)
		w.found.cause = w.weak;
	return w.found;
}
