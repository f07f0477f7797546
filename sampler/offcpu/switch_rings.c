#include "sampler/offcpu/switch_rings.h"

#include "base/arch.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "sampler/attr.h"
#include "sampler/offcpu/sched_payload.h"
#include "sampler/sampler_impl.h"
#include "sampler/tracing_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SWITCHES_WHAT "record switches (--off-cpu)"
#define RING_MAX ((size_t)8 << 20)
#define RINGS_MAX ((size_t)128 << 20)
#define RING_MIN ((size_t)128 << 10) /* a record with its stack has up to 64 KiB */
#define FOREIGN_MAX 1024
#define RECORD_OTHER_BYTES 1024 /* largest size of a record without stack and callchain */
#define CALLCHAIN_DEFAULT 127   /* default of kernel.perf_event_max_stack */

struct switch_rings {
	struct sampler_roots roots;
	struct perf_event_attr attr;
	struct sampler_opened opened;
	struct ring *rings;
	size_t n;
	VEC(uint64_t) ids;
	int poll_fd;
	struct perf_event_attr waking_attr; /* config 0: wakings are not recorded */
	struct sampler_opened waking;
	VEC(uint64_t) waking_ids;
	VEC(int) waking_fds;
	uint32_t waking_pid_offset;
	struct sampler_problem no_wakings;
	uint64_t foreign[FOREIGN_MAX]; /* ids of other recorders' events */
	size_t nforeign;
	uint64_t left_out;   /* records of further ones */
	uint64_t *records;   /* per ring: samples since switch_rings_load */
	size_t record_bytes; /* size of the longest record */
};

static struct perf_event_attr attr_of_switches(const struct switch_rings_options *o)
{
	return (struct perf_event_attr){
		.size = sizeof(struct perf_event_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CONTEXT_SWITCHES,
		.sample_period = 1,
		/* Keep the id at the same position as in other events. */
		.sample_type = (ATTR_SAMPLE_TYPE & ~(uint64_t)PERF_SAMPLE_PERIOD) |
			       PERF_SAMPLE_IDENTIFIER | ATTR_SAMPLE_STACK,
		.sample_regs_user = ARCH_PERF_REGS,
		.sample_stack_user = o->stack_bytes,
		.sample_max_stack = o->max_stack,
		.exclude_callchain_kernel = o->no_kernel_stacks,
		.context_switch = 1,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.disabled = 1,
	};
}

static void forget_wakings(struct switch_rings *s)
{
	for (size_t i = 0; i < s->waking_fds.len; i++)
		close(s->waking_fds.v[i]);
	vec_free(&s->waking_fds);
	vec_free(&s->waking_ids);
	s->waking_attr.config = 0;
}

static void fail_wakings(struct switch_rings *s, int code)
{
	static const char what[] = "open the event", where[] = "sched:sched_waking";

	if (code == -EACCES || code == -EPERM)
		permission_explain(&s->roots, PERMISSION_RAW, code, what, where, &s->no_wakings);
	else
		sampler_fail(&s->no_wakings, code, what, "%s: %s", where, strerror(-code));
	forget_wakings(s);
}

static int tracepoint(const struct switch_rings_options *o, const char *name, uint64_t *ret_config,
		      struct sampler_problem *problem)
{
	struct sampler_event event;
	int r = sampler_event_parse(&o->roots, name, &event, problem);

	if (!r)
		*ret_config = event.config;
	return r;
}

/* Sets up the event of wakings, if its tracepoint is readable. In a nested PID namespace it also
 * replaces the switch event by one with both pids. */
static void find_wakings(struct switch_rings *s, const struct switch_rings_options *o)
{
	struct sampler_problem *why = &s->no_wakings;
	AUTO_FREE char *format = NULL;
	uint64_t config, switch_config = 0;
	int r = tracepoint(o, "sched:sched_waking", &config, why);

	if (!r && !o->first_pids)
		r = tracepoint(o, "sched:sched_switch", &switch_config, why);
	if (r)
		return;
	r = tracing_data_format(&o->roots, "sched", "sched_waking", &format);
	if (!r)
		r = sched_payload_field(format, "pid", &s->waking_pid_offset);
	if (r) {
		sampler_fail(why, r, "read", "events/sched/sched_waking/format of tracefs: %s",
			     strerror(-r));
		return;
	}
	s->waking_attr = s->attr;
	s->waking_attr.type = PERF_TYPE_TRACEPOINT;
	s->waking_attr.config = config;
	s->waking_attr.sample_type |= PERF_SAMPLE_RAW;
	s->waking_attr.context_switch = 0;
	s->waking_attr.disabled = 0; /* the group leader starts disabled */
	/* Test the event on this process. */
	AUTO_CLOSE int fd = attr_open(&s->waking_attr, 0, -1);

	if (fd < 0)
		fail_wakings(s, fd);
	if (fd < 0 || o->first_pids)
		return;
	s->attr.type = PERF_TYPE_TRACEPOINT;
	s->attr.config = switch_config;
	s->attr.sample_type |= PERF_SAMPLE_RAW;
}

/* Opens wakings on the CPU of a ring, which takes them. A failure is not fatal. 0 or -ENOMEM. */
static int open_wakings(struct switch_rings *s, const struct ring *ring)
{
	uint64_t id;

	if (!s->waking_attr.config)
		return 0;
	AUTO_CLOSE int fd = attr_open_in_group(&s->waking_attr, -1, ring->cpu, ring->fd);
	int r = fd < 0 ? fd
		: ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) ||
				ioctl(fd, PERF_EVENT_IOC_ID, &id)
			? -errno
			: 0;

