#include "profcpu/jit_capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "container/proc.h"
#include "profcpu/jit_process.h"
#include "recording/recording.h"
#include "sampler/pidset.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CAPTURE_PROCESSES_MAX 65536 /* told of and not yet known to be no .NET */
#define CAPTURE_YOUNG_NS (10 * NS_PER_S)
#define CAPTURE_JOIN_NS (2 * NS_PER_S) /* for the thread to see that the time of the end is over */
#define CAPTURE_SWEEP_NS (NS_PER_S / 2) /* that others wait while what a killed profcpu left is looked for */
#define CAPTURE_SWEEP_LAST_NS (3 * NS_PER_S)

struct jit_capture {
	struct jit_processes shared; /* the thread's, until it has ended; so is what follows */
	VEC(struct jit_process *) processes;
	struct pidset known;
	bool started, all;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	VEC(pid_t) inbox;
	size_t dropped; /* for which there was no room */
	bool stopping, ended;
	uint64_t until_ns; /* once stopping */
	bool stuck; /* the thread did not end in time, and what is its stays its */
};

static const char *const capture_words[] = {
	[JIT_NAMES_AUTO] = "auto",
	[JIT_NAMES_MEMORY] = "memory",
	[JIT_NAMES_PERF_MAP] = "perfmap",
	[JIT_NAMES_RUNDOWN] = "rundown",
	[JIT_NAMES_NONE] = "none",
};

const char *jit_names_word(enum jit_names names)
{
	return capture_words[names];
}

int jit_names_parse(const char *text, enum jit_names *ret_names)
{
	for (size_t i = 0; i < sizeof(capture_words) / sizeof(*capture_words); i++)
		if (!strcmp(text, capture_words[i])) {
			*ret_names = (enum jit_names)i;
			return 0;
		}
	return -EINVAL;
}

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
		c->shared.dir_fd = openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = c->shared.dir_fd < 0 ? -errno : 0;
	}
	if (r) {
		jit_capture_free(c);
		return r;
	}
	*ret_capture = c;
	return 0;
}

/* Forgets processes that are none of .NET's, once they are known to be that or have ended. */
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

/* Whether it is worth a look at the end: one that has been there for long was looked at not long ago. */
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

/* The time of one of `left` processes that are still to be ended: one that hangs costs the others none of theirs. */
static uint64_t capture_share(uint64_t now, uint64_t until_ns, size_t left)
{
	return now + (until_ns > now ? (until_ns - now) / (left ? left : 1) : 0);
}

/* At the end everything that is followed or may have become .NET's since it was looked at. */
static bool capture_is_due(const struct jit_process *p, uint64_t now, bool last)
{
	return !p->done && (p->next_ns <= now || (last && (p->way || p->late || capture_is_young(p, now))));
}

static size_t capture_count_due(const struct jit_capture *c, uint64_t now, bool last)
{
	size_t n = 0;

	for (size_t i = 0; i < c->processes.len; i++)
		n += capture_is_due(c->processes.v[i], now, last);
	return n;
}

static void capture_visit(struct jit_capture *c, struct jit_process *p, uint64_t now, uint64_t until, bool last)
{
	bool was_followed = p->way;

	p->target.until_ns = until;
	if (p->way)
		jit_process_step(&c->shared, p, now, last);
	else
		jit_process_look(&c->shared, p, now, until, last);
	if (last && p->way && !p->done && !was_followed)
		jit_process_step(&c->shared, p, clock_monotonic_ns(), last);
}

