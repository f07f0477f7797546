#include "profcpu/jit/capture_process.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptor_budget.h"
#include "base/remedy.h"
#include "container/memory_left.h"
#include "container/resolve.h"
#include "container/rights.h"
#include "symbols/jit/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Shortest time between two probes of a process. Later intervals are half of its age. */
#define PROCESS_PROBE_MIN_NS (20 * NS_PER_MS)
#define PROCESS_STEP_MIN_NS (50 * NS_PER_MS)
/* A step uses at most 1/100 of a CPU. */
#define PROCESS_STEP_SHARE 100
/* Factor on that share if code is freed or the process is young, because it may end soon. */
#define PROCESS_STEP_HURRY 5
/* A process with more events waits so many times as long as the last step took. */
#define PROCESS_MORE_SHARE 9
#define PROCESS_FREES_NS (5 * NS_PER_S) /* time after code was freed */
#define PROCESS_YOUNG_NS (2 * NS_PER_S) /* age since the process was added */
/* After a turn that gave no names, the next one waits 20 times as long as it took. */
#define PROCESS_LATE_SHARE 20
/* Longest time to read maps, also in a turn; and to search memory without a turn. */
#define PROCESS_MAPS_NS (NS_PER_S / 4)
#define PROCESS_LONG_MAPS_NS NS_PER_S
#define PROCESS_MEMORY_NS (250 * NS_PER_MS)
/* disk space left for perf.data and the end of a recording */
#define PROCESS_DISK_BYTES ((uint64_t)1 << 20)
/* descriptors that one more process must leave to the recording */
#define PROCESS_SPARE_DESCRIPTORS 32

static const char process_ended[] = "the process ended before they could be taken";
static const char process_no_time[] = "there was no time";

/* Reads the identity; zeros for a process that has ended. Returns 0 or -errno. */
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

	/* If it cannot be read, nothing has changed. */
	return process_identity(p->pid, &id) || (id.start_ticks == p->identity.start_ticks &&
						 id.start_stack == p->identity.start_stack);
}

static void process_add_why(struct jit_process *p, const char *what, const char *why)
{
	size_t len = strlen(p->why);

	snprintf(p->why + len, sizeof(p->why) - len, "%s%s%s%s", len ? "; " : "", what,
		 what[0] ? ": " : "", why);
}

static void process_add_failure(struct jit_process *p, const char *why)
{
	p->broken = true;
	process_add_why(p, "", why);
}

static void process_write_failed(struct jit_process *p, int error)
{
	char why[JIT_WAY_WHY_BYTES];

	p->over_share = error == -E2BIG;
	snprintf(why, sizeof(why), "they cannot all be written to the recording: %s%s",
		 p->over_share ? "they would take more than their share of the disk, or of "
				 "--max-size; raise it, or free disk space"
			       : strerror(-error),
		 p->over_share ? "" : remedy_for(error));
	process_add_failure(p, why);
	p->write_failed = true;
}

/* Bytes that the disk has left. */
static uint64_t process_disk_left(const struct jit_processes *all)
{
	struct statvfs fs;

	/* A file system that counts no blocks, as ramfs, shows no limit. */
	return fstatvfs(all->dir_fd, &fs) || !fs.f_blocks ? UINT64_MAX
							  : (uint64_t)fs.f_bavail * fs.f_frsize;
}

void jit_process_release(struct jit_process *p, uint64_t until_ns)
{
	if (p->way)
		p->way->end(p->state, until_ns);
	p->way = NULL;
	p->state = NULL;
	p->stepped = false;
	int r = jit_methods_writer_close(p->target.out);

	if (r && !p->write_failed)
		process_write_failed(p, r);
	p->target.out = NULL;
}

/* Writes for post-processing why names are missing. */
static void process_write_why(struct jit_processes *all, struct jit_process *p)
{
	struct jit_methods_writer *w = p->target.out;

	if (!w && jit_methods_writer_open(all->dir_fd, p->pid, NULL, &w))
		return;
	jit_methods_writer_why(w, p->why);
	/* A process that is not followed gets no further lines. */
	if (w != p->target.out)
		(void)jit_methods_writer_close(w);
}

/* Releases a process for good. */
static void process_give_up(struct jit_processes *all, struct jit_process *p, uint64_t until_ns)
{
	p->done = true;
	if (p->why[0])
		process_write_why(all, p);
	jit_process_release(p, until_ns);
}