	if (r) {
		fail_wakings(s, r);
		return 0;
	}
	r = vec_push(&s->waking_ids, id);
	if (!r)
		r = vec_push(&s->waking_fds, fd);
	if (!r)
		(void)TAKE_FD(fd);
	return r;
}

/* Opens the switches of a CPU with the largest ring of up to *bytes that may be locked. *ret_ring
 * is set before mapping, to explain an error. 0; -ENODEV: no such CPU; -errno. */
static int open_cpu(struct switch_rings *s, int cpu, size_t *bytes, bool *ret_ring)
{
	struct perf_event_attr attr = s->attr;
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	uint64_t id;

	attr.wakeup_watermark = (uint32_t)(*bytes / 4);
	AUTO_CLOSE int fd = attr_open(&attr, -1, cpu);

	if (fd < 0)
		return fd == -ENXIO ? -ENODEV : fd;
	int r = ring_map(&s->rings[s->n], fd, cpu, *bytes);

	*ret_ring = true;
	while ((r == -EPERM || r == -ENOMEM) && *bytes / 2 >= RING_MIN) {
		*bytes /= 2;
		r = ring_map(&s->rings[s->n], fd, cpu, *bytes);
	}
	if (r)
		return r;
	int ring_fd = TAKE_FD(fd);

	s->n++;
	if (ioctl(ring_fd, PERF_EVENT_IOC_ID, &id) ||
	    epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, ring_fd, &e))
		return -errno;
	int error = vec_push(&s->ids, id);

	return error ? error : open_wakings(s, &s->rings[s->n - 1]);
}

static int fail_cpu(const struct switch_rings_options *o, int error, int cpu, bool ring,
		    struct sampler_problem *problem)
{
	char where[32];

	snprintf(where, sizeof(where), "on CPU %d", cpu);
	if (ring && (error == -EPERM || error == -ENOMEM))
		return sampler_fail(problem, error, SWITCHES_WHAT,
				    "%s: a ring of %zu KiB exceeds the limit of locked memory: %s; "
				    "add CAP_IPC_LOCK, or set sysctl "
				    "kernel.perf_event_mlock_kb=8192",
				    where, RING_MIN >> 10, strerror(-error));
	if (error == -EACCES || error == -EPERM)
		return permission_explain(&o->roots, PERMISSION_CPU, error, SWITCHES_WHAT, where,
					  problem);
	return sampler_fail(problem, error, SWITCHES_WHAT, "%s: %s", where, strerror(-error));
}

static int open_all(struct switch_rings *s, const struct switch_rings_options *o,
		    struct sampler_problem *problem)
{
	AUTO_FREE int *online = NULL;
	size_t n, bytes = RING_MAX;
	int r = cpulist_online(o->roots.sysfs, &online, &n);

	if (r)
		return sampler_fail(problem, r, "find the CPUs",
				    "in /sys/devices/system/cpu/online: %s", strerror(-r));
	s->rings = calloc(n, sizeof(*s->rings));
	s->records = calloc(n, sizeof(*s->records));
	s->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!s->rings || !s->records || s->poll_fd < 0)
		return sampler_fail(
			problem, s->poll_fd < 0 ? -errno : -ENOMEM, "record switches", "%s",
			s->poll_fd < 0 ? strerror(errno) : "on all CPUs: out of memory");
	/* Leave half for the sampler's rings. */
	size_t most = sampler_may_lock(&o->roots, n) / 2;

	while (bytes * n > (most < RINGS_MAX ? most : RINGS_MAX) && bytes > RING_MIN)
		bytes /= 2;
	for (size_t i = 0; i < n; i++) {
		bool ring = false;

		r = open_cpu(s, online[i], &bytes, &ring);
		if (r && r != -ENODEV)
			return fail_cpu(o, r, online[i], ring, problem);
	}
	if (!s->n)
		return sampler_fail(problem, -ENODEV, SWITCHES_WHAT, "on any CPU: none is online");
	return 0;
}

