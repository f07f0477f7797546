/* Hands records from the rings to the listeners. Headers are walked to count, to filter and to find
 * news of processes. With event-only rings even that is skipped for the others. */
#include "sampler/sampler_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define KEPT_RECORD_MAX 4096u /* larger records are not copied */

/* First fields of records. */
struct record_pid { /* COMM, MMAP, MMAP2, NAMESPACES, ... */
	struct perf_event_header header;
	uint32_t pid, tid;
};
struct record_namespaces {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t count;
	struct {
		uint64_t dev, ino;
	} v[MNT_NS_INDEX + 1];
};
struct record_lost {
	struct perf_event_header header;
	uint64_t id, lost;
};
_Static_assert(sizeof(struct sampler_task) <= RING_START &&
		       sizeof(struct perf_event_header) + sizeof(uint64_t) +
				       sizeof(struct attr_sample) <=
			       RING_START,
	       "the filter sees no more");

static int hand_records(struct sampler *s, int cpu, const void *data, size_t len)
{
	int r = 0;

	s->stats.bytes += len;
	for (size_t i = 0; i < s->nlisteners && !r; i++)
		if (s->listeners[i].records)
			r = s->listeners[i].records(s->listeners[i].ctx, cpu, data, len);
	return r;
}

static int announce_process(struct sampler *s, uint32_t pid, enum sampler_news news)
{
	int r = 0;

	for (size_t i = 0; i < s->nlisteners && !r; i++)
		if (s->listeners[i].process)
			r = s->listeners[i].process(s->listeners[i].ctx, (pid_t)pid, news);
	return r;
}

static int announce_new(struct sampler *s, uint32_t pid)
{
	return announce_process(s, pid,
				pidset_has(&s->elsewhere, (pid_t)pid) ? SAMPLER_PROCESS_ELSEWHERE
								      : SAMPLER_PROCESS_NEW);
}

int sampler_send_synthesized(struct sampler *s, const void *data, size_t len)
{
	return len ? hand_records(s, -1, data, len) : 0;
}

int sampler_send_round(struct sampler *s)
{
	int r = 0;

	for (size_t i = 0; i < s->nlisteners && !r; i++)
		if (s->listeners[i].round)
			r = s->listeners[i].round(s->listeners[i].ctx);
	return r;
}

/* Skips a damaged ring to its head, because the next record's position is unknown. */
static void skip_damaged(struct sampler *s, struct ring *ring, uint64_t head)
{
	s->stats.damaged++;
	ring->tail = ring->scanned = head;
}

static int scan_ring(struct ring *ring, int (*fn)(void *ctx, const struct perf_event_header *h),
		     void *ctx)
{
	uint64_t head = ring_head(ring);
	struct ring_start start;
	int r = 0;

	while (ring->scanned != head && !r) {
		const struct perf_event_header *h = ring_start(ring, ring->scanned, head, &start);

		if (!h)
			break; /* the drain finds and counts the damage */
		ring->scanned += h->size;
		r = fn(ctx, h);
	}
	return r;
}

int sampler_scan(struct sampler *s, int (*fn)(void *ctx, const struct perf_event_header *h),
		 void *ctx)
{
	size_t first = s->event_rings ? s->cpus.len : 0;
	int r = 0;

	for (size_t i = first; i < first + s->cpus.len && !r; i++) {
		r = s->early && s->early[i].ring.size ? scan_ring(&s->early[i].ring, fn, ctx) : 0;
		if (!r)
			r = scan_ring(sampler_ring(s, i), fn, ctx);
	}
	return r;
}

static int attach_fork(void *ctx, const struct perf_event_header *h)
{
	struct sampler *s = ctx;
	const struct sampler_task *task = sampler_fork_of(h);

	if (!task)
		return 0;
	pidset_add(&s->attached, (pid_t)task->tid);
	return task->pid != task->ppid ? targets_add(&s->targets, (pid_t)task->pid) : 0;
}

int sampler_peek_forks(struct sampler *s)
{
	return sampler_scan(s, attach_fork, s);
}

static int take_fork(void *ctx, const struct perf_event_header *h)
{
	struct sampler *s = ctx;
	const struct sampler_task *task = sampler_fork_of(h);

	return !task || task->pid == task->ppid ? 0 : vec_push(&s->forks, *task);
}

