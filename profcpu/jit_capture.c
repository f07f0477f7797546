#include "profcpu/jit_capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/vec.h"
#include "container/dotnet.h"
#include "container/proc.h"
#include "eventpipe/perf_map_undo.h"
#include "profcpu/jit_way.h"
#include "profcpu/record_spare.h"
#include "recording/recording.h"
#include "sampler/pidset.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define CAPTURE_PROCESSES_MAX 65536 /* told of and not yet known to be no .NET */
#define CAPTURE_LOOK_FIRST_NS (20 * NS_PER_MS) /* after a process began; then each time as long as it has been there */
#define CAPTURE_WHY_BYTES (3 * JIT_WAY_WHY_BYTES + 64)
#define CAPTURE_READY_NS (5 * NS_PER_S) /* a runtime has begun to answer by then, or another way is taken */
#define CAPTURE_YOUNG_NS (10 * NS_PER_S)
#define CAPTURE_SWEEP_NS (3 * NS_PER_S)
#define CAPTURE_STEP_MIN_NS (50 * NS_PER_MS)
#define CAPTURE_STEP_MAX_NS (2 * NS_PER_S)
#define CAPTURE_STEP_SHARE 100 /* a step costs at most one of so many parts of the time */
#define CAPTURE_STEP_HURRY 5 /* and so many of them where code is freed */
#define CAPTURE_JOIN_NS (2 * NS_PER_S) /* for the thread to see that the time of the end is over */
#define CAPTURE_DISK_BYTES ((uint64_t)16 << 20) /* that are left to perf.data */
#define CAPTURE_SPARE_DESCRIPTORS 32 /* that one process more leaves to the recording */
#define STAT_START_STACK 28 /* field of /proc/PID/stat; 0 without the right to look */

/* A program, and not only its PID: another one has other numbers, after an exec as well. */
struct capture_identity {
	uint64_t start_ticks, start_stack;
};

struct capture_process {
	pid_t pid;
	struct capture_identity identity; /* of what is followed */
	uint64_t since_ns, next_ns; /* CLOCK_MONOTONIC: told of; to be looked at again */
	char comm[PROC_COMM_BYTES], version[DOTNET_VERSION_BYTES];
	const struct jit_way *way; /* NULL: not followed */
	void *state;
	struct jit_target target;
	const char *words;
	char why[CAPTURE_WHY_BYTES];
	bool is_dotnet, done; /* done: nothing more is to be learned */
	bool forgotten; /* done, and its PID may be told of again */
	bool broken; /* something went wrong once its names were being taken */
};

struct jit_capture {
	enum jit_names names;
	int dir_fd; /* symbols/ of the recording */
	struct opener *opener;
	VEC(struct capture_process *) processes; /* the thread's, until it has ended; so is what follows */
	struct pidset known;
	size_t swept; /* perf maps */
	bool started, all;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	VEC(pid_t) inbox;
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
	c->names = names;
	c->dir_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = opener_new(&c->opener);
	if (!r)
		r = pidset_new(&c->known);
	if (!r && mkdirat(dir_fd, RECORDING_SYMBOLS, 0700) && errno != EEXIST)
		r = -errno;
	if (!r) {
		c->dir_fd = openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		r = c->dir_fd < 0 ? -errno : 0;
	}
	if (r) {
		jit_capture_free(c);
		return r;
	}
	*ret_capture = c;
	return 0;
}

static struct capture_identity capture_identity(pid_t pid)
{
	struct capture_identity id = {0};
	char *text = NULL;
	size_t len;

	if (proc_read(pid, 0, "stat", PROC_FILE_MAX, &text, &len))
		return id;
	if (proc_start_ticks(pid, &id.start_ticks) || proc_stat_field(text, STAT_START_STACK, &id.start_stack))
		id = (struct capture_identity){0};
	free(text);
	return id;
}

static bool capture_is_same(const struct capture_process *p)
{
	struct capture_identity id = capture_identity(p->pid);

	return id.start_ticks == p->identity.start_ticks && id.start_stack == p->identity.start_stack;
}

static void capture_add_why(struct capture_process *p, const char *what, const char *why)
{
	size_t len = strlen(p->why);

	snprintf(p->why + len, sizeof(p->why) - len, "%s%s%s%s", len ? "; " : "", what, what[0] ? ": " : "", why);
}