int switch_rings_open(const struct switch_rings_options *options, struct switch_rings **ret_rings,
		      struct sampler_problem *problem)
{
	struct switch_rings *s = calloc(1, sizeof(*s));

	if (!s)
		return sampler_fail(problem, -ENOMEM, SWITCHES_WHAT, "on all CPUs: out of memory");
	s->poll_fd = -1;
	s->roots = options->roots;
	s->attr = attr_of_switches(options);
	s->record_bytes =
		options->stack_bytes + RECORD_OTHER_BYTES +
		sizeof(uint64_t) * (options->max_stack ? options->max_stack : CALLCHAIN_DEFAULT);
	if (options->wakings)
		find_wakings(s, options);
	int r = open_all(s, options, problem);

	if (r) {
		switch_rings_close(s);
		return r;
	}
	s->opened = (struct sampler_opened){
		.attr = s->attr, .name = "context-switches", .ids = s->ids.v, .nids = s->ids.len};
	s->waking = (struct sampler_opened){.attr = s->waking_attr,
					    .name = "sched:sched_waking",
					    .ids = s->waking_ids.v,
					    .nids = s->waking_ids.len};
	*ret_rings = s;
	return 0;
}

void switch_rings_close(struct switch_rings *s)
{
	if (!s)
		return;
	forget_wakings(s);
	for (size_t i = 0; i < s->n; i++)
		ring_unmap(&s->rings[i]);
	if (s->poll_fd >= 0)
		close(s->poll_fd);
	free(s->rings);
	free(s->records);
	vec_free(&s->ids);
	free(s);
}

size_t switch_rings_locked(const struct switch_rings *s)
{
	size_t bytes = 0;

	for (size_t i = 0; i < s->n; i++)
		bytes += s->rings[i].size;
	return bytes;
}

const struct sampler_opened *switch_rings_opened(const struct switch_rings *s)
{
	return &s->opened;
}

const struct sampler_opened *switch_rings_wakings(const struct switch_rings *s,
						  uint32_t *ret_pid_offset)
{
	if (!s->waking.nids)
		return NULL;
	*ret_pid_offset = s->waking_pid_offset;
	return &s->waking;
}

const char *switch_rings_no_wakings(const struct switch_rings *s)
{
	return s->no_wakings.detail;
}

uint64_t switch_rings_left_out(const struct switch_rings *s)
{
	return s->left_out;
}

int switch_rings_poll_fd(const struct switch_rings *s)
{
	return s->poll_fd;
}

void switch_rings_mark(struct switch_rings *s)
{
	for (size_t i = 0; i < s->n; i++)
		s->rings[i].until = ring_head(&s->rings[i]);
}

static uint64_t word_at(const struct ring *ring, uint64_t pos)
{
	return *(const uint64_t *)(const void *)(ring->data + (pos & (ring->size - 1)));
}

/* Reports each foreign id once. 0 or the listener's -errno. */
static int add_foreign_id(struct switch_rings *s, size_t i, uint64_t id,
			  const struct switch_rings_listener *listener)
{
	if (id == s->ids.v[i] || (i < s->waking_ids.len && id == s->waking_ids.v[i]))
		return 0;
	for (size_t k = 0; k < s->nforeign; k++)
		if (s->foreign[k] == id)
			return 0;
	if (s->nforeign == FOREIGN_MAX) {
		s->left_out++;
		return 0;
	}
	s->foreign[s->nforeign++] = id;
	return listener->id(listener->ctx, id);
}

/*
 * The header of the record at pos, before `end`. Headers are 8-byte aligned, so no word crosses the
 * end of the ring. False: there is none.
 */
static bool header_at(const struct ring *ring, uint64_t pos, uint64_t end,
		      struct perf_event_header *ret_header)
{
	uint64_t word;

	if (pos >= end)
		return false;
	word = word_at(ring, pos);
	memcpy(ret_header, &word, sizeof(*ret_header));
	return ret_header->size >= sizeof(*ret_header) && ret_header->size % 8 == 0;
}

