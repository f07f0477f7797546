/*
 * Opens all events anew beside those that sample, and changes over, because attributes of an event
 * cannot be changed.
 *
 * Threads that begin meanwhile are the difficulty. They inherit the events of their parent: the old
 * ones, both, or the new ones of some CPUs. The kernel does not tell which. The FORK record has the
 * parent and the time, which is compared with the time span of opening the parent's new events. If
 * both are possible, the parent's new events are closed again, also for all that inherited them,
 * and opened once more.
 */
#include "sampler/sampler_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PASSES_MAX 8
#define FORK_NS NS_PER_MS /* longest time within fork(2) from inheriting to the FORK record */

/* Time at which a thread got its new events. */
struct span {
	/* root: ancestor for which the events were opened; tid itself if not inherited. */
	pid_t tid, root;
	uint64_t begin_ns, end_ns; /* 0: inherited */
};

struct renewal {
	struct sampler *s; /* fds has the new events */
	struct sampler_fds old;
	size_t from, to;        /* CPUs, as indices of s->cpus */
	struct pidset covered;  /* threads that have new events */
	VEC(struct span) spans; /* of the covered threads */
	struct target_threads threads;
	bool last_pass;
};

static void close_of(struct sampler_fds *fds, pid_t root)
{
	size_t kept = 0;

	for (size_t i = 0; i < fds->len; i++) {
		if (fds->v[i].tid == root)
			close(fds->v[i].fd);
		else
			fds->v[kept++] = fds->v[i];
	}
	fds->len = kept;
}

static void uncover(struct renewal *n, pid_t root)
{
	size_t kept = 0;

	close_of(&n->s->fds, root);
	for (size_t i = 0; i < n->spans.len; i++) {
		if (n->spans.v[i].root == root)
			pidset_remove(&n->covered, n->spans.v[i].tid);
		else
			n->spans.v[kept++] = n->spans.v[i];
	}
	n->spans.len = kept;
}

static int cover(struct renewal *n, struct span span)
{
	pidset_add(&n->covered, span.tid);
	return vec_push(&n->spans, span);
}

static const struct span *span_of(const struct renewal *n, pid_t tid)
{
	for (size_t i = n->spans.len; i-- > 0;)
		if (n->spans.v[i].tid == tid)
			return &n->spans.v[i];
	return NULL;
}

static int take_fork(struct renewal *n, const struct sampler_task *fork)
{
	struct sampler *s = n->s;

	pidset_add(&s->attached, (pid_t)fork->tid);
	pidset_add(&s->targets.pids, (pid_t)fork->pid);
	const struct span *parent =
		pidset_has(&n->covered, (pid_t)fork->ptid) ? span_of(n, (pid_t)fork->ptid) : NULL;

	if (!parent || fork->time_ns < parent->begin_ns ||
	    pidset_has(&n->covered, (pid_t)fork->tid))
		return 0;
	if (fork->time_ns < parent->end_ns + FORK_NS && !n->last_pass) {
		uncover(n, parent->root);
		return 0;
	}
	return cover(n, (struct span){(pid_t)fork->tid, parent->root, 0, 0});
}

static int take_record(void *ctx, const struct perf_event_header *h)
{
	struct renewal *n = ctx;
	const struct sampler_task *fork = sampler_fork_of(h);

	if (sampler_is_exec(h, n->s->options.command))
		n->s->awaiting_exec = false;
	return fork ? take_fork(n, fork) : 0;
}

/* Whether a process has a thread that we know. If not, its id was reused. */
static bool has_attached(const struct renewal *n, size_t first)
{
	for (size_t i = first; i < n->threads.len; i++)
		if (pidset_has(&n->s->attached, n->threads.v[i].tid))
			return true;
	return false;
}