static void capture_break(struct capture_process *p, const char *why)
{
	p->broken = true;
	capture_add_why(p, "", why);
}

static void capture_write_failed(struct capture_process *p, int error)
{
	char why[JIT_WAY_WHY_BYTES];

	snprintf(why, sizeof(why), "they cannot all be written to the recording: %s", strerror(-error));
	capture_break(p, why);
}

/* Gives up a process; what was written of it stays. */
static void capture_release(struct capture_process *p, uint64_t until_ns)
{
	char why[JIT_WAY_WHY_BYTES] = "";

	if (p->way)
		p->way->end(p->state, until_ns, why);
	if (why[0])
		capture_break(p, why);
	p->way = NULL;
	p->state = NULL;
	int r = jit_methods_writer_close(p->target.out);

	if (r && !p->broken)
		capture_write_failed(p, r);
	p->target.out = NULL;
}

/* Follows a process in one way. 0; -EAGAIN: the runtime is not ready; -ESRCH; -errno: not this way, why says why. */
static int capture_begin(struct jit_capture *c, struct capture_process *p, const struct jit_way *way, char *why)
{
	int r = 0;

	/* What the recording itself opens later is worth more. */
	if (record_spare_count(CAPTURE_SPARE_DESCRIPTORS) < CAPTURE_SPARE_DESCRIPTORS) {
		snprintf(why, JIT_WAY_WHY_BYTES, "too few files may be open; raise the limit (ulimit -n)");
		return -EMFILE;
	}
	p->identity = capture_identity(p->pid);
	if (!p->target.out)
		r = jit_methods_writer_open(c->dir_fd, p->pid, &p->target.out);
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "names cannot be written to the recording: %s", strerror(-r));
		return r;
	}
	if (!p->target.pid && p->version[0])
		jit_methods_writer_runtime(p->target.out, p->version);
	p->target.pid = p->pid;
	p->target.opener = c->opener;
	r = way->begin(&p->target, &p->state, why);
	if (!r) {
		p->way = way;
		p->words = way->words;
		p->why[0] = 0;
	}
	return r;
}

/* What post-processing says of a process whose names are missing. */
static void capture_put_why(const struct capture_process *p, bool ended)
{
	const char *why = p->why[0] ? p->why : ended ? "the process ended before they could be taken" : "";

	if (p->target.out && *why)
		jit_methods_writer_why(p->target.out, why);
}

/* Since when a process is there, by CLOCK_MONOTONIC. */
static uint64_t capture_begin_of(pid_t pid, uint64_t now)
{
	long hz = sysconf(_SC_CLK_TCK);
	struct timespec boot = {0};
	uint64_t ticks, up, start;

	if (hz <= 0 || clock_gettime(CLOCK_BOOTTIME, &boot) || proc_start_ticks(pid, &ticks))
		return now;
	up = (uint64_t)boot.tv_sec * NS_PER_S + (uint64_t)boot.tv_nsec;
	start = ticks / (uint64_t)hz * NS_PER_S;
	return start < up && up - start < now ? now - (up - start) : now;
}

/* Takes the way that was asked for, or the first one that can be taken. last: what is not ready now never will be. */
static void capture_choose(struct jit_capture *c, struct capture_process *p, uint64_t now, uint64_t until_ns, bool last)
{
	static const struct jit_way *const ways[] = {
		[JIT_NAMES_MEMORY] = &jit_way_memory,
		[JIT_NAMES_PERF_MAP] = &jit_way_perf_map,
		[JIT_NAMES_RUNDOWN] = &jit_way_rundown,
	};
	bool is_ready = last || now - p->since_ns > CAPTURE_READY_NS || now - capture_begin_of(p->pid, now) > CAPTURE_READY_NS;
	int r = -ENOTSUP;

	p->why[0] = 0;
	p->target.until_ns = until_ns;
	for (enum jit_names n = JIT_NAMES_MEMORY; n <= JIT_NAMES_RUNDOWN && r; n++) {
		char why[JIT_WAY_WHY_BYTES] = "";

		if (c->names != JIT_NAMES_AUTO && c->names != n)
			continue;
		r = capture_begin(c, p, ways[n], why);
		/* Tried again later; the next way would not fare better now. */
		if (r == -EAGAIN && !is_ready)
			return;
		if (r == -ESRCH)
			break;
		if (r)
			capture_add_why(p, c->names == JIT_NAMES_AUTO ? ways[n]->name : "", why);
	}
	p->done = r != 0;
	p->next_ns = now;
	if (r) {
		capture_put_why(p, r == -ESRCH);
		if (r == -ESRCH && !p->why[0])
			snprintf(p->why, sizeof(p->why), "it ended before they could be taken");
		capture_release(p, until_ns);
	}
}

