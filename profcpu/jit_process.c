#include "profcpu/jit_process.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "profcpu/mend.h"
#include "profcpu/record_spare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define PROCESS_LOOK_FIRST_NS (20 * NS_PER_MS) /* after a process began; then each time half as long as it has been there */
#define PROCESS_STEP_MIN_NS (50 * NS_PER_MS)
#define PROCESS_STEP_SHARE 100 /* a step costs at most one of so many parts of the time of a CPU */
#define PROCESS_STEP_HURRY 5 /* and so many of them where code is freed, or the process may end soon */
#define PROCESS_FREES_NS (5 * NS_PER_S) /* after code was freed */
#define PROCESS_YOUNG_NS (2 * NS_PER_S) /* since it was told of */
#define PROCESS_LATE_SHARE 20 /* one whose memory could not be read in time is tried again after so many times that time */
#define PROCESS_DISK_BYTES ((uint64_t)1 << 20) /* that are left to perf.data and to what ends a recording */
#define PROCESS_SPARE_DESCRIPTORS 32 /* that one process more leaves to the recording */

static const char process_ended[] = "the process ended before they could be taken";
static const char process_no_time[] = "there was no time";

/* 0, with zeros of what has ended; -errno. */
static int process_identity(pid_t pid, struct jit_identity *ret_id)
{
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(pid, 0, "stat", PROC_FILE_MAX, &text, &len);

	*ret_id = (struct jit_identity){0};
	if (r)
		return r == -ESRCH ? 0 : r;
	if (proc_stat_field(text, PROC_STAT_START_TICKS, &ret_id->start_ticks) ||
	    proc_stat_field(text, PROC_STAT_START_STACK, &ret_id->start_stack))
		*ret_id = (struct jit_identity){0};
	return 0;
}

static bool process_is_same(const struct jit_process *p)
{
	struct jit_identity id;

	/* Where it cannot be told, nothing has changed. */
	return process_identity(p->pid, &id) ||
	       (id.start_ticks == p->identity.start_ticks && id.start_stack == p->identity.start_stack);
}

/* For certain: one that ends, or may not be looked at any more, has no stack. */
static bool process_is_replaced(const struct jit_process *p)
{
	struct jit_identity id;

	return !process_identity(p->pid, &id) && id.start_stack &&
	       (id.start_ticks != p->identity.start_ticks || id.start_stack != p->identity.start_stack);
}

static void process_add_why(struct jit_process *p, const char *what, const char *why)
{
	size_t len = strlen(p->why);

	snprintf(p->why + len, sizeof(p->why) - len, "%s%s%s%s", len ? "; " : "", what, what[0] ? ": " : "", why);
}

static void process_break(struct jit_process *p, const char *why)
{
	p->broken = true;
	process_add_why(p, "", why);
}

static void process_write_failed(struct jit_process *p, int error)
{
	char why[JIT_WAY_WHY_BYTES];

	snprintf(why, sizeof(why), "they cannot all be written to the recording: %s%s", strerror(-error), mend_of(error));
	process_break(p, why);
	p->unwritten = true;
}

void jit_process_release(struct jit_process *p, uint64_t until_ns)
{
	char why[JIT_WAY_WHY_BYTES] = "";

	if (p->way)
		p->way->end(p->state, until_ns, why);
	if (why[0])
		process_break(p, why);
	p->way = NULL;
	p->state = NULL;
	p->stepped = false;
	int r = jit_methods_writer_close(p->target.out);

	if (r && !p->unwritten)
		process_write_failed(p, r);
	p->target.out = NULL;
}

/* Post-processing says why its names are missing. */
static void process_write_why(struct jit_processes *all, struct jit_process *p)
{
	struct jit_methods_writer *w = p->target.out;

	if (!w && jit_methods_writer_open(all->dir_fd, p->pid, &w))
		return;
	jit_methods_writer_why(w, p->why);
	/* Nothing more will come of one that is not followed. */
	if (w != p->target.out)
		(void)jit_methods_writer_close(w);
}

/* The same as release, for good. */
static void process_give_up(struct jit_processes *all, struct jit_process *p, uint64_t until_ns)
{
	p->done = true;
	if (p->why[0])
		process_write_why(all, p);
	jit_process_release(p, until_ns);
}