static int by_time(const void *a, const void *b)
{
	const struct sampler_task *x = a, *y = b;

	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

/*
 * Children of targets become targets. An id with another parent was reused. FORKs of several rings
 * are handled in the order of time, because a grandchild's may be in the ring that is read first.
 * If it came during the scan, its parent's may be found by the next one.
 */
static int follow_forks(struct sampler *s)
{
	struct pidset *pids = &s->targets.pids;
	uint64_t begin_ns = clock_monotonic_ns();
	int r = sampler_scan(s, take_fork, s);
	size_t kept = 0;

	if (s->forks.len)
		qsort(s->forks.v, s->forks.len, sizeof(*s->forks.v), by_time);
	for (size_t i = 0; i < s->forks.len; i++) {
		struct sampler_task fork = s->forks.v[i];

		if (pidset_has(pids, (pid_t)fork.ppid)) {
			pidset_add(pids, (pid_t)fork.pid);
			continue;
		}
		pidset_remove(pids, (pid_t)fork.pid);
		if (fork.time_ns >= begin_ns)
			s->forks.v[kept++] = fork;
	}
	s->forks.len = kept;
	return r;
}

static bool wanted(const struct sampler *s, const struct perf_event_header *h)
{
	const struct pidset *pids = &s->targets.pids;
	const struct attr_sample *sample;

	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		sample = attr_sample_of(h, s->identified);
		return sample && pidset_has(pids, (pid_t)sample->pid);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_NAMESPACES:
		return h->size >= sizeof(struct record_pid) &&
		       pidset_has(pids, (pid_t)((const struct record_pid *)h)->pid);
	default:
		return true; /* LOST, THROTTLE, KSYMBOL: about the CPU or the kernel */
	}
}

/* Comes with each FORK, and when a process moves to other namespaces. */
static void note_namespaces(struct sampler *s, const struct record_namespaces *ns)
{
	if (ns->count <= MNT_NS_INDEX || ns->pid != ns->tid || !s->mount_ns)
		return;
	if (ns->v[MNT_NS_INDEX].ino != s->mount_ns)
		pidset_add(&s->elsewhere, (pid_t)ns->pid);
	else
		pidset_remove(&s->elsewhere, (pid_t)ns->pid);
}

bool sampler_is_exec(const struct perf_event_header *h, pid_t pid)
{
	return h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC &&
	       h->size >= sizeof(struct record_pid) &&
	       ((const struct record_pid *)h)->pid == (uint32_t)pid;
}

/* Tracks the threads with events, for opening them anew. A thread that executes a program takes the
 * id of its process. */
static void note_thread(struct sampler *s, const struct perf_event_header *h)
{
	const struct sampler_task *task = (const void *)h;
	const struct record_pid *comm = (const void *)h;

	if (!s->attached.words)
		return;
	if (h->type == PERF_RECORD_COMM && h->size >= sizeof(*comm)) {
		pidset_add(&s->attached, (pid_t)comm->tid);
	} else if (h->type == PERF_RECORD_EXIT && h->size >= sizeof(*task)) {
		(void)vec_push(&s->ended, (pid_t)task->tid);
	} else if (sampler_fork_of(h)) {
		pidset_add(&s->attached, (pid_t)task->tid);
		pidset_add(&s->targets.pids, (pid_t)task->pid);
	}
}