/* Whether a process that is not followed has become a .NET one. */
static void capture_look(struct jit_capture *c, struct capture_process *p, uint64_t now, uint64_t until_ns, bool last)
{
	struct dotnet_runtime runtime;
	struct perf_map_swept swept;
	struct proc_status status;
	int r = dotnet_look(c->opener, p->pid, &runtime);

	p->next_ns = now + (now - p->since_ns > CAPTURE_LOOK_FIRST_NS ? now - p->since_ns : CAPTURE_LOOK_FIRST_NS);
	if (r) {
		if (p->is_dotnet && !p->why[0])
			snprintf(p->why, sizeof(p->why), "it ended before they could be taken");
		p->done = true;
		return;
	}
	if (!runtime.is_dotnet)
		return;
	p->is_dotnet = true;
	/* Whatever the way: what a profcpu that was killed has left there. */
	if (!perf_map_sweep(c->opener, p->pid, until_ns < now + CAPTURE_SWEEP_NS ? until_ns : now + CAPTURE_SWEEP_NS, &swept))
		c->swept += swept.removed;
	memcpy(p->version, runtime.version, sizeof(p->version));
	if (!proc_status(p->pid, &status))
		snprintf(p->comm, sizeof(p->comm), "%s", status.comm);
	capture_choose(c, p, now, until_ns, last);
}

/* Whether there is room on the disk for more than perf.data. */
static bool capture_has_room(const struct jit_capture *c)
{
	struct statvfs fs;

	return fstatvfs(c->dir_fd, &fs) || (uint64_t)fs.f_bavail * fs.f_frsize >= CAPTURE_DISK_BYTES;
}

/* What is followed has ended, or executed another program: the rest of it, and whatever has its PID now is looked at anew. */
static void capture_again(struct capture_process *p, uint64_t now, uint64_t until_ns)
{
	capture_release(p, until_ns);
	p->since_ns = p->next_ns = now;
}

static void capture_step(const struct jit_capture *c, struct capture_process *p, uint64_t now, bool last)
{
	char why[JIT_WAY_WHY_BYTES] = "";
	int r = 0;

	if (!capture_is_same(p)) {
		capture_again(p, now, p->target.until_ns);
		return;
	}
	if (!capture_has_room(c)) {
		capture_write_failed(p, -ENOSPC);
		p->done = true;
		capture_release(p, p->target.until_ns);
		return;
	}
	r = p->way->step(p->state, now, last, why);
	int flushed = jit_methods_writer_flush(p->target.out);

	if (r && r != -ESRCH)
		capture_break(p, why);
	else if (!r && *why)
		capture_add_why(p, "", why);
	else if (flushed)
		capture_write_failed(p, flushed);
	if (r || flushed) {
		if (r != -ESRCH)
			capture_put_why(p, false);
		p->done = true;
		capture_release(p, p->target.until_ns);
		return;
	}
	uint64_t took = clock_monotonic_ns() - now, least = CAPTURE_STEP_MIN_NS, wait = took * CAPTURE_STEP_SHARE;

	if (p->target.frees) {
		least /= CAPTURE_STEP_HURRY;
		wait /= CAPTURE_STEP_HURRY;
	}
	if (wait < least)
		wait = least;
	p->next_ns = now + took + (wait > CAPTURE_STEP_MAX_NS ? CAPTURE_STEP_MAX_NS : wait);
}