static int list_threads(struct renewal *n, bool first_pass)
{
	struct target_threads processes = {0};
	struct sampler *s = n->s;
	int r = targets_all(sampler_proc(&s->options), &processes);

	n->threads.len = 0;
	for (size_t i = 0; !r && i < processes.len; i++) {
		pid_t pid = processes.v[i].pid;
		size_t first = n->threads.len;

		if (!pidset_has(&s->targets.pids, pid))
			continue;
		r = targets_threads(pid, sampler_proc(&s->options), &n->threads);
		/* A process that does not answer may have threads that we know. */
		if (first_pass && r != -ETIME && !has_attached(n, first)) {
			pidset_remove(&s->targets.pids, pid);
			n->threads.len = first;
		}
		r = r == -ENOMEM ? r : 0;
	}
	vec_free(&processes);
	/* After lost FORKs, find children as at the beginning. */
	if (!r && first_pass && (s->stats.lost_records || s->stats.lost_others))
		r = targets_add_children(&s->targets, sampler_proc(&s->options));
	return r;
}

static size_t count_uncovered(const struct renewal *n)
{
	size_t uncovered = 0;

	for (size_t i = 0; i < n->threads.len; i++)
		uncovered += !pidset_has(&n->covered, n->threads.v[i].tid);
	return uncovered;
}

/* Whether descriptors suffice for old and new events and other uses. */
static bool has_room(const struct renewal *n)
{
	const struct sampler *s = n->s;

	return s->fds.len + n->old.len + sampler_nrings(s) +
		       (n->to - n->from) * s->options.nevents + SAMPLER_FD_RESERVE <=
	       s->fd_limit;
}

static int open_of(struct renewal *n, pid_t tid)
{
	struct span span = {tid, tid, clock_monotonic_ns(), 0};
	int r = has_room(n) ? 0 : -EMFILE;

	for (size_t c = n->from; c < n->to && !r; c++)
		r = sampler_open_on_cpu(n->s, tid, c);
	/* The thread ended, or may not be sampled. */
	if (tid >= 0 && (r == -ESRCH || r == -EACCES || r == -EPERM)) {
		close_of(&n->s->fds, tid);
		r = 0;
	}
	span.end_ns = clock_monotonic_ns();
	return r || tid < 0 ? r : cover(n, span);
}

static int open_threads(struct renewal *n)
{
	const struct timespec moment = {.tv_nsec = 2 * NS_PER_MS};
	struct sampler *s = n->s;
	int r = pidset_new(&n->covered);

	for (size_t i = 0; i < s->cpus.len; i++)
		s->rings[i].scanned = s->rings[i].tail;
	for (int pass = 0; !r && pass < PASSES_MAX; pass++) {
		n->last_pass = pass == PASSES_MAX - 1;
		/*
		 * Records before the first list show the threads with events. Records after each
		 * list show new threads: they come a moment after a thread is in /proc.
		 */
		r = pass ? 0 : sampler_scan(s, take_record, n);
		if (!r)
			r = list_threads(n, !pass);
		if (!r)
			r = sampler_scan(s, take_record, n);
		if (!r && pass && count_uncovered(n)) {
			nanosleep(&moment, NULL);
			r = sampler_scan(s, take_record, n);
		}
		if (r || (pass && !count_uncovered(n)))
			break;
		for (size_t i = 0; !r && i < n->threads.len; i++)
			if (!pidset_has(&n->covered, n->threads.v[i].tid))
				r = open_of(n, n->threads.v[i].tid);
	}
	return !r && !s->fds.len ? -ESRCH : r;
}

static bool replaced(const struct renewal *n, const struct sampler_fd *fd)
{
	for (size_t c = n->from; c < n->to && !fd->event_only; c++)
		if (n->s->cpus.v[c] == fd->cpu)
			return true;
	return false;
}

/* Updates the ids from the open events. */
static int show_ids(struct sampler *s)
{
	int r = 0;

	for (size_t e = 0; e < s->options.nevents; e++)
		s->ids[e].len = 0;
	for (size_t i = 0; i < s->fds.len && !r; i++)
		r = vec_push(&s->ids[s->fds.v[i].event], s->fds.v[i].id);
	sampler_show_ids(s);
	return r;
}

/* Finds the old event of the same thread, CPU and kind, or NULL. Starts at *at, because both lists
 * mostly have the same order. */
static const struct sampler_fd *old_of(const struct renewal *n, const struct sampler_fd *fd,
				       size_t *at)
{
	for (size_t i = 0; i < n->old.len; i++) {
		const struct sampler_fd *old = &n->old.v[(*at + i) % n->old.len];

		if (old->tid != fd->tid || old->cpu != fd->cpu || old->event != fd->event ||
		    old->event_only)
			continue;
		*at = (*at + i + 1) % n->old.len;
		return old;
	}
	return NULL;
}

