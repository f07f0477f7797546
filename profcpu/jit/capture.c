#include "profcpu/jit/capture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/vec.h"
#include "container/proc.h"
#include "container/rights.h"
#include "profcpu/jit/ended.h"
#include "profcpu/jit/queue.h"
#include "recording/manifest.h"
#include "symbols/jit/users.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Processes that are watched. */
#define CAPTURE_PROCESSES_MAX 65536
#define CAPTURE_YOUNG_NS (10 * NS_PER_S)
/* Longest visit, and time at the end for all doubtful ones, unless there is only one process. */
#define CAPTURE_VISIT_NS NS_PER_S
/* Time for the thread to end after its deadline. */
#define CAPTURE_JOIN_NS (2 * NS_PER_S)

struct capture_inbox {
	VEC(pid_t) pids;
};

struct jit_capture {
	/* The members from shared to taken belong to the thread until it has ended. */
	struct jit_processes shared;
	struct jit_queue watched;
	struct jit_ended_list kept; /* for the report; in the end by PID */
	struct capture_inbox taken; /* empty except while it is taken */
	bool started, all;
	pthread_t thread;
	pthread_mutex_t lock; /* protects everything below */
	pthread_cond_t wake;
	struct capture_inbox inbox;
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

/*
 * Takes a process; its PID may be known from another program. since_ns: when its program started,
 * at the latest. Returns it; NULL: it cannot be watched.
 */
static struct jit_process *capture_take(struct jit_capture *c, pid_t pid, uint64_t since_ns,
					uint64_t now)
{
	struct jit_process *p = jit_queue_find(&c->watched, pid);

	if (p) {
		if (!p->way) {
			p->since_ns = since_ns;
			p->slow = p->late = false;
		}
		/* A process that is followed may be another program now. */
		p->next_ns = now;
		jit_queue_update(&c->watched, p);
		return p;
	}
	p = c->watched.heap.len >= CAPTURE_PROCESSES_MAX ? NULL : calloc(1, sizeof(*p));
	if (p) {
		p->pid = pid;
		p->since_ns = since_ns;
		p->next_ns = now;
	}
	if (!p || jit_queue_add(&c->watched, p)) {
		free(p);
		p = NULL;
		c->shared.unseen++;
		c->shared.unseen_error = -EOVERFLOW;
	}
	return p;
}

/*
 * Stops watching a process, by until_ns. If it ran .NET, keeps what the report says of it. Its PID
 * may execute another program, which is watched instead. last: the recording has ended.
 */
static void capture_retire(struct jit_capture *c, struct jit_process *p, uint64_t until_ns,
			   bool last)
{
	uint64_t now = clock_monotonic_ns();
	bool replaced = p->is_dotnet && p->replaced;
	pid_t pid = p->pid;

	if (p->has_old_user)
		(void)jit_process_note_user(&c->shared, pid, RIGHTS_NOBODY);
	jit_queue_remove(&c->watched, p);
	if (p->is_dotnet) {
		/* Also after a failure: a process that was starting up still has its file open. */
		jit_process_release(p, until_ns);
		jit_ended_add(&c->kept, p, last);
	}
	free(p);
	if (replaced)
		(void)capture_take(c, pid, now, now);
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

/* Deadline for what may wait for a reply: until_ns at the latest. alone: it delays no other. */
static uint64_t capture_limit(uint64_t now, uint64_t until_ns, bool alone)
{
	return alone || now + CAPTURE_VISIT_NS > until_ns ? until_ns : now + CAPTURE_VISIT_NS;
}

/*
 * Whether a process is due at the end: all that are followed, and all that may have started .NET
 * since their last probe.
 */
static bool capture_is_last_due(const struct jit_process *p, uint64_t now)
{
	return p->next_ns <= now || p->way || p->late || capture_is_young(p, now);
}

static void capture_visit(struct jit_capture *c, struct jit_process *p, uint64_t now,
			  uint64_t until, bool last)
{
	p->target.until_ns = until;
	if (p->way)
		jit_process_step(&c->shared, p, now, last);
	else
		jit_process_probe(&c->shared, p, now, until, last);
}

/* Visits the processes that are due now, until a stop. Returns the time of the next round. */
static uint64_t capture_round(struct jit_capture *c)
{
	const uint64_t begin = clock_monotonic_ns();
	const struct jit_queue *q = &c->watched;

	while (q->heap.len && q->heap.v[0]->next_ns <= begin && !capture_is_stopping(c)) {
		struct jit_process *p = q->heap.v[0];
		uint64_t now = clock_monotonic_ns();

		capture_visit(c, p, now,
			      capture_limit(now, now + JIT_PROCESS_READY_NS, q->heap.len == 1),
			      false);
		/* One visit in each round, so that all others and new ones get theirs. */
		if (p->next_ns <= begin)
			p->next_ns = begin + 1;
		if (p->done)
			capture_retire(c, p, p->target.until_ns, false);
		else
			jit_queue_update(&c->watched, p);
	}
	return q->heap.len ? q->heap.v[0]->next_ns : begin + JIT_PROCESS_STEP_MAX_NS;
}

/* The order of the last round: those that give names, by themselves or by a reply, come first. */
enum capture_turn { TURN_STEP, TURN_PROBE, TURN_REPLY, TURN_DOUBT, TURN_NONE, TURNS };

static enum capture_turn capture_last_turn(const struct jit_process *p, uint64_t now)
{
	if (p->way)
		return p->way == &jit_way_memory ? TURN_STEP : TURN_REPLY;
	if (!capture_is_last_due(p, now))
		return TURN_NONE;
	return !p->late && !p->slow ? TURN_PROBE : p->doubtful ? TURN_DOUBT : TURN_REPLY;
}

/* The last round, after a stop: retires all processes, and visits those that are due then. */
static void capture_last_round(struct jit_capture *c)
{
	struct jit_queue *q = &c->watched;
	const bool alone = q->heap.len == 1;
	uint64_t now = clock_monotonic_ns(), until[TURNS] = {c->until_ns, c->until_ns, c->until_ns};
	size_t left[TURNS] = {0};

	/* All processes move forwards in the queue, so each is seen once. */
	for (size_t i = 0; i < q->heap.len; i++) {
		struct jit_process *p = q->heap.v[i];

		p->next_ns = capture_last_turn(p, now);
		left[p->next_ns]++;
		jit_queue_update(q, p);
	}
	for (; q->heap.len; now = clock_monotonic_ns()) {
		struct jit_process *p = q->heap.v[0];
		/* One that was executed meanwhile is new. */
		enum capture_turn turn =
			p->next_ns < TURNS ? (enum capture_turn)p->next_ns : TURN_PROBE;

		if (!until[turn])
			until[turn] = capture_limit(now, c->until_ns, alone);
		bool was_followed = p->way;

		if (turn != TURN_NONE && now < until[turn])
			capture_visit(c, p, now, capture_deadline(now, until[turn], left[turn]),
				      true);
		else if (turn != TURN_NONE)
			jit_process_note_missed_step(&c->shared, p);
		left[turn] -= left[turn] > 0;
		bool is_begun = p->way && !was_followed && !p->done;

		/* A reply is still within this turn; memory gets the time of all steps. */
		if (is_begun && p->way != &jit_way_memory)
			capture_visit(c, p, clock_monotonic_ns(), p->target.until_ns, true);
		if ((turn == TURN_PROBE && p->late) || (is_begun && p->way == &jit_way_memory)) {
			p->next_ns = capture_last_turn(p, now);
			left[p->next_ns]++;
			jit_queue_update(q, p);
		} else {
			capture_retire(c, p, until[turn], true);
		}
	}
	jit_ended_sort(&c->kept);
}

/*
 * Takes a process that existed before the recording. It is probed once, then at intervals that grow
 * with its age.
 */
static int capture_take_one(void *ctx, pid_t pid)
{
	struct jit_capture *c = ctx;
	uint64_t now = clock_monotonic_ns();

	(void)capture_take(c, pid, proc_start_ns(pid, now), now);
	return capture_is_stopping(c);
}

/* Waits until a process is added, the end, or a time. True: it is the end. */
static bool capture_wait(struct jit_capture *c, uint64_t until_ns)
{
	struct timespec until = clock_timespec(until_ns);
	struct capture_inbox inbox;
	bool stopping;

	pthread_mutex_lock(&c->lock);
	while (!c->stopping && !c->inbox.pids.len)
		if (pthread_cond_timedwait(&c->wake, &c->lock, &until))
			break;
	/* The thread that drains the rings must not wait until the processes are taken. */
	inbox = c->inbox;
	c->inbox = c->taken;
	stopping = c->stopping;
	pthread_mutex_unlock(&c->lock);
	uint64_t now = clock_monotonic_ns();

	for (size_t i = 0; i < inbox.pids.len; i++) {
		struct jit_process *p = capture_take(c, inbox.pids.v[i], now, now);

		if (p)
			p->has_old_user = true;
		else
			(void)jit_process_note_user(&c->shared, inbox.pids.v[i], RIGHTS_NOBODY);
	}
	inbox.pids.len = 0;
	c->taken = inbox;
	return stopping;
}

static void *capture_main(void *ctx)
{
	struct jit_capture *c = ctx;

	if (c->all)
		(void)proc_each_pid(capture_take_one, c);
	for (uint64_t next = 0; !capture_wait(c, next);)
		next = capture_round(c);
	capture_last_round(c);
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

void jit_capture_limit_bytes(struct jit_capture *c, uint64_t bytes)
{
	c->shared.disk.limit = bytes / 2 + 1; /* with the reserve for small processes */
}

int jit_capture_start(struct jit_capture *c, bool all)
{
	int r;

	if (c->started)
		return 0;
	c->all = all;
	r = thread_start(&c->thread, "jit-capture", capture_main, c);
	c->started = !r;
	return r;
}

void jit_capture_add_process(struct jit_capture *c, pid_t pid)
{
	pthread_mutex_lock(&c->lock);
	if (c->inbox.pids.len >= CAPTURE_PROCESSES_MAX || vec_push(&c->inbox.pids, pid))
		c->dropped++;
	else if (c->inbox.pids.len == 1)
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
	/* Any entry may be that of an earlier process, because new ones were not taken. */
	if (c->stuck || c->dropped)
		(void)unlinkat(c->shared.dir_fd, JIT_USERS_FILE, 0);
	pthread_mutex_unlock(&c->lock);
	if (c->stuck)
		pthread_detach(c->thread);
	else
		pthread_join(c->thread, NULL);
	c->started = false;
}

struct capture_users {
	VEC(struct jit_user) v;
};

static int capture_take_user(void *ctx, pid_t pid, uid_t uid, bool other_root)
{
	struct capture_users *users = ctx;

	const struct jit_user user = {.pid = (uint32_t)pid & JIT_USERS_PID_MAX,
				      .other_root = other_root,
				      .our_root = !other_root,
				      .uid = uid};

	return vec_push(&users->v, user);
}

void jit_capture_note_users(struct jit_capture *c, struct opener *opener)
{
	struct capture_users users = {0};
	int r = opener_each(opener, capture_take_user, &users);

	if (!r && users.v.len)
		r = jit_users_add(c->shared.dir_fd, users.v.v, users.v.len);
	/* Without the entries, files of ended processes are opened with fewer rights. */
	if (r == -E2BIG && !c->stuck)
		c->shared.users_left_out += users.v.len;
	vec_free(&users.v);
}

static void capture_unseen_reason(const struct jit_processes *s, char *text, size_t cap)
{
	int e = s->unseen_error;

	if (e == -E2BIG)
		snprintf(text, cap, "the list of memory maps of process %d is longer than %zu MiB",
			 (int)s->unseen_pid, PROC_MAPS_MAX >> 20);
	else
		snprintf(text, cap, "%s",
			 e == -ETIMEDOUT   ? "there was no time"
			 : e == -EOVERFLOW ? "there were too many at once"
					   : strerror(-e));
}

void jit_capture_report(const struct jit_capture *c, bool quiet)
{
	if (c->stuck) {
		log_warn("JIT-compiled code: a process did not answer within %d s; names may be "
			 "missing",
			 JIT_CAPTURE_END_S);
		return;
	}
	jit_ended_report(&c->kept, c->shared.names, quiet);
	if (!c->shared.unseen || c->shared.names == JIT_NAMES_NONE)
		return;
	char why[128];

	capture_unseen_reason(&c->shared, why, sizeof(why));
	log_warn("%zu process%s: not known whether %s .NET: %s", c->shared.unseen,
		 c->shared.unseen == 1 ? "" : "es", c->shared.unseen == 1 ? "it runs" : "they run",
		 why);
}

bool jit_capture_is_written(const struct jit_capture *c)
{
	/* The thread still owns the processes; its blocking was reported. */
	return c->stuck || !c->kept.write_failed;
}

size_t jit_capture_users_left_out(const struct jit_capture *c)
{
	return c->stuck ? 0 : c->shared.users_left_out;
}

void jit_capture_free(struct jit_capture *c)
{
	if (!c)
		return;
	jit_capture_end(c);
	if (c->stuck)
		return;
	jit_ended_free(&c->kept);
	vec_free(&c->inbox.pids);
	vec_free(&c->taken.pids);
	jit_queue_free(&c->watched);
	hashmap_free(&c->shared.users);
	opener_free(c->shared.opener);
	if (c->shared.dir_fd >= 0)
		close(c->shared.dir_fd);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}