/*
 * Follows a process in one way. Returns 0; -EAGAIN: the runtime is not ready; -ESRCH; -errno: this
 * way fails, and why tells the reason.
 */
static int process_begin(struct jit_processes *all, struct jit_process *p,
			 const struct jit_way *way, char *why)
{
	bool is_fresh = !p->target.out;
	int r = 0;

	/* After the deadline, begin nothing: no caller waits for it. */
	if (clock_monotonic_ns() >= p->target.until_ns) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", process_no_time);
		return -ETIMEDOUT;
	}
	/* Descriptors that the recording opens later matter more. */
	if (descriptor_budget_left(PROCESS_SPARE_DESCRIPTORS) < PROCESS_SPARE_DESCRIPTORS) {
		snprintf(why, JIT_WAY_WHY_BYTES,
			 "too few files may be open; raise the limit (ulimit -n)");
		return -EMFILE;
	}
	r = process_identity(p->pid, &p->identity);
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", strerror(-r));
		return r;
	}
	if (!all->disk.limit)
		all->disk.limit = process_disk_left(all) / 4;
	p->target.disk.of = &all->disk;
	if (is_fresh)
		r = jit_methods_writer_open(all->dir_fd, p->pid, &p->target.disk, &p->target.out);
	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "names cannot be written to the recording: %s%s",
			 strerror(-r), remedy_for(r));
		p->write_failed = true;
		return r;
	}
	if (is_fresh && p->version[0])
		jit_methods_writer_runtime(p->target.out, p->version);
	p->target.pid = p->pid;
	p->target.opener = all->opener;
	if (!all->memory.limit)
		all->memory.limit = memory_left() / 4;
	p->target.memory.of = &all->memory;
	p->target.lines = all->lines;
	p->target.automatic = all->names == JIT_NAMES_AUTO;
	p->target.ended = p->target.more = p->target.frees = false;
	r = way->begin(&p->target, &p->state, why);
	if (!r) {
		p->way = way;
		p->words = way->words;
		p->why[0] = 0;
	}
	return r;
}

/*
 * Takes the way that --jit-names names, or the first that works and is safe. last: a runtime that
 * is not ready now never will be. Returns -EAGAIN if it needs a turn.
 */
static int process_choose(struct jit_processes *all, struct jit_process *p, uint64_t now,
			  uint64_t until_ns, bool turn, bool last)
{
	static const struct jit_way *const ways[] = {
		[JIT_NAMES_MEMORY] = &jit_way_memory,
		[JIT_NAMES_RUNDOWN] = &jit_way_rundown,
	};
	bool is_ready = last || now - p->since_ns > JIT_PROCESS_READY_NS ||
			now - proc_start_ns(p->pid, now) > JIT_PROCESS_READY_NS;
	uint64_t soon = clock_monotonic_ns() + PROCESS_MEMORY_NS;
	int r = -ENOTSUP;

	p->why[0] = 0;
	p->target.until_ns = turn || until_ns < soon ? until_ns : soon;
	for (enum jit_names n = JIT_NAMES_MEMORY; n <= JIT_NAMES_RUNDOWN && r; n++) {
		const char *way = all->names == JIT_NAMES_AUTO ? ways[n]->name : "";
		char why[JIT_WAY_WHY_BYTES] = "";

		if (all->names != JIT_NAMES_AUTO && all->names != n)
			continue;
		/* A port may not answer. */
		if (n == JIT_NAMES_RUNDOWN && !turn) {
			process_add_why(p, way, process_no_time);
			return -EAGAIN;
		}
		r = process_begin(all, p, ways[n], why);
		if (n == JIT_NAMES_MEMORY)
			p->doubtful = r == -ENOENT;
		/* Try again later; another way would not work now either. */
		if (r == -EAGAIN && !is_ready)
			return 0;
		if (r == -ESRCH)
			break;
		if (r)
			process_add_why(p, p->write_failed ? "" : way, why);
		/*
		 * On a busy machine, do not send requests to the runtime instead: they can crash
		 * it.
		 */
		if (r == -ETIMEDOUT && n == JIT_NAMES_MEMORY && !(turn && last)) {
			p->slow = true;
			return -EAGAIN;
		}
		/* Names that cannot be written need no other way. */
		if (p->write_failed || (r == -ETIMEDOUT && n == JIT_NAMES_MEMORY))
			break;
	}
	p->next_ns = now;
	if (!r)
		return 0;
	/* The report gives this reason for a process without a file. */
	if (r == -ESRCH && !p->why[0]) {
		process_add_why(p, "", process_ended);
		p->done = true;
		jit_process_release(p, until_ns);
		return 0;
	}
	process_give_up(all, p, until_ns);
	return 0;
}