/*
 * Changes from old to new events. We may lose the CPU at any point, so the two calls for one event
 * follow each other directly. First enable new events without an old one: their threads inherited
 * old events, which end together with those of their parent.
 */
static void switch_over(struct renewal *n)
{
	size_t at = 0;

	for (size_t i = 0; i < n->s->fds.len; i++)
		if (!old_of(n, &n->s->fds.v[i], &at))
			(void)ioctl(n->s->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	for (size_t i = 0; i < n->s->fds.len; i++) {
		const struct sampler_fd *old = old_of(n, &n->s->fds.v[i], &at);

		if (!old)
			continue;
		(void)ioctl(n->s->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
		(void)ioctl(old->fd, PERF_EVENT_IOC_DISABLE, 0);
	}
}

/* Enables the new events and closes the old ones. Cannot fail, because room was reserved. */
static void change_over(struct renewal *n)
{
	struct sampler *s = n->s;
	size_t opened = s->fds.len;

	if (!s->awaiting_exec)
		switch_over(n);
	for (size_t i = 0; i < n->old.len; i++) {
		const struct sampler_fd *fd = &n->old.v[i];

		if (!replaced(n, fd)) {
			s->fds.v[s->fds.len++] = *fd;
			continue;
		}
		(void)ioctl(fd->fd, PERF_EVENT_IOC_DISABLE, 0);
		sampler_read_lost(s, fd);
		close(fd->fd);
	}
	/* Hardware counters of the old events are free only now. */
	for (size_t i = 0; i < opened && !s->awaiting_exec; i++)
		if (s->events[s->fds.v[i].event].pinned)
			(void)ioctl(s->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	vec_free(&n->old);
}

static void undo(struct renewal *n)
{
	struct sampler *s = n->s;

	for (size_t i = 0; i < s->fds.len; i++)
		close(s->fds.v[i].fd);
	vec_free(&s->fds);
	s->fds = n->old;
}

static int renew_on(struct sampler *s, size_t from, size_t to)
{
	struct renewal n = {.s = s, .old = s->fds, .from = from, .to = to};
	int r, listener_error = 0;

	s->fds = (struct sampler_fds){0};
	s->renewing = true;
	r = s->setup.mode == SAMPLER_CPUS ? open_of(&n, -1) : open_threads(&n);
	s->renewing = false;
	for (size_t i = 0; !r && i < s->fds.len; i++)
		r = sampler_announce_id(s, s->fds.v[i].event, s->fds.v[i].id);
	if (!r)
		r = vec_reserve(&s->fds, n.old.len);
	if (!r && s->awaiting_exec)
		r = sampler_scan(s, take_record, &n);
	if (r)
		undo(&n);
	else
		change_over(&n);
	listener_error = show_ids(s);
	pidset_free(&n.covered);
	vec_free(&n.spans);
	vec_free(&n.threads);
	return r ? r : listener_error;
}

static void set_attrs(struct sampler *s, uint32_t stack_bytes)
{
	s->options.stack_bytes = stack_bytes;
	for (size_t e = 0; e < s->options.nevents; e++)
		s->opened[e].attr.sample_stack_user = stack_bytes;
}

int sampler_set_stack_bytes(struct sampler *s, uint32_t stack_bytes)
{
	uint32_t before = s->options.stack_bytes;
	int r;

	if (!before || !stack_bytes || stack_bytes % 8 || stack_bytes > SAMPLER_STACK_BYTES_MAX ||
	    s->stopping)
		return -EINVAL;
	if (stack_bytes == before)
		return 0;
	set_attrs(s, stack_bytes);
	r = renew_on(s, 0, s->cpus.len);
	for (size_t c = 0; r == -EMFILE && c < s->cpus.len; c++) {
		int each = renew_on(s, c, c + 1);

		if (each || c + 1 == s->cpus.len)
			r = each;
		if (each)
			break;
	}
	if (r)
		set_attrs(s, before);
	s->setup.descriptors = s->fds.len + sampler_nrings(s);
	return r;
}