/* Enables events at the exec. The kernel may have missed those opened meanwhile. */
static void note_exec(struct sampler *s, const struct perf_event_header *h)
{
	if (!s->awaiting_exec || !sampler_is_exec(h, s->options.command))
		return;
	s->awaiting_exec = false;
	for (size_t i = 0; i < s->fds.len; i++)
		(void)ioctl(s->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
}

static int note_process(struct sampler *s, const struct perf_event_header *h)
{
	const struct sampler_task *task = (const void *)h;
	const struct record_namespaces *ns = (const void *)h;

	switch (h->type) {
	case PERF_RECORD_FORK:
		if (h->size < sizeof(*task) || task->pid == task->ppid)
			return 0;
		/* The child has its parent's mount namespace until a record reports another. */
		if (pidset_has(&s->elsewhere, (pid_t)task->ppid))
			pidset_add(&s->elsewhere, (pid_t)task->pid);
		return announce_new(s, task->pid);
	case PERF_RECORD_EXIT:
		if (h->size < sizeof(*task) || task->pid != task->tid)
			return 0;
		pidset_remove(&s->elsewhere, (pid_t)task->pid);
		/* A program without a mapping cannot have ended normally. */
		return announce_process(
			s, task->pid,
			s->executing.len && pidset_remove(&s->executing, (pid_t)task->pid)
				? SAMPLER_PROCESS_DETACHED
				: SAMPLER_PROCESS_ENDED);
	case PERF_RECORD_NAMESPACES:
		if (h->size >= sizeof(*ns))
			note_namespaces(s, ns);
		return 0;
	default: /* COMM */
		if (!(h->misc & PERF_RECORD_MISC_COMM_EXEC) || h->size < sizeof(struct record_pid))
			return 0;
		if (s->executing.words)
			pidset_add(&s->executing, (pid_t)((const struct record_pid *)h)->pid);
		return announce_new(s, ((const struct record_pid *)h)->pid);
	}
}

static int note_record(struct sampler *s, const struct perf_event_header *h,
		       const struct attr_sample **last)
{
	const struct attr_sample *sample;

	s->stats.records++;
	switch (h->type) {
	case PERF_RECORD_SAMPLE:
		s->stats.samples++;
		sample = attr_sample_of(h, s->identified);
		if (sample)
			*last = sample;
		if (*last && !s->stats.first_sample_ns)
			s->stats.first_sample_ns = (*last)->time_ns;
		return 0;
	case PERF_RECORD_LOST:
		if (h->size >= sizeof(struct record_lost))
			s->stats.lost_records += ((const struct record_lost *)h)->lost;
		return 0;
	case PERF_RECORD_THROTTLE:
		s->stats.throttled++;
		return 0;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
	case PERF_RECORD_COMM:
	case PERF_RECORD_NAMESPACES:
		s->others++;
		note_thread(s, h);
		note_exec(s, h);
		return note_process(s, h);
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		s->others++;
		if (s->executing.len && h->size >= sizeof(struct record_pid))
			pidset_remove(&s->executing, (pid_t)((const struct record_pid *)h)->pid);
		return 0;
	default:
		return 0;
	}
}

static void note_times(struct sampler *s, const struct attr_sample *last)
{
	if (last && last->time_ns > s->stats.last_sample_ns)
		s->stats.last_sample_ns = last->time_ns;
}

/* Hands over all records up to head, in chunks that point into the ring. */
static int drain_whole(struct sampler *s, struct ring *ring)
{
	uint64_t head = ring->until;
	const struct attr_sample *last = NULL;
	uint64_t pos = ring->tail, start = pos;
	int error, r = 0;

	while (pos != head && !r) {
		const struct perf_event_header *h = ring_record(ring, pos, head, &error);

		if (!h && error == -ENOMEM)
			return error;
		if (!h)
			break;
		size_t size = h->size;
		bool straddles = ring_straddles(ring, pos, size);

		r = note_record(s, h, &last);
		if (straddles) {
			if (!r && pos != start)
				r = hand_records(s, ring->cpu,
						 ring->data + (start & (ring->size - 1)),
						 pos - start);
			if (!r)
				r = hand_records(s, ring->cpu, h, size);
			note_times(s, last);
			last = NULL; /* the next record overwrites the copy */
		}
		pos += size;
		if (straddles)
			start = pos;
		if (straddles || (pos & (ring->size - 1)) || r)
			continue;
		r = hand_records(s, ring->cpu, ring->data + (start & (ring->size - 1)),
				 pos - start);
		start = pos;
	}
	note_times(s, last);
	if (!r && pos != start)
		r = hand_records(s, ring->cpu, ring->data + (start & (ring->size - 1)),
				 pos - start);
	if (pos != head && !r)
		skip_damaged(s, ring, head);
	else
		ring->tail = pos;
	return r;
}

/* A run of records to hand over. */
struct run {
	const unsigned char *data;
	size_t len;
};

static int hand_over(struct sampler *s, int cpu, struct run *run)
{
	int r = run->len ? hand_records(s, cpu, run->data, run->len) : 0;

	*run = (struct run){0};
	return r;
}

/* Keeps the record at pos: in place if it is long, else copied after earlier ones. */
static int keep(struct sampler *s, struct ring *ring, uint64_t pos, size_t *kept, struct run *run,
		const struct attr_sample **last)
{
	int error, r = 0;
	const struct perf_event_header *h = ring_record(ring, pos, ring->until, &error);

	if (!h)
		return error;
	size_t size = h->size;
	const unsigned char *at = (const void *)h;

	if (size < KEPT_RECORD_MAX) {
		at = memcpy(ring->kept + *kept, h, size);
		*kept += size;
	}
	if (run->len && run->data + run->len != at)
		r = hand_over(s, ring->cpu, run);
	if (!run->len)
		run->data = at;
	run->len += size;
	return r ? r : note_record(s, (const void *)at, last);
}

/* Hands over the records of targets, usually few of many. Short ones are copied together; only
 * the headers of others are read. In one round at most one record crosses the end of the ring, so
 * its copy stays valid. */
static int drain_filtered(struct sampler *s, struct ring *ring)
{
	uint64_t head = ring->until;
	const struct attr_sample *last = NULL;
	uint64_t pos = ring->tail;
	struct ring_start start;
	struct run run = {0};
	size_t kept = 0;
	int r = 0;

	if (!ring->kept && !(ring->kept = malloc(ring->size)))
		return -ENOMEM;
	while (pos != head && !r) {
		const struct perf_event_header *h = ring_start(ring, pos, head, &start);

		if (!h)
			break;
		size_t size = h->size;

		if (wanted(s, h))
			r = keep(s, ring, pos, &kept, &run, &last);
		else
			s->stats.dropped++;
		pos += size;
	}
	note_times(s, last);
	if (!r)
		r = hand_over(s, ring->cpu, &run);
	if (pos != head && !r)
		skip_damaged(s, ring, head);
	else
		ring->tail = pos;
	return r;
}

/* Hands over all records without a walk. The last sample is not later than now. */
static int drain_unseen(struct sampler *s, struct ring *ring)
{
	size_t off = ring->tail & (ring->size - 1), len = ring->until - ring->tail;
	size_t first = len < ring->size - off ? len : ring->size - off;
	int r;

	if (len > ring->size) {
		skip_damaged(s, ring, ring->until);
		return 0;
	}
	r = hand_records(s, ring->cpu, ring->data + off, first);
	if (!r && len > first)
		r = hand_records(s, ring->cpu, ring->data, len - first);
	ring->tail = ring->until;
	s->stats.last_sample_ns = clock_monotonic_ns();
	return r;
}

/* Whether the walk can be skipped. The first and last round need it for sample times. Older kernels
 * report losses only in records. */
static bool may_pass(const struct sampler *s)
{
	return s->event_rings && !s->options.count && s->features.format_lost &&
	       s->stats.first_sample_ns && !s->stopping;
}

static int drain_ring(struct sampler *s, struct ring *ring, bool event_only)
{
	if (ring->until == ring->tail)
		return 0;
	if (s->setup.filtered)
		return drain_filtered(s, ring);
	return !event_only && may_pass(s) ? drain_unseen(s, ring) : drain_whole(s, ring);
}

/* If samples share the ring with other records, the losses count for those that were more. */
static int drain(struct sampler *s, struct ring *ring, bool event_only)
{
	uint64_t samples = s->stats.samples, others = s->others, lost = s->stats.lost_records;
	int r = drain_ring(s, ring, event_only);

	if (event_only || (!s->event_rings && s->others - others > s->stats.samples - samples)) {
		s->stats.lost_others += s->stats.lost_records - lost;
		s->stats.lost_records = lost;
	}
	return r;
}

/*
 * Takes the heads of all rings first, then looks for FORKs up to there and after. So a sample of a
 * new process never precedes the FORK that made it a target, on whichever CPU.
 */
int sampler_drain(struct sampler *s)
{
	size_t n = sampler_nrings(s);
	int r = 0;

	for (size_t i = 0; i < n; i++) {
		struct ring *ring = sampler_ring(s, i);

		ring->until = ring_head(ring);
	}
	if (s->setup.filtered)
		r = follow_forks(s);
	/* Event-only rings first: if the disk gets full, earlier samples have their names. */
	for (size_t i = n; i-- > 0 && !r;) {
		r = s->early ? drain(s, &s->early[i].ring, true) : 0;
		if (!r)
			r = drain(s, sampler_ring(s, i), i >= s->cpus.len);
	}
	for (size_t i = 0; i < s->ended.len; i++)
		pidset_remove(&s->attached, s->ended.v[i]);
	s->ended.len = 0;
	s->stats.rounds++;
	if (!r)
		r = sampler_send_round(s);
	/* Only now may the kernel overwrite what listeners were given. */
	for (size_t i = 0; i < n && !r; i++) {
		struct ring *ring = sampler_ring(s, i);

		ring_release(ring, ring->tail);
	}
	if (!r)
		sampler_free_early(s);
	return r;
}