/* What a killed profcpu left: looked for where that was not done yet, at the end also where something is there still. */
static void capture_sweep(struct jit_capture *c, bool last)
{
	uint64_t until = clock_monotonic_ns() + CAPTURE_SWEEP_LAST_NS;

	if (last)
		c->shared.silent.n = 0; /* who was late before may answer now */
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

/* Looks at everything whose time has come; says when the next is due. Once it is to stop, only the last round goes on. */
static uint64_t capture_round(struct jit_capture *c, bool last)
{
	uint64_t now = clock_monotonic_ns(), next = now + JIT_PROCESS_STEP_MAX_NS;
	uint64_t half = last ? capture_share(now, c->until_ns, 2) : 0; /* the other one is for putting everything back */
	size_t left = last ? capture_count_due(c, now, last) : 0;

	for (size_t i = 0; i < c->processes.len && (last || !capture_is_stopping(c)); i++) {
		struct jit_process *p = c->processes.v[i];

		if (capture_is_due(p, now, last)) {
			if (!last)
				capture_visit(c, p, now, now + JIT_PROCESS_READY_NS, last);
			else if (now < half)
				capture_visit(c, p, now, capture_share(now, half, left), last);
			else
				jit_process_miss(&c->shared, p);
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

/* A process that was told of; it may have been known as another program. */
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
		/* One that is followed may be another program now. */
		p->next_ns = now;
		return;
	}
	p = c->processes.len >= CAPTURE_PROCESSES_MAX || vec_reserve(&c->processes, 1) ? NULL : calloc(1, sizeof(*p));
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

/* What was there before the recording is looked at once and then as seldom as its age says: of thousands none is young. */
static int capture_take_one(void *ctx, pid_t pid)
{
	struct jit_capture *c = ctx;
	uint64_t now = clock_monotonic_ns();
	size_t had = c->processes.len;

	capture_take(c, pid, now);
	if (c->processes.len > had)
		c->processes.v[had]->since_ns = proc_begin_ns(pid, now);
	return capture_is_stopping(c);
}

/* Waits until a process is told of, the end, or a time. Gives whether it is the end. */
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

		jit_process_release(p, capture_share(clock_monotonic_ns(), c->until_ns, left));
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

void jit_capture_process(struct jit_capture *c, pid_t pid)
{
	pthread_mutex_lock(&c->lock);
	if (c->inbox.len >= CAPTURE_PROCESSES_MAX || vec_push(&c->inbox, pid))
		c->dropped++;
	else if (c->inbox.len == 1)
		pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

/* The kernel may let the thread wait for a target without end: a file system that does not answer, a process that holds its map. */
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

static const char *capture_unseen_words(int error)
{
	return error == -ETIMEDOUT ? "there was no time" : error == -EOVERFLOW ? "there were too many at once" : strerror(-error);
}

static void capture_say_left(const struct perf_map_swept *left)
{
	const char *why = left->error == -ETIMEDOUT ? "it did not answer in time; is it stopped?" : strerror(-left->error);

	if (left->pid)
		log_warn("process %d: the perf map that a killed profcpu had left switched on there stays until the next profcpu collect: %s",
			 left->pid, why);
	else if (left->left)
		log_warn("what a killed profcpu had left of a perf map cannot be removed: %s",
			 left->error == -ETIMEDOUT ? "there was no time" : why);
}

void jit_capture_say(const struct jit_capture *c, bool quiet)
{
	size_t said = 0;

	if (c->stuck) {
		unsigned int on = atomic_load(&c->shared.maps_on);

		if (on)
			log_warn("%u perf map%s that profcpu switched on for other processes stay%s on until the next profcpu collect on "
				 "them", on, on == 1 ? "" : "s", on == 1 ? "s" : "");
		log_warn("a process could not be looked at to the end in %d s; names of JIT-compiled code may be missing",
			 JIT_CAPTURE_END_S);
		return;
	}
	for (size_t i = 0; i < c->processes.len; i++) {
		const struct jit_process *p = c->processes.v[i];
		const char *version = p->version[0] ? p->version : "of an unknown version", *comm = p->comm[0] ? p->comm : "?";

		if (p->words && p->broken)
			log_warn("names of process %d (%s, .NET %s) come from %s; %s", p->pid, comm, version, p->words, p->why);
		else if (!p->words && p->why[0])
			log_warn("the JIT-compiled code of process %d (%s, .NET %s) gets no names by --jit-names=%s: %s", p->pid,
				 comm, version, capture_words[c->shared.names], p->why);
		else if (p->words && !quiet && ++said <= LOG_WARN_SHOWN)
			log_note("names of process %d (%s, .NET %s) come from %s%s%s", p->pid, comm, version, p->words,
				 p->why[0] ? "; " : "", p->why);
	}
	if (c->shared.swept && !quiet)
		log_note("%zu perf map%s that a killed profcpu had left switched on %s switched off and removed", c->shared.swept,
			 c->shared.swept == 1 ? "" : "s", c->shared.swept == 1 ? "was" : "were");
	capture_say_left(&c->shared.left);
	if (c->shared.unseen)
		log_warn("whether %zu process%s .NET could not be told: %s", c->shared.unseen, c->shared.unseen == 1 ? " runs" : "es run",
			 capture_unseen_words(c->shared.unseen_error));
	if (said > LOG_WARN_SHOWN)
		log_note("the names of %zu more .NET processes were taken too", said - LOG_WARN_SHOWN);
}

bool jit_capture_is_written(const struct jit_capture *c)
{
	/* The processes are the thread's still; that it holds something was said. */
	if (c->stuck)
		return true;
	for (size_t i = 0; i < c->processes.len; i++)
		if (c->processes.v[i]->unwritten)
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
