/*
 * Opening all events anew beside those that sample, and changing over: what an event is asked for cannot be changed.
 *
 * Threads that begin in the meantime are the difficulty. They inherit what their parent has, which may be the old events, or both,
 * or the new ones of some CPUs only; and no one can be asked which. Their FORK record tells the parent and the time, which is compared
 * with the times between which the parent's new events were opened. Where it was so near that both are possible, the parent's are
 * closed again, which takes them from all that inherited them, and opened once more.
 */
#include "sampler/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PASSES_MAX 8
#define FORK_NS NS_PER_MS /* from inheriting, within fork(2), to the time of its record */

/* When a thread got its new events. */
struct span {
	pid_t tid, root; /* it inherited those that were opened for root: itself, or a thread before it */
	uint64_t begin_ns, end_ns; /* 0: inherited */
};

struct renewal {
	struct sampler *s; /* its fds are the new ones */
	struct sampler_fds old;
	size_t from, to;	/* CPUs, by their place in s->cpus */
	struct pidset covered;	/* threads that have new events */
	VEC(struct span) spans; /* of these */
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
	const struct span *parent = pidset_has(&n->covered, (pid_t)fork->ptid) ? span_of(n, (pid_t)fork->ptid) : NULL;

	if (!parent || fork->time_ns < parent->begin_ns || pidset_has(&n->covered, (pid_t)fork->tid))
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

/* A process that ended without our being told, and whose id is another's now, has no thread that we know. */
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
		r = targets_threads(pid, sampler_proc(&s->options), &n->threads) == -ENOMEM ? -ENOMEM : 0;
		if (first_pass && !has_attached(n, first)) {
			pidset_remove(&s->targets.pids, pid);
			n->threads.len = first;
		}
	}
	vec_free(&processes);
	/* Where FORKs were lost, children are found as they were at the beginning. */
	if (!r && first_pass && s->stats.lost_records)
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

/* Old and new ones, and what everything else needs. */
static bool has_room(const struct renewal *n)
{
	const struct sampler *s = n->s;

	return s->fds.len + n->old.len + sampler_nrings(s) + (n->to - n->from) * s->options.nevents + SAMPLER_FD_RESERVE <= s->fd_limit;
}

static int open_of(struct renewal *n, pid_t tid)
{
	struct span span = {tid, tid, clock_monotonic_ns(), 0};
	int r = has_room(n) ? 0 : -EMFILE;

	for (size_t c = n->from; c < n->to && !r; c++)
		r = sampler_open_on_cpu(n->s, tid, c);
	/* It ended; or it is not permitted, and was not before. */
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
		/* Before the first list: who has events; after each: who began, which is written a moment after they show. */
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
	for (size_t c = n->from; c < n->to && !fd->side; c++)
		if (n->s->cpus.v[c] == fd->cpu)
			return true;
	return false;
}

/* Of those that are open. */
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

/* The old one of the same thread, CPU and event, or NULL. Both lists mostly have the same order: it is looked for from *at on. */
static const struct sampler_fd *old_of(const struct renewal *n, const struct sampler_fd *fd, size_t *at)
{
	for (size_t i = 0; i < n->old.len; i++) {
		const struct sampler_fd *old = &n->old.v[(*at + i) % n->old.len];

		if (old->tid != fd->tid || old->cpu != fd->cpu || old->event != fd->event || old->side)
			continue;
		*at = (*at + i + 1) % n->old.len;
		return old;
	}
	return NULL;
}

/*
 * We may have to wait for a CPU anywhere in here, so that a thread's events are changed one right after the other. Before that the new
 * ones of threads that inherited their old ones are switched on: those end with the thread's that they come from.
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

/* Nothing here fails: there is room. */
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
		sampler_read_lost(s, fd->fd);
		close(fd->fd);
	}
	/* Counters that the old ones held are free only now. */
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
	int r, told = 0;

	s->fds = (struct sampler_fds){0};
	s->renewing = true;
	r = s->setup.mode == SAMPLER_CPUS ? open_of(&n, -1) : open_threads(&n);
	s->renewing = false;
	for (size_t i = 0; !r && i < s->fds.len; i++)
		r = sampler_tell_id(s, s->fds.v[i].event, s->fds.v[i].id);
	if (!r)
		r = vec_reserve(&s->fds, n.old.len);
	if (!r && s->awaiting_exec)
		r = sampler_scan(s, take_record, &n);
	if (r)
		undo(&n);
	else
		change_over(&n);
	told = show_ids(s);
	pidset_free(&n.covered);
	vec_free(&n.spans);
	vec_free(&n.threads);
	return r ? r : told;
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

	if (!before || !stack_bytes || stack_bytes % 8 || stack_bytes > SAMPLER_STACK_BYTES_MAX || s->stopping)
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
