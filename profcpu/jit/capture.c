#include "profcpu/jit/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/pidset.h"
#include "base/vec.h"
#include "container/proc.h"
#include "profcpu/jit/capture_process.h"
#include "recording/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CAPTURE_PROCESSES_MAX 65536 /* processes not yet known to run .NET or not */
#define CAPTURE_YOUNG_NS (10 * NS_PER_S)
/* Time for the thread to end after its deadline. */
#define CAPTURE_JOIN_NS (2 * NS_PER_S)
/* Limit of a search for remains of a killed profcpu; other processes get no steps meanwhile. */
#define CAPTURE_SWEEP_NS (NS_PER_S / 2)
#define CAPTURE_SWEEP_LAST_NS (3 * NS_PER_S)

struct jit_capture {
	/* The members from shared to known belong to the thread until it has ended. */
	struct jit_processes shared;
	VEC(struct jit_process *) processes;
	struct pidset known;
	bool started, all;
	pthread_t thread;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t wake;
	VEC(pid_t) inbox;
	size_t dropped; /* processes without room in inbox */
	bool stopping, ended;
	uint64_t until_ns; /* valid once stopping */
	bool stuck;        /* the thread did not end in time, and keeps its data */
};

int jit_capture_new(enum jit_names names, int dir_fd, struct jit_capture **ret_capture)
{
	struct jit_capture *c = calloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int r;

	if (!c)
		return -ENOMEM;
	c->shared.names = names;
	c->shared.dir_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = opener_new(&c->shared.opener);
	if (!r)
		r = pidset_new(&c->known);
	if (!r && mkdirat(dir_fd, RECORDING_SYMBOLS, 0700) && errno != EEXIST)
		r = -errno;
	if (!r) {
		c->shared.dir_fd = openat(dir_fd, RECORDING_SYMBOLS,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = c->shared.dir_fd < 0 ? -errno : 0;
	}
	if (r) {
		jit_capture_free(c);
		return r;
	}
	*ret_capture = c;
	return 0;
}

/* Forgets processes that are known not to run .NET, or have ended. */
static void capture_forget(struct jit_capture *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->processes.len; i++) {
		struct jit_process *p = c->processes.v[i];

		if (p->done && !p->forgotten)
			pidset_remove(&c->known, p->pid);
		p->forgotten = p->done;
		if (p->done && !p->is_dotnet)
			free(p);
		else
			c->processes.v[kept++] = p;
	}
	c->processes.len = kept;
}

/* Whether a process needs a last probe because it is young. An older one was probed recently. */
static bool capture_is_young(const struct jit_process *p, uint64_t now)
{
	return now - p->since_ns < CAPTURE_YOUNG_NS;
}

static bool capture_is_stopping(struct jit_capture *c)
{
	pthread_mutex_lock(&c->lock);
	bool stopping = c->stopping;

	pthread_mutex_unlock(&c->lock);
	return stopping;
}

/* Deadline for one of `left` processes: its share of the time until until_ns. */
static uint64_t capture_deadline(uint64_t now, uint64_t until_ns, size_t left)
{
	return now + (until_ns > now ? (until_ns - now) / (left ? left : 1) : 0);
}

/*
 * Whether a process is due. At the end, all followed processes are, and all that may have started
 * .NET since their last probe.
 */
static bool capture_is_due(const struct jit_process *p, uint64_t now, bool last)
{
	return !p->done &&
	       (p->next_ns <= now || (last && (p->way || p->late || capture_is_young(p, now))));
}

static size_t capture_count_due(const struct jit_capture *c, uint64_t now, bool last)
{
	size_t n = 0;

	for (size_t i = 0; i < c->processes.len; i++)
		n += capture_is_due(c->processes.v[i], now, last);
	return n;
}

static void capture_visit(struct jit_capture *c, struct jit_process *p, uint64_t now,
			  uint64_t until, bool last)
{
	bool was_followed = p->way;

	p->target.until_ns = until;
	if (p->way)
		jit_process_step(&c->shared, p, now, last);
	else
		jit_process_probe(&c->shared, p, now, until, last);
	if (last && p->way && !p->done && !was_followed)
		jit_process_step(&c->shared, p, clock_monotonic_ns(), last);
}

/*
 * Searches for remains of a killed profcpu: once for each process, and at the end again if some are
 * still there.
 */
static void capture_sweep(struct jit_capture *c, bool last)
{
	uint64_t until = clock_monotonic_ns() + CAPTURE_SWEEP_LAST_NS;

	if (last)
		c->shared.silent.n = 0; /* a runtime that was late before may reply now */
	for (size_t i = 0; i < c->processes.len && (last || !capture_is_stopping(c)); i++) {
		struct jit_process *p = c->processes.v[i];

		if (!last)
			until = clock_monotonic_ns() + CAPTURE_SWEEP_NS;
		else if (until > c->until_ns)
			until = c->until_ns;
		if (p->unswept && (last || !p->swept))
			jit_process_sweep(&c->shared, p, until, last);
	}
}