/* Follows a process in one way. 0; -EAGAIN: the runtime is not ready; -ESRCH; -errno: not this way, why says why. */
static int process_begin(struct jit_processes *all, struct jit_process *p, const struct jit_way *way, char *why)
{
	bool is_fresh = !p->target.out;
	int r = 0;

	/* One that was held up is to begin nothing that nobody waits for any more. */
	if (clock_monotonic_ns() >= p->target.until_ns) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", process_no_time);
		return -ETIMEDOUT;
	}
	/* What the recording itself opens later is worth more. */
	if (record_spare_count(PROCESS_SPARE_DESCRIPTORS) < PROCESS_SPARE_DESCRIPTORS) {
		snprintf(why, JIT_WAY_WHY_BYTES, "too few files may be open; raise the limit (ulimit -n)");
		return -EMFILE;
	}
	r = process_identity(p->pid, &p->identity);
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", strerror(-r));
		return r;
	}
	if (is_fresh)
		r = jit_methods_writer_open(all->dir_fd, p->pid, &p->target.out);
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "names cannot be written to the recording: %s", strerror(-r));
		p->unwritten = true;
		return r;
	}
	if (is_fresh && p->version[0])
		jit_methods_writer_runtime(p->target.out, p->version);
	p->target.pid = p->pid;
	p->target.opener = all->opener;
	p->target.maps_on = &all->maps_on;
	p->target.lines = all->lines;
	p->target.ended = p->target.replaced = p->target.more = p->target.frees = false;
	r = way->begin(&p->target, &p->state, why);
	if (!r) {
		p->way = way;
		p->words = way->words;
		p->why[0] = 0;
	}
	return r;
}

/* Takes the way that was asked for, or the first one that can be taken. last: what is not ready now never will be. */
static void process_choose(struct jit_processes *all, struct jit_process *p, uint64_t now, uint64_t until_ns, bool last)
{
	static const struct jit_way *const ways[] = {
		[JIT_NAMES_MEMORY] = &jit_way_memory,
		[JIT_NAMES_PERF_MAP] = &jit_way_perf_map,
		[JIT_NAMES_RUNDOWN] = &jit_way_rundown,
	};
	bool is_ready = last || now - p->since_ns > JIT_PROCESS_READY_NS || now - proc_begin_ns(p->pid, now) > JIT_PROCESS_READY_NS;
	int r = -ENOTSUP;

	p->late = false;
	p->why[0] = 0;
	p->target.until_ns = until_ns;
	for (enum jit_names n = JIT_NAMES_MEMORY; n <= JIT_NAMES_RUNDOWN && r; n++) {
		char why[JIT_WAY_WHY_BYTES] = "";

		if (all->names != JIT_NAMES_AUTO && all->names != n)
			continue;
		r = process_begin(all, p, ways[n], why);
		/* Tried again later; the next way would not fare better now. */
		if (r == -EAGAIN && !is_ready)
			return;
		if (r == -ESRCH)
			break;
		if (r)
			process_add_why(p, all->names == JIT_NAMES_AUTO ? ways[n]->name : "", why);
		/* That a machine is busy is no reason to ask a runtime, which can crash it. */
		p->late = r == -ETIMEDOUT && n == JIT_NAMES_MEMORY && !last;
		if (r == -ETIMEDOUT && n == JIT_NAMES_MEMORY)
			break;
	}
	p->next_ns = p->late ? now + PROCESS_LATE_SHARE * (clock_monotonic_ns() - now) : now;
	if (!r || p->late)
		return;
	/* Which the report knows of one of which nothing is written. */
	if (r == -ESRCH && !p->why[0]) {
		process_add_why(p, "", process_ended);
		p->broken |= p->words != NULL;
		p->done = true;
		jit_process_release(p, until_ns);
		return;
	}
	/* An earlier program of this PID has its names, this one has none. */
	p->broken |= p->words != NULL;
	process_give_up(all, p, until_ns);
}

void jit_process_sweep(struct jit_processes *all, struct jit_process *p, uint64_t until_ns, bool last)
{
	struct perf_map_swept swept = {0};

	p->unswept = false;
	p->swept = true;
	if (perf_map_sweep(all->opener, p->pid, until_ns, &all->silent, &swept))
		return;
	all->swept += swept.removed;
	/* A runtime that is still listing its methods answers late. */
	p->unswept = swept.left > 0;
	if (!last || !p->unswept)
		return;
	all->left.left++;
	if (swept.pid || !all->left.pid) {
		all->left.error = swept.error;
		all->left.pid = swept.pid;
	}
}

/* It could not be looked at. What is no matter of the process itself may be over the next time. */
static void process_look_failed(struct jit_processes *all, struct jit_process *p, int error, bool last)
{
	bool is_ours = error == -EMFILE || error == -ENFILE || error == -ENOMEM;

	if (is_ours && !last)
		return;
	p->done = true;
	if (p->is_dotnet && !p->words && !p->why[0]) {
		process_add_why(p, "", error == -ESRCH ? process_ended : strerror(-error));
		if (error != -ESRCH)
			process_write_why(all, p);
	}
	/* What we have no right to look at is not ours to record either. */
	if (p->is_dotnet || error == -ESRCH || error == -EACCES || error == -EPERM)
		return;
	all->unseen++;
	all->unseen_error = error;
}

