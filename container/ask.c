#include "container/ask.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_STATUS_BYTES 512 /* of status, up to the state */
#define ASK_NOTED_PIDS 4096  /* power of two */
#define ASK_NO_USER UINT32_MAX
#define ASK_STACK_BYTES ((size_t)256 << 10)
/* Sanitizers keep state for each thread, which a process cannot have. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ASK_BY_THREAD true
#else
#define ASK_BY_THREAD false
#endif

enum ask_state { ASK_IDLE, ASK_CALLED, ASK_ANSWERED, ASK_ABANDONED };

/* One process, or thread, and its call. */
struct ask_thread {
	_Alignas(max_align_t) unsigned char data[ASK_BYTES];
	struct ask_thread *next; /* in the list of idle or of abandoned threads */
	pthread_cond_t wake;     /* for both sides */
	enum ask_state state;
	pid_t pid;           /* the process in question */
	pid_t parent;        /* profcpu */
	pid_t process;       /* the process that asks; 0: a thread does */
	int status_fd;       /* of the status of what asks, or -1 */
	struct rlimit files; /* of profcpu: open files */
	uint32_t user;       /* of pid, if abandoned */
	int (*fn)(void *state);
	void (*drop)(void *state);
	int result;
	/* The times of fn itself: a thread may wait for a CPU before it begins. 0: not yet */
	uint64_t began_ns, took_ns;
};

static struct {
	pthread_mutex_t lock;
	struct ask_thread *idle, *abandoned;
	uint64_t first_ns, waited_ns; /* of the waits over ASK_LATE_MS */
	uint64_t silent;
	size_t n_abandoned;
	atomic_bool leaving;
	/* By the low bits of their PIDs, processes that were not asked. */
	bool unasked[ASK_NOTED_PIDS];
} ask_threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool ask_answering;

static void ask_unlink(struct ask_thread *t)
{
	struct ask_thread **at = &ask_threads.abandoned;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	ask_threads.n_abandoned--;
}

static void ask_put_idle(struct ask_thread *t)
{
	t->state = ASK_IDLE;
	t->next = ask_threads.idle;
	ask_threads.idle = t;
}

/*
 * Makes the kernel end this process with profcpu, or ends it now. A change of rights cancels it, so
 * repeat it. Do not call it with the lock, because a process that ends here would keep it.
 */
static void ask_end_with(pid_t parent)
{
	if (parent && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent))
		_exit(EXIT_FAILURE);
}

static void ask_open_status(struct ask_thread *t)
{
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);

	pthread_mutex_lock(&ask_threads.lock);
	t->status_fd = fd;
	pthread_mutex_unlock(&ask_threads.lock);
}

/* Answers calls. parent: of this process; 0: this is a thread. */
static void ask_answer(struct ask_thread *t, pid_t parent)
{
	rlim_t files = 0;

	ask_answering = true;
	ask_end_with(parent);
	pthread_mutex_lock(&ask_threads.lock);
	for (;;) {
		while (t->state != ASK_CALLED)
			pthread_cond_wait(&t->wake, &ask_threads.lock);
		t->began_ns = clock_monotonic_ns();
		pthread_mutex_unlock(&ask_threads.lock);
		/* As part of a question, because other processes can lock the directory. */
		if (t->status_fd < 0)
			ask_open_status(t);
		if (parent && t->files.rlim_cur != files) {
			setrlimit(RLIMIT_NOFILE, &t->files);
			files = t->files.rlim_cur;
		}
		int r = t->fn(t->data);
		uint64_t took_ns = clock_monotonic_ns() - t->began_ns;

		ask_end_with(parent);
		pthread_mutex_lock(&ask_threads.lock);
		if (t->state == ASK_ABANDONED) {
			if (t->drop)
				t->drop(t->data);
			ask_unlink(t);
			ask_put_idle(t);
			continue;
		}
		t->result = r;
		t->took_ns = took_ns;
		t->state = ASK_ANSWERED;
		/* After the lock, so that the other side does not wait for it. */
		pthread_mutex_unlock(&ask_threads.lock);
		pthread_cond_signal(&t->wake);
		pthread_mutex_lock(&ask_threads.lock);
	}
}

static int ask_process(void *ctx)
{
	struct ask_thread *t = ctx;

	(void)thread_begin_signal_stack();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return EXIT_FAILURE; /* t->process stays 0 */
	t->process = getpid();
	ask_answer(t, t->parent);
	return 0;
}

/*
 * Waits for the end of a process that answers. If it crashed, this one ends likewise. Returns if
 * the process could not begin.
 */