int jit_process_note_user(struct jit_processes *all, pid_t pid, uid_t uid)
{
	const uint32_t *noted = hashmap_get(&all->users, (uint32_t)pid);
	const struct jit_user user = {.pid = (uint32_t)pid & JIT_USERS_PID_MAX, .uid = uid};
	bool is_wrong = noted && *noted != uid;

	if (noted ? !is_wrong : uid == RIGHTS_NOBODY)
		return 0;
	int r = hashmap_put(&all->users, (uint32_t)pid, uid);

	if (!r)
		r = jit_users_add(all->dir_fd, &user, 1);
	if (r && is_wrong) {
		all->users_left_out += all->users.len - 1;
		hashmap_free(&all->users);
		(void)unlinkat(all->dir_fd, JIT_USERS_FILE, 0);
	} else if (r) {
		hashmap_remove(&all->users, (uint32_t)pid);
	}
	return r;
}

/*
 * Writes whose process it is, so that its perf map can be trusted after its end. Returns 0, -ESRCH,
 * -errno.
 */
static int process_read_user(struct jit_processes *all, struct jit_process *p)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", p->pid);
	AUTO_CLOSE int fd = -1;
	int r = resolve_own(p->pid, path, &fd);

	if (!r && fstat(fd, &st))
		r = -errno;
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	p->has_old_user = false;
	bool is_ours = !st.st_uid || st.st_uid == geteuid();
	r = jit_process_note_user(all, p->pid, is_ours ? RIGHTS_NOBODY : st.st_uid);

	/* Without the entry, the perf map may belong to another user. The report counts them. */
	all->users_left_out += r == -E2BIG && !p->user_left_out;
	p->user_left_out |= r == -E2BIG;
	return 0;
}

/*
 * Handles a failed probe. A failure that is not due to the process may be over next time. So may a
 * lack of an answer (ask.h).
 */
static void process_probe_failed(struct jit_processes *all, struct jit_process *p, int error,
				 bool last)
{
	bool may_end = error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -ETIME;

	if (may_end && !last)
		return;
	p->done = true;
	if (p->is_dotnet && !p->why[0]) {
		process_add_why(p, "", error == -ESRCH ? process_ended : strerror(-error));
		if (error != -ESRCH)
			process_write_why(all, p);
	}
	/* A process without read permission is not part of the recording either. */
	if (p->is_dotnet || error == -ESRCH || error == -EACCES || error == -EPERM)
		return;
	all->unseen++;
	all->unseen_error = error;
	all->unseen_pid = p->pid;
}

void jit_process_note_missed_step(struct jit_processes *all, struct jit_process *p)
{
	if (!p->is_dotnet && !p->way) {
		all->unseen++;
		all->unseen_error = -ETIMEDOUT;
		return;
	}
	if (p->way)
		process_add_failure(p, "the last read did not finish in time");
	else if (!p->why[0])
		process_add_why(p, "", process_no_time);
	process_write_why(all, p);
}

/* The limit of a probe. A usual list is read in any case, to tell which processes run .NET. */
static struct proc_maps_limit process_maps_limit(uint64_t now, uint64_t until_ns, bool turn)
{
	struct proc_maps_limit limit = {PROC_MAPS_SMALL, now + PROCESS_MAPS_NS};

	if (turn) {
		limit.max_bytes = PROC_MAPS_MAX;
		limit.until_ns = now + PROCESS_LONG_MAPS_NS;
		if (limit.until_ns > until_ns)
			limit.until_ns = until_ns;
	}
	return limit;
}

/* Probes once. Returns 0; -EAGAIN if the process must wait for its turn, or the next one. */
static int process_probe_once(struct jit_processes *all, struct jit_process *p, uint64_t now,
			      uint64_t until_ns, bool turn, bool last)
{
	struct dotnet_runtime runtime = {.is_dotnet = false};
	struct proc_maps_limit limit = process_maps_limit(now, until_ns, turn);
	struct proc_status status;
	int r = process_read_user(all, p);

	if (all->names != JIT_NAMES_NONE)
		r = dotnet_probe(all->opener, p->pid, &limit, &runtime);
	if ((r == -E2BIG && !turn) || (r == -ETIMEDOUT && !(turn && last))) {
		p->slow = true;
		return -EAGAIN;
	}
	uint64_t age = now - p->since_ns;

	/* Most runtimes are found while they start, and some live only briefly. */
	if (!r && runtime.is_dotnet && age < PROCESS_YOUNG_NS)
		age = 0;
	p->next_ns = now + (age / 2 > PROCESS_PROBE_MIN_NS ? age / 2 : PROCESS_PROBE_MIN_NS);
	if (r)
		process_probe_failed(all, p, r, last);
	if (r || !runtime.is_dotnet)
		return 0;
	p->is_dotnet = true;
	memcpy(p->version, runtime.version, sizeof(p->version));
	if (!proc_status(p->pid, &status))
		snprintf(p->comm, sizeof(p->comm), "%s", status.comm);
	return process_choose(all, p, now, until_ns, turn, last);
}