void jit_process_miss(struct jit_processes *all, struct jit_process *p)
{
	if (!p->is_dotnet && !p->way) {
		all->unseen++;
		all->unseen_error = -ETIMEDOUT;
		return;
	}
	if (p->way)
		process_break(p, "there was no time for a last look at it");
	else if (!p->why[0])
		process_add_why(p, "", process_no_time);
	process_write_why(all, p);
}

void jit_process_look(struct jit_processes *all, struct jit_process *p, uint64_t now, uint64_t until_ns, bool last)
{
	struct dotnet_runtime runtime;
	struct proc_status status;
	int r = dotnet_look(all->opener, p->pid, &runtime);

	uint64_t age = now - p->since_ns;

	/* Most runtimes are met while they start, and some do not live for long. */
	if (!r && runtime.is_dotnet && age < PROCESS_YOUNG_NS)
		age = 0;
	p->next_ns = now + (age / 2 > PROCESS_LOOK_FIRST_NS ? age / 2 : PROCESS_LOOK_FIRST_NS);
	if (r) {
		process_look_failed(all, p, r, last);
		return;
	}
	if (!runtime.is_dotnet)
		return;
	p->is_dotnet = p->unswept = true;
	memcpy(p->version, runtime.version, sizeof(p->version));
	if (!proc_status(p->pid, &status))
		snprintf(p->comm, sizeof(p->comm), "%s", status.comm);
	process_choose(all, p, now, until_ns, last);
}

/* Whether there is room on the disk for more than perf.data. */
static bool process_has_room(const struct jit_processes *all)
{
	struct statvfs fs;

	/* One that counts no blocks, as ramfs, does not tell. */
	return fstatvfs(all->dir_fd, &fs) || !fs.f_blocks || (uint64_t)fs.f_bavail * fs.f_frsize >= PROCESS_DISK_BYTES;
}

/* When the next step is due after one that took so much CPU time. The first one finds all that was there, and says nothing of the others. */
static uint64_t process_next(struct jit_process *p, uint64_t took)
{
	uint64_t now = clock_monotonic_ns();

	/* A program that freed code goes on with it, though not between any two looks. */
	if (p->target.frees)
		p->frees_until_ns = now + PROCESS_FREES_NS;
	bool frees = now < p->frees_until_ns, hurry = frees || now - p->since_ns < PROCESS_YOUNG_NS;
	uint64_t share = hurry ? PROCESS_STEP_SHARE / PROCESS_STEP_HURRY : PROCESS_STEP_SHARE;
	uint64_t least = frees ? PROCESS_STEP_MIN_NS / PROCESS_STEP_HURRY : PROCESS_STEP_MIN_NS;
	uint64_t wait = p->stepped ? took * share : 0;

	/* What nobody takes the runtime drops. */
	if (p->target.more)
		return now;
	if (wait < least)
		wait = least;
	return now + (wait > JIT_PROCESS_STEP_MAX_NS ? JIT_PROCESS_STEP_MAX_NS : wait);
}

static int process_take(struct jit_process *p, uint64_t now, bool last)
{
	char why[JIT_WAY_WHY_BYTES] = "";
	int r = p->way->step(p->state, now, last, why);
	int flushed = jit_methods_writer_flush(p->target.out);

	if (r && r != -ESRCH)
		process_break(p, why);
	else if (!r && *why)
		process_add_why(p, "", why);
	if (flushed && !p->unwritten)
		process_write_failed(p, flushed);
	return r ? r : flushed;
}

/* What is followed has ended, or executed another program: takes the rest of it. */
static void process_end(struct jit_process *p, uint64_t now)
{
	p->target.ended = true;
	p->target.replaced = process_is_replaced(p);
	if (p->way->outlives)
		(void)process_take(p, now, true);
	jit_process_release(p, p->target.until_ns);
}

void jit_process_step(struct jit_processes *all, struct jit_process *p, uint64_t now, bool last)
{
	if (!process_is_same(p)) {
		process_end(p, now);
		/* Whatever has its PID now is looked at anew. */
		p->since_ns = p->next_ns = now;
		return;
	}
	if (!process_has_room(all)) {
		process_write_failed(p, -ENOSPC);
		process_give_up(all, p, p->target.until_ns);
		return;
	}
	uint64_t begin_ns = clock_thread_ns();
	int r = process_take(p, now, last);

	if (r == -ESRCH) {
		p->done = true;
		process_end(p, now);
	} else if (r) {
		process_give_up(all, p, p->target.until_ns);
	} else {
		p->next_ns = process_next(p, clock_thread_ns() - begin_ns);
		p->stepped = true;
	}
}
