#include "container/ask.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/thread.h"
#include "container/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASK_STATUS_MAX ((size_t)1 << 20)
#define ASK_NOTED_PIDS 4096 /* power of two */
#define ASK_NO_USER UINT32_MAX

enum ask_state { ASK_IDLE, ASK_CALLED, ASK_ANSWERED, ASK_ABANDONED };

/* One thread, and its call. */
struct ask_thread {
	_Alignas(max_align_t) unsigned char data[ASK_BYTES];
	struct ask_thread *next; /* in the list of idle or of abandoned threads */
	pthread_cond_t wake;     /* for both sides */
	enum ask_state state;
	pid_t pid, tid; /* of the process that is asked about; of this thread */
	uint32_t user;  /* of pid, if abandoned */
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
	/* By the low bits of their PIDs, processes that were not asked. */
	bool unasked[ASK_NOTED_PIDS];
} ask_threads = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread bool ask_answering;

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

static void *ask_answer(void *ctx)
{
	struct ask_thread *t = ctx;

	ask_answering = true;
	t->tid = gettid();
	pthread_mutex_lock(&ask_threads.lock);
	for (;;) {
		while (t->state != ASK_CALLED)
			pthread_cond_wait(&t->wake, &ask_threads.lock);
		t->began_ns = clock_monotonic_ns();
		pthread_mutex_unlock(&ask_threads.lock);
		int r = t->fn(t->data);
		uint64_t took_ns = clock_monotonic_ns() - t->began_ns;

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
	int r = thread_start(&thread, "ask", ask_answer, t);

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

/* Reads the status of a thread, which the kernel writes without a lock of the process. */
static int ask_status(pid_t pid, pid_t tid, struct proc_status *ret_status)
{
	AUTO_FREE char *text = NULL;
	char path[64];
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	int r = file_read_at(AT_FDCWD, path, ASK_STATUS_MAX, &text, &len);

	return r ? r : proc_status_parse(text, ret_status);
}

static uint32_t ask_user(pid_t pid)
{
	struct proc_status status;

	return ask_status(pid, pid, &status) ? ASK_NO_USER : status.uids.real;
}

static bool ask_is_runnable(const struct ask_thread *t)
{
	struct proc_status status;

	return !ask_status(getpid(), t->tid, &status) && status.state == 'R';
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

uint64_t ask_silent(void)
{
	pthread_mutex_lock(&ask_threads.lock);
	uint64_t n = ask_threads.silent;

	pthread_mutex_unlock(&ask_threads.lock);
	return n;
}