/*
 * Visits every process that is due. Returns the time at which the next one is due. After a stop,
 * only the last round continues.
 */
static uint64_t capture_round(struct jit_capture *c, bool last)
{
	uint64_t now = clock_monotonic_ns(), next = now + JIT_PROCESS_STEP_MAX_NS;
	uint64_t half = last ? capture_deadline(now, c->until_ns, 2)
			     : 0; /* the other half is for restoring the processes */
	size_t left = last ? capture_count_due(c, now, last) : 0;

	for (size_t i = 0; i < c->processes.len && (last || !capture_is_stopping(c)); i++) {
		struct jit_process *p = c->processes.v[i];

		if (capture_is_due(p, now, last)) {
			if (!last)
				capture_visit(c, p, now, now + JIT_PROCESS_READY_NS, last);
			else if (now < half)
				capture_visit(c, p, now, capture_deadline(now, half, left), last);
			else
				jit_process_note_missed_step(&c->shared, p);
			left -= left > 0;
			now = clock_monotonic_ns();
		}
		if (!p->done && p->next_ns < next)
			next = p->next_ns;
	}
	if (!last)
		capture_sweep(c, last);
	capture_forget(c);
	return next;
}

/* Takes a process from the inbox; its PID may be known from another program. */
static void capture_take(struct jit_capture *c, pid_t pid, uint64_t now)
{
	struct jit_process *p;
	bool is_new = pidset_add(&c->known, pid);

	for (size_t i = 0; i < c->processes.len && !is_new; i++) {
		p = c->processes.v[i];
		if (p->pid != pid || p->done)
			continue;
		if (!p->way)
			p->since_ns = now;
		/* A process that is followed may be another program now. */
		p->next_ns = now;
		return;
	}
	p = c->processes.len >= CAPTURE_PROCESSES_MAX || vec_reserve(&c->processes, 1)
		    ? NULL
		    : calloc(1, sizeof(*p));
	if (!p) {
		pidset_remove(&c->known, pid);
		c->shared.unseen++;
		c->shared.unseen_error = -EOVERFLOW;
		return;
	}
	p->pid = pid;
	p->since_ns = p->next_ns = now;
	c->processes.v[c->processes.len++] = p;
}

/*
 * Takes a process that existed before the recording. It is probed once, then at intervals that grow
 * with its age.
 */
static int capture_take_one(void *ctx, pid_t pid)
{
	struct jit_capture *c = ctx;
	uint64_t now = clock_monotonic_ns();
	size_t had = c->processes.len;

	capture_take(c, pid, now);
	if (c->processes.len > had)
		c->processes.v[had]->since_ns = proc_start_ns(pid, now);
	return capture_is_stopping(c);
}

/* Waits until a process is added, the end, or a time. True: it is the end. */
static bool capture_wait(struct jit_capture *c, uint64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	uint64_t now;
	bool stopping;

	pthread_mutex_lock(&c->lock);
	while (!c->stopping && !c->inbox.len)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until))
			break;
	now = clock_monotonic_ns();
	for (size_t i = 0; i < c->inbox.len; i++)
		capture_take(c, c->inbox.v[i], now);
	c->inbox.len = 0;
	stopping = c->stopping;
	pthread_mutex_unlock(&c->lock);
	return stopping;
}

static void *capture_main(void *ctx)
{
	struct jit_capture *c = ctx;
	bool stopping = false;

	if (c->all)
		(void)proc_each_pid(capture_take_one, c);
	for (uint64_t next = 0; !stopping;) {
		stopping = capture_wait(c, next);
		next = capture_round(c, stopping);
	}
	size_t left = 0;

	for (size_t i = 0; i < c->processes.len; i++)
		left += c->processes.v[i]->way != NULL;
	for (size_t i = 0; i < c->processes.len; i++) {
		struct jit_process *p = c->processes.v[i];
		bool followed = p->way;

		jit_process_release(p, capture_deadline(clock_monotonic_ns(), c->until_ns, left));
		left -= followed;
	}
	capture_sweep(c, true);
	pthread_mutex_lock(&c->lock);
	if (c->dropped) {
		c->shared.unseen += c->dropped;
		c->shared.unseen_error = -EOVERFLOW;
	}
	c->ended = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

void jit_capture_want_lines(struct jit_capture *c)
{
	c->shared.lines = true;
}

int jit_capture_start(struct jit_capture *c, bool all)
{
	int r;

	if (c->shared.names == JIT_NAMES_NONE || c->started)
		return 0;
	c->all = all;
	r = pthread_create(&c->thread, NULL, capture_main, c);
	c->started = !r;
	return -r;
}

void jit_capture_add_process(struct jit_capture *c, pid_t pid)
{
	pthread_mutex_lock(&c->lock);
	if (c->inbox.len >= CAPTURE_PROCESSES_MAX || vec_push(&c->inbox, pid))
		c->dropped++;
	else if (c->inbox.len == 1)
		pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

/*
 * Waits for the thread to end. The kernel may block it without limit: a file system hangs, or a
 * process holds its lock on the map.
 */
static bool capture_wait_for_end(struct jit_capture *c)
{
	uint64_t until_ns = c->until_ns + CAPTURE_JOIN_NS;
	struct timespec until = clock_timespec(until_ns);

	while (!c->ended)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until))
			break;
	return c->ended;
}