static void ask_wait_for_end(const struct ask_thread *t, pid_t pid)
{
	int ended = SIGKILL, number;

	while (waitpid(pid, &ended, __WALL) != pid)
		if (errno != EINTR)
			break; /* ask_leave waited for it */
	if (!t->process)
		return;
	while (ask_threads.leaving)
		pause();
	if (WIFEXITED(ended))
		_exit(WEXITSTATUS(ended));
	number = WIFSIGNALED(ended) ? WTERMSIG(ended) : SIGKILL;
	signal(number, SIG_DFL);
	raise(number);
	_exit(128 + number); /* PID 1 of a namespace */
}

/* Returns the end of a new stack, below which is a page that faults, or NULL. */
static unsigned char *ask_stack(void)
{
	unsigned char *stack = mmap(NULL, ASK_STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (stack == MAP_FAILED)
		return NULL;
	mprotect(stack, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
	return stack + ASK_STACK_BYTES;
}

static bool ask_may_trace(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return !syscall(SYS_capget, &header, data) && (data[0].effective & 1u << CAP_SYS_PTRACE);
}

/*
 * Starts a process that shares memory, descriptors, and the place of this thread's variables. So
 * this thread only waits from now on. Without CAP_SYS_PTRACE, the kernel's Yama module may refuse
 * other processes what it permits to parents, so a thread asks.
 */
static void *ask_thread_main(void *ctx)
{
	struct ask_thread *t = ctx;

	t->parent = getpid();
	if (!ASK_BY_THREAD && ask_may_trace()) {
		unsigned char *stack = ask_stack();
		pid_t pid = stack ? clone(ask_process, stack, CLONE_VM | CLONE_FS | CLONE_FILES, t)
				  : -1;

		if (pid > 0)
			ask_wait_for_end(t, pid);
		if (stack)
			munmap(stack - ASK_STACK_BYTES, ASK_STACK_BYTES);
	}
	ask_answer(t, 0);
	return NULL;
}

/* A child process has no threads, and none of theirs holds the lock. */
static void ask_in_child(void)
{
	ask_threads.idle = ask_threads.abandoned = NULL;
	ask_threads.n_abandoned = 0;
	pthread_mutex_init(&ask_threads.lock, NULL);
}

static void ask_watch_forks(void)
{
	pthread_atfork(NULL, NULL, ask_in_child);
}

/* Starts a thread. It takes no signal, because they are for the threads that expect them. */
static int ask_start(struct ask_thread *t)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	sigset_t all, before;
	pthread_t thread;

	pthread_once(&once, ask_watch_forks);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int r = thread_start(&thread, ASK_NAME, ask_thread_main, t);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!r)
		pthread_detach(thread);
	return r;
}

/* Returns a thread that waits for a call, or NULL. */
static struct ask_thread *ask_take_idle(void)
{
	struct ask_thread *t = ask_threads.idle;
	pthread_condattr_t attr;

	if (t) {
		ask_threads.idle = t->next;
		return t;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->status_fd = -1;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&t->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (ask_start(t)) {
		pthread_cond_destroy(&t->wake);
		free(t);
		return NULL;
	}
	return t;
}

/*
 * Looks up only names that are in the kernel's memory, because /proc may be locked. Before Linux
 * 5.12, the kernel cannot be asked for that.
 */
static uint32_t ask_user(pid_t pid)
{
	const struct open_how cached = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED};
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	AUTO_CLOSE int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &cached, sizeof(cached));

	if (fd < 0 && (errno == ENOSYS || errno == EINVAL || errno == EPERM))
		fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 || fstat(fd, &st) ? ASK_NO_USER : st.st_uid;
}