void jit_process_probe(struct jit_processes *all, struct jit_process *p, uint64_t now,
		       uint64_t until_ns, bool last)
{
	bool turn = (p->late || p->slow) && (last || now >= all->turn_ns);
	int r = -EAGAIN;

	if (turn || !p->slow)
		r = process_probe_once(all, p, now, until_ns, turn, last);
	uint64_t end_ns = clock_monotonic_ns(), next_ns;

	if (turn && !p->way)
		all->turn_ns = end_ns + PROCESS_LATE_SHARE * (end_ns - now);
	p->late = r == -EAGAIN;
	if (p->way)
		return;
	/* Those that look like a runtime have the next turn. */
	next_ns = (end_ns > all->turn_ns ? end_ns : all->turn_ns) + p->doubtful;
	if (p->slow ? p->next_ns < next_ns : p->late && p->next_ns > next_ns)
		p->next_ns = next_ns;
}

/*
 * When the next step is due after one that took so much CPU time. The first step finds all older
 * code, so its time predicts nothing.
 */
static uint64_t process_next(struct jit_process *p, uint64_t took)
{
	uint64_t now = clock_monotonic_ns();

	/* A program that freed code frees more, but not between every two steps. */
	if (p->target.frees)
		p->frees_until_ns = now + PROCESS_FREES_NS;
	bool frees = now < p->frees_until_ns, hurry = frees || now - p->since_ns < PROCESS_YOUNG_NS;
	uint64_t share = hurry ? PROCESS_STEP_SHARE / PROCESS_STEP_HURRY : PROCESS_STEP_SHARE;
	uint64_t least = frees ? PROCESS_STEP_MIN_NS / PROCESS_STEP_HURRY : PROCESS_STEP_MIN_NS;
	uint64_t wait = p->stepped ? took * share : 0, age = now - p->since_ns;

	/* A step that read much for the first time, as metadata, does not predict the next one. */
	if (age < PROCESS_YOUNG_NS && wait > age / 2)
		wait = age / 2;

	/* The runtime drops events that are not read in time. They may take a tenth of a CPU. */
	if (p->target.more) {
		wait = took * PROCESS_MORE_SHARE;
		least = 0;
	}
	if (wait < least)
		wait = least;
	return now + (wait > JIT_PROCESS_STEP_MAX_NS ? JIT_PROCESS_STEP_MAX_NS : wait);
}

static int process_step(struct jit_process *p, uint64_t now, bool last)
{
	char why[JIT_WAY_WHY_BYTES] = "";
	int r = p->way->step(p->state, now, last, why);
	int flushed = jit_methods_writer_flush(p->target.out);

	if (r && r != -ESRCH)
		process_add_failure(p, why);
	else if (!r && *why)
		process_add_why(p, "", why);
	if (flushed && !p->write_failed)
		process_write_failed(p, flushed);
	return r ? r : flushed;
}

/* Takes the rest of a process that has ended or executed another program. */
static void process_end(struct jit_process *p, uint64_t now)
{
	p->target.ended = true;
	if (p->way->outlives)
		(void)process_step(p, now, true);
	jit_process_release(p, p->target.until_ns);
}

void jit_process_step(struct jit_processes *all, struct jit_process *p, uint64_t now, bool last)
{
	if (!process_is_same(p)) {
		process_end(p, now);
		p->done = p->replaced = true;
		return;
	}
	p->has_old_user = false;
	/* perf.data matters more. */
	if (process_disk_left(all) < PROCESS_DISK_BYTES) {
		process_write_failed(p, -ENOSPC);
		process_give_up(all, p, p->target.until_ns);
		return;
	}
	uint64_t begin_ns = clock_thread_ns();
	int r = process_step(p, now, last);

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