void jit_capture_end(struct jit_capture *c)
{
	if (!c->started)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	c->until_ns = clock_monotonic_ns() + JIT_CAPTURE_END_S * NS_PER_S;
	pthread_cond_broadcast(&c->wake);
	c->stuck = !capture_wait_for_end(c);
	pthread_mutex_unlock(&c->lock);
	if (c->stuck)
		pthread_detach(c->thread);
	else
		pthread_join(c->thread, NULL);
	c->started = false;
}

static const char *capture_unseen_reason(int error)
{
	return error == -ETIMEDOUT   ? "there was no time"
	       : error == -EOVERFLOW ? "there were too many at once"
				     : strerror(-error);
}

static void capture_report_left(const struct perf_map_sweep_counts *left)
{
	const char *why = left->error == -ETIMEDOUT ? "it did not answer in time; is it stopped?"
						    : strerror(-left->error);

	if (left->pid)
		log_warn("process %d: the perf map of a killed profcpu is still on: %s; the "
			 "next `profcpu collect` switches it off",
			 left->pid, why);
	else if (left->left)
		log_warn("perf map of a killed profcpu: cannot be removed: %s; the next `profcpu "
			 "collect` tries again",
			 left->error == -ETIMEDOUT ? "there was no time" : why);
}

void jit_capture_report(const struct jit_capture *c, bool quiet)
{
	size_t noted = 0;

	if (c->stuck) {
		unsigned int on = atomic_load(&c->shared.maps_on);

		if (on)
			log_warn("%u perf map%s of other processes: still switched on; the next "
				 "`profcpu collect` of these processes switches %s off",
				 on, on == 1 ? "" : "s", on == 1 ? "it" : "them");
		log_warn("JIT-compiled code: a process did not answer within %d s; names may be "
			 "missing",
			 JIT_CAPTURE_END_S);
		return;
	}
	for (size_t i = 0; i < c->processes.len; i++) {
		const struct jit_process *p = c->processes.v[i];
		const char *version = p->version[0] ? p->version : "of an unknown version",
			   *comm = p->comm[0] ? p->comm : "?";

		if (p->words && p->broken)
			log_warn("process %d (%s, .NET %s): names come from %s; %s", p->pid, comm,
				 version, p->words, p->why);
		else if (!p->words && p->why[0])
			log_warn("process %d (%s, .NET %s): no names of JIT-compiled code with "
				 "--jit-names=%s: %s",
				 p->pid, comm, version, jit_names_option_word(c->shared.names),
				 p->why);
		else if (p->words && !quiet && ++noted <= LOG_WARN_SHOWN)
			log_note("process %d (%s, .NET %s): names come from %s%s%s", p->pid, comm,
				 version, p->words, p->why[0] ? "; " : "", p->why);
	}
	if (c->shared.swept && !quiet)
		log_note("%zu perf map%s of a killed profcpu: switched off and removed",
			 c->shared.swept, c->shared.swept == 1 ? "" : "s");
	capture_report_left(&c->shared.left);
	if (c->shared.unseen)
		log_warn("%zu process%s: not known whether %s .NET: %s", c->shared.unseen,
			 c->shared.unseen == 1 ? "" : "es",
			 c->shared.unseen == 1 ? "it runs" : "they run",
			 capture_unseen_reason(c->shared.unseen_error));
	if (noted > LOG_WARN_SHOWN)
		log_note("%zu more .NET processes: names were taken too", noted - LOG_WARN_SHOWN);
}

bool jit_capture_is_written(const struct jit_capture *c)
{
	/* The thread still owns the processes; its blocking was reported. */
	if (c->stuck)
		return true;
	for (size_t i = 0; i < c->processes.len; i++)
		if (c->processes.v[i]->write_failures)
			return false;
	return true;
}

void jit_capture_free(struct jit_capture *c)
{
	if (!c)
		return;
	jit_capture_end(c);
	if (c->stuck)
		return;
	for (size_t i = 0; i < c->processes.len; i++)
		free(c->processes.v[i]);
	vec_free(&c->processes);
	vec_free(&c->inbox);
	pidset_free(&c->known);
	opener_free(c->shared.opener);
	if (c->shared.dir_fd >= 0)
		close(c->shared.dir_fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