/* Forgets processes that are none of .NET's, once they are known to be that or have ended. */
static void capture_forget(struct jit_capture *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->processes.len; i++) {
		struct capture_process *p = c->processes.v[i];

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
static bool capture_is_young(const struct capture_process *p, uint64_t now)
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

/* Looks at everything whose time has come; says when the next is due. Once it is to stop, only the last round goes on. */
static uint64_t capture_round(struct jit_capture *c, bool last)
{
	uint64_t now = clock_monotonic_ns(), next = now + CAPTURE_STEP_MAX_NS;
	uint64_t half = last ? now + (c->until_ns - now) / 2 : 0; /* the other one is for putting everything back */

	for (size_t i = 0; i < c->processes.len && (last ? now < half : !capture_is_stopping(c)); i++) {
		struct capture_process *p = c->processes.v[i];
		uint64_t until = last ? capture_share(now, half, c->processes.len - i) : now + CAPTURE_READY_NS;

		bool was_followed = p->way;

		if (p->done)
			continue;
		if (p->next_ns <= now || (last && (p->way || capture_is_young(p, now)))) {
			p->target.until_ns = until;
			if (p->way)
				capture_step(c, p, now, last);
			else
				capture_look(c, p, now, until, last);
			now = clock_monotonic_ns();
			if (last && p->way && !p->done && !was_followed)
				capture_step(c, p, now, last);
		}
		if (!p->done && p->next_ns < next)
			next = p->next_ns;
	}
	capture_forget(c);
	return next;
}

/* A process that was told of; it may have been known as another program. */
static void capture_take(struct jit_capture *c, pid_t pid, uint64_t now)
{
	struct capture_process *p;
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
	if (c->processes.len >= CAPTURE_PROCESSES_MAX || vec_reserve(&c->processes, 1))
		return;
	p = calloc(1, sizeof(*p));
	if (!p)
		return;
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
		c->processes.v[had]->since_ns = capture_begin_of(pid, now);
	return capture_is_stopping(c);
}

/* Waits until a process is told of, the end, or a time. Gives whether it is the end. */
static bool capture_wait(struct jit_capture *c, uint64_t until_ns)
{
	struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};
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
		struct capture_process *p = c->processes.v[i];
		bool followed = p->way;

		capture_release(p, capture_share(clock_monotonic_ns(), c->until_ns, left));
		left -= followed;
	}
	pthread_mutex_lock(&c->lock);
	c->ended = true;
	pthread_cond_broadcast(&c->wake);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

int jit_capture_start(struct jit_capture *c, bool all)
{
	int r;

	if (c->names == JIT_NAMES_NONE || c->started)
		return 0;
	c->all = all;
	r = pthread_create(&c->thread, NULL, capture_main, c);
	c->started = !r;
	return -r;
}

void jit_capture_process(struct jit_capture *c, pid_t pid)
{
	pthread_mutex_lock(&c->lock);
	if (c->inbox.len < CAPTURE_PROCESSES_MAX && !vec_push(&c->inbox, pid) && c->inbox.len == 1)
		pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
}

/* The kernel may let the thread wait for a target without end: a file system that does not answer, a process that holds its map. */
static bool capture_wait_for_end(struct jit_capture *c)
{
	uint64_t until_ns = c->until_ns + CAPTURE_JOIN_NS;
	struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

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

void jit_capture_say(const struct jit_capture *c, bool quiet)
{
	size_t said = 0;

	if (c->stuck) {
		log_warn("a process could not be looked at to the end in %d s; names of JIT-compiled code may be missing",
			 JIT_CAPTURE_END_S);
		return;
	}
	for (size_t i = 0; i < c->processes.len; i++) {
		const struct capture_process *p = c->processes.v[i];
		const char *version = p->version[0] ? p->version : "of an unknown version";

		if (p->words && p->broken)
			log_warn("names of process %d (%s, .NET %s) come from %s; %s", p->pid, p->comm, version, p->words, p->why);
		else if (!p->words && p->why[0])
			log_warn("the JIT-compiled code of process %d (%s, .NET %s) gets no names by --jit-names=%s: %s", p->pid,
				 p->comm, version, capture_words[c->names], p->why);
		else if (p->words && !quiet && ++said <= LOG_WARN_SHOWN)
			log_note("names of process %d (%s, .NET %s) come from %s%s%s", p->pid, p->comm, version, p->words,
				 p->why[0] ? "; " : "", p->why);
	}
	if (c->swept && !quiet)
		log_note("%zu perf map%s that a killed profcpu had left switched on %s switched off and removed", c->swept,
			 c->swept == 1 ? "" : "s", c->swept == 1 ? "was" : "were");
	if (said > LOG_WARN_SHOWN)
		log_note("the names of %zu more .NET processes were taken too", said - LOG_WARN_SHOWN);
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
	opener_free(c->opener);
	if (c->dir_fd >= 0)
		close(c->dir_fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