static int count_samples(struct switch_rings *s, size_t i,
			 const struct switch_rings_listener *listener)
{
	const struct ring *ring = &s->rings[i];
	struct perf_event_header h;
	int r = 0;

	for (uint64_t pos = ring->tail; !r && header_at(ring, pos, ring->until, &h); pos += h.size)
		if (h.type == PERF_RECORD_SAMPLE) {
			s->records[i]++;
			r = add_foreign_id(s, i, word_at(ring, pos + sizeof(h)), listener);
		}
	return r;
}

/* The thread id is the upper half of its word. */
static int32_t tid_of(uint64_t word)
{
	uint32_t ids[2];

	memcpy(ids, &word, sizeof(ids));
	return (int32_t)ids[1];
}

void switch_rings_peek(const struct switch_rings *s,
		       void (*moved)(void *ctx, int32_t tid, uint64_t time_ns, bool out), void *ctx)
{
	/* A header, the other thread's ids, then PERF_SAMPLE_TID and PERF_SAMPLE_TIME. */
	enum { IDS = 16, TIME = 24, BYTES = 32 };
	struct perf_event_header h;

	for (size_t i = 0; i < s->n; i++) {
		const struct ring *ring = &s->rings[i];
		uint64_t end = ring_head(ring);

		if (end - ring->tail > ring->size)
			continue; /* an invalid ring */
		for (uint64_t pos = ring->tail; header_at(ring, pos, end, &h); pos += h.size)
			if (h.type == PERF_RECORD_SWITCH_CPU_WIDE && h.size >= BYTES)
				moved(ctx, tid_of(word_at(ring, pos + IDS)),
				      word_at(ring, pos + TIME),
				      h.misc & PERF_RECORD_MISC_SWITCH_OUT);
	}
}

static int take(struct ring *ring, const struct switch_rings_listener *listener)
{
	size_t off = ring->tail & (ring->size - 1), len = ring->until - ring->tail;
	size_t first = len < ring->size - off ? len : ring->size - off;
	int r = 0;

	/* Skip an invalid ring. */
	if (len <= ring->size && len) {
		r = listener->records(listener->ctx, ring->data + off, first);
		if (!r && len > first)
			r = listener->records(listener->ctx, ring->data, len - first);
	}
	ring->tail = ring->until;
	return r;
}

int switch_rings_take(struct switch_rings *s, const struct switch_rings_listener *listener)
{
	int r = 0;

	for (size_t i = 0; i < s->n && !r; i++) {
		if (s->rings[i].until - s->rings[i].tail <= s->rings[i].size)
			r = count_samples(s, i, listener);
		if (!r)
			r = take(&s->rings[i], listener);
	}
	return r;
}

int switch_rings_full(const struct switch_rings *s, int (*full)(void *ctx, int cpu), void *ctx)
{
	int r = 0;

	for (size_t i = 0; i < s->n && !r; i++)
		r = ring_is_full(&s->rings[i], s->record_bytes) ? full(ctx, s->rings[i].cpu) : 0;
	return r;
}

void switch_rings_release(struct switch_rings *s)
{
	for (size_t i = 0; i < s->n; i++)
		ring_release(&s->rings[i], s->rings[i].tail);
}

void switch_rings_turn(struct switch_rings *s, bool on)
{
	for (size_t i = 0; i < s->n; i++)
		(void)ioctl(s->rings[i].fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

void switch_rings_stop(struct switch_rings *s)
{
	switch_rings_turn(s, false);
}

struct switch_rings_load switch_rings_load(struct switch_rings *s)
{
	struct switch_rings_load load = {0};

	for (size_t i = 0; i < s->n; i++) {
		const struct ring *ring = &s->rings[i];
		uint64_t bytes = ring_head(ring) - ring->tail;

		load.records += s->records[i];
		load.records_cpu =
			s->records[i] > load.records_cpu ? s->records[i] : load.records_cpu;
		load.unread_cpu = bytes / s->record_bytes > load.unread_cpu
					  ? bytes / s->record_bytes
					  : load.unread_cpu;
		s->records[i] = 0;
	}
	return load;
}

uint64_t switch_rings_room(const struct switch_rings *s)
{
	uint64_t least = UINT64_MAX;

	for (size_t i = 0; i < s->n; i++)
		least = s->rings[i].size / s->record_bytes < least
				? s->rings[i].size / s->record_bytes
				: least;
	return least;
}