static bool ask_is_runnable(const struct ask_thread *t)
{
	char text[ASK_STATUS_BYTES];
	ssize_t n = pread(t->status_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return strstr(text, "\nState:\tR");
}

static bool ask_has_too_many(pid_t pid)
{
	size_t n = 0;

	if (ask_threads.n_abandoned < ASK_SILENT_USER_MAX)
		return false;
	uint32_t user = ask_user(pid);

	for (const struct ask_thread *t = ask_threads.abandoned; t; t = t->next)
		n += t->user == user;
	if (n < ASK_SILENT_USER_MAX && ask_threads.n_abandoned < ASK_SILENT_MAX)
		return false;
	bool *unasked = &ask_threads.unasked[(uint32_t)pid % ASK_NOTED_PIDS];

	ask_threads.silent += !*unasked;
	*unasked = true;
	return true;
}

static bool ask_is_silent(pid_t pid)
{
	for (const struct ask_thread *t = ask_threads.abandoned; t; t = t->next)
		if (t->pid == pid)
			return true;
	return ask_has_too_many(pid);
}

/* The time for the next answer. A process may answer late each time, and others too. */
static uint64_t ask_limit_ms(uint64_t now)
{
	uint64_t usual = ASK_WAITS_MS * NS_PER_MS;
	uint64_t since = ask_threads.first_ns ? now - ask_threads.first_ns : 0;
	uint64_t allowed = usual + since / ASK_WAITS_PART;

	return ask_threads.waited_ns < allowed           ? ASK_WAIT_MS
	       : ask_threads.waited_ns < allowed + usual ? ASK_LATE_MS
							 : ASK_TOO_LATE_MS;
}

static void ask_note_wait(uint64_t began_ns, uint64_t took_ns)
{
	if (took_ns <= ASK_LATE_MS * NS_PER_MS && took_ns < ask_limit_ms(began_ns) * NS_PER_MS)
		return;
	ask_threads.first_ns = ask_threads.first_ns ? ask_threads.first_ns : began_ns;
	ask_threads.waited_ns += took_ns;
}

/* Waits for the answer; false: abandons the thread. */
static bool ask_wait(struct ask_thread *t)
{
	const uint64_t busy_ns = ASK_BUSY_MS * NS_PER_MS;
	uint64_t now = clock_monotonic_ns(), limit_ns = ask_limit_ms(now) * NS_PER_MS, until;

	do {
		if (t->began_ns && now >= t->began_ns + limit_ns)
			limit_ns = now - t->began_ns + ASK_TOO_LATE_MS * NS_PER_MS;
		until = (t->began_ns ? t->began_ns : now) + limit_ns;
		const struct timespec at = clock_timespec(until);

		while (t->state != ASK_ANSWERED &&
		       !pthread_cond_timedwait(&t->wake, &ask_threads.lock, &at))
			;
		now = clock_monotonic_ns();
	} while (t->state != ASK_ANSWERED && (!t->began_ns || now < t->began_ns + limit_ns ||
					      (now < t->began_ns + busy_ns && ask_is_runnable(t))));
	bool answered = t->state == ASK_ANSWERED;

	ask_note_wait(t->began_ns, answered ? t->took_ns : now - t->began_ns);
	if (answered)
		return true;
	t->state = ASK_ABANDONED;
	t->user = ask_user(t->pid);
	t->next = ask_threads.abandoned;
	ask_threads.abandoned = t;
	ask_threads.n_abandoned++;
	ask_threads.silent++;
	return false;
}

int ask(pid_t pid, int (*fn)(void *state), void (*drop)(void *state), void *state, size_t bytes)
{
	struct ask_thread *t = NULL;
	int r = -ETIME;

	if (ask_answering || pid == getpid() || bytes > ASK_BYTES)
		return fn(state);
	pthread_mutex_lock(&ask_threads.lock);
	bool silent = ask_is_silent(pid);

	t = silent ? NULL : ask_take_idle();
	/* Without a thread, the first silent process would stop this one for ever. */
	silent |= !t && ask_threads.n_abandoned;
	if (!t) {
		pthread_mutex_unlock(&ask_threads.lock);
		if (!silent)
			return fn(state);
		if (drop)
			drop(state);
		return r;
	}
	memcpy(t->data, state, bytes);
	t->pid = pid;
	t->fn = fn;
	t->drop = drop;
	t->began_ns = 0;
	getrlimit(RLIMIT_NOFILE, &t->files);
	t->state = ASK_CALLED;
	pthread_mutex_unlock(&ask_threads.lock);
	pthread_cond_signal(&t->wake);
	pthread_mutex_lock(&ask_threads.lock);
	if (ask_wait(t)) {
		memcpy(state, t->data, bytes);
		r = t->result;
		ask_put_idle(t);
	}
	pthread_mutex_unlock(&ask_threads.lock);
	return r;
}

void ask_leave(void)
{
	/* With the lock, so that none of these processes has it when it ends. */
	pthread_mutex_lock(&ask_threads.lock);
	ask_threads.leaving = true;
	for (const struct ask_thread *t = ask_threads.idle; t; t = t->next)
		if (t->process && !kill(t->process, SIGKILL))
			while (waitpid(t->process, NULL, __WALL) < 0 && errno == EINTR)
				;
	bool all_end = !ask_threads.abandoned;

	ask_threads.idle = NULL;
	pthread_mutex_unlock(&ask_threads.lock);
	if (all_end)
		return;
	fflush(NULL);
	file_close_from(0);
}

uint64_t ask_silent(void)
{
	pthread_mutex_lock(&ask_threads.lock);
	uint64_t n = ask_threads.silent;

	pthread_mutex_unlock(&ask_threads.lock);
	return n;
}
