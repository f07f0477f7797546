/* One ring per CPU, and one event-only ring beside it. */
#include "sampler/sampler_impl.h"

#include "base/cleanup.h"
#include "container/memory_left.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define RINGS_TOTAL_MAX ((size_t)64 << 20)
#define RING_LOCKED_MAX ((size_t)2 << 20)  /* with CAP_IPC_LOCK */
#define RING_PLAIN_MAX ((size_t)512 << 10) /* default limit of kernel.perf_event_mlock_kb */
#define RING_MIN ((size_t)32 << 10)
#define RING_MEMORY_MIN ((size_t)128 << 10) /* larger than any record */

/* With copied stacks: copies of 32 KiB at 4,999 Hz fill 2 MiB in 12 ms, and the reader may wait
 * longer for a CPU. */
#define RING_STACKS_MAX ((size_t)8 << 20)
#define RINGS_STACKS_TOTAL_MAX ((size_t)128 << 20)

/* The largest power of two that each of n rings may have within the total, from `least` up to
 * `most`. */
static size_t ring_share(size_t least, size_t most, size_t n, size_t total)
{
	while (most > least && most * n > total)
		most /= 2;
	return most;
}

static size_t ring_allowed(const struct sampler *s, size_t ncpus)
{
	bool locked = sampler_locks_freely(&s->options.roots);
	size_t least = RING_PLAIN_MAX, may = sampler_may_lock(&s->options.roots, ncpus),
	       others = s->options.locked_bytes;

	if (s->options.ring_bytes)
		return s->options.ring_bytes;
	if (!s->options.stack_bytes)
		return ring_share(least, locked ? RING_LOCKED_MAX : least, ncpus, RINGS_TOTAL_MAX);
	if (locked)
		return ring_share(least, RING_STACKS_MAX, ncpus, RINGS_STACKS_TOTAL_MAX);
	if (others)
		least /= 4;
	/* Use half of the rest: other processes of this user and event-only rings need memory too.
	 */
	return ring_share(least, RING_STACKS_MAX, ncpus, (others < may ? may - others : 0) / 2);
}

/*
 * The same with little memory. An event-only ring then has a quarter of this size. A round keeps
 * half as much again for its records. Together, 11/8 fit into a quarter of the memory left.
 */
static size_t ring_wanted(struct sampler *s, size_t ncpus)
{
	size_t allowed = ring_allowed(s, ncpus), bytes;

	if (s->options.ring_bytes)
		return allowed;
	bytes = ring_share(allowed < RING_MEMORY_MIN ? allowed : RING_MEMORY_MIN, allowed, ncpus,
			   memory_left_eighth(s->options.memory, SIZE_MAX) / 11 * 16);
	s->setup.small_rings = bytes < allowed;
	return bytes;
}

/* Size of an event-only ring: copied stacks do not enlarge it. */
static size_t event_ring_bytes(const struct sampler *s)
{
	if (s->setup.small_rings)
		return s->setup.ring_bytes / 4;
	return s->options.stack_bytes && !s->options.ring_bytes &&
			       s->setup.ring_bytes > RING_LOCKED_MAX
		       ? RING_LOCKED_MAX
		       : s->setup.ring_bytes;
}

/*
 * Opens a ring. Returns 0 or -errno (-ENODEV: no such CPU). *ret_map is true if the mapping failed,
 * false if the event could not be opened.
 */
static int open_ring(const struct sampler *s, struct ring *ring, int cpu, size_t *bytes,
		     size_t min_bytes, bool *ret_map)
{
	struct perf_event_attr attr = attr_ring_owner();

	/* Long records fill the second half fast; early reads may hit the cache. */
	if (s->options.stack_bytes)
		attr.wakeup_watermark = (uint32_t)(*bytes / 4);
	AUTO_CLOSE int fd = attr_open(&attr, 0, cpu);

	*ret_map = fd >= 0;
	if (fd < 0)
		return fd == -ENXIO ? -ENODEV : fd;
	int r = ring_map(ring, fd, cpu, *bytes);

	while ((r == -EPERM || r == -ENOMEM) && *bytes / 2 >= min_bytes) {
		*bytes /= 2;
		r = ring_map(ring, fd, cpu, *bytes);
	}
	if (!r)
		(void)TAKE_FD(fd);
	return r;
}

static int open_first_ring(struct sampler *s, int cpu, size_t *bytes,
			   struct sampler_problem *problem)
{
	char where[32];
	bool map;
	int r = open_ring(s, &s->rings[s->cpus.len], cpu, bytes, RING_MIN, &map);

	if (!r)
		s->cpus.v[s->cpus.len++] = cpu;
	if (!r || r == -ENODEV)
		return 0;
	snprintf(where, sizeof(where), "CPU %d", cpu);
	if (!map)
		return sampler_explain(s, r, 0, where, problem);
	return sampler_fail(problem, r, "map a ring",
			    "of %zu KiB for %s: %s: the limit of locked memory is reached; "
			    "raise sysctl kernel.perf_event_mlock_kb or give CAP_IPC_LOCK",
			    *bytes >> 10, where, strerror(-r));
}

int sampler_open_rings(struct sampler *s, struct sampler_problem *problem)
{
	AUTO_FREE int *online = NULL;
	size_t n;
	int r = cpulist_online(s->options.roots.sysfs, &online, &n);

	if (r)
		return sampler_fail(problem, r, "find the CPUs",
				    "in /sys/devices/system/cpu/online: %s", strerror(-r));
	s->rings = calloc(n, sizeof(*s->rings));
	if (!s->rings || vec_reserve(&s->cpus, n))
		return sampler_fail(problem, -ENOMEM, "map a ring", "for %zu CPUs: no memory", n);
	size_t bytes = ring_wanted(s, n);

	for (size_t i = 0; i < n; i++) {
		r = open_first_ring(s, online[i], &bytes, problem);
		if (r)
			return r;
	}
	s->setup.ring_bytes = bytes;
	s->setup.cpus = s->cpus.len;
	return s->cpus.len ? 0
			   : sampler_fail(problem, -ENODEV, "map a ring",
					  "for any CPU: none is online");
}

/*
 * Opens an event-only ring at full size or not at all, because many short processes fill it before
 * the first read.
 */
static int open_event_ring(const struct sampler *s, struct ring *ring, int cpu)
{
	size_t bytes = event_ring_bytes(s);
	bool map;

	return open_ring(s, ring, cpu, &bytes, bytes, &map);
}

/* Leave descriptors for later needs. */
static bool budget_for_event_rings(const struct sampler *s)
{
	return s->cpus.len * (s->options.nevents + 3) + SAMPLER_FD_RESERVE <= s->fd_limit;
}

void sampler_open_event_rings(struct sampler *s)
{
	int r = 0;

	if (s->no_event_rings || s->event_rings || !budget_for_event_rings(s))
		return;
	s->event_rings = calloc(s->cpus.len, sizeof(*s->event_rings));
	for (size_t i = 0; s->event_rings && i < s->cpus.len && !r; i++)
		r = open_event_ring(s, &s->event_rings[i], s->cpus.v[i]);
	if (!s->event_rings || r)
		sampler_close_event_rings(s);
}

void sampler_close_event_rings(struct sampler *s)
{
	for (size_t i = 0; s->event_rings && i < s->cpus.len; i++)
		ring_unmap(&s->event_rings[i]);
	free(s->event_rings);
	s->event_rings = NULL;
	s->no_event_rings = true;
}

/* Makes room for one more ring. */
static int grow(struct ring **rings, size_t n)
{
	struct ring *grown = reallocarray(*rings, n + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	grown[n] = (struct ring){0};
	*rings = grown;
	return 0;
}

int sampler_add_ring(struct sampler *s, int cpu)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	size_t index = s->cpus.len, bytes = s->setup.ring_bytes;
	bool map;
	int r = vec_reserve(&s->cpus, 1);

	if (!r)
		r = grow(&s->rings, index);
	if (!r && s->event_rings)
		r = grow(&s->event_rings, index);
	if (!r)
		r = open_ring(s, &s->rings[index], cpu, &bytes, RING_MIN, &map);
	if (!r && s->event_rings && (r = open_event_ring(s, &s->event_rings[index], cpu)))
		ring_unmap(&s->rings[index]);
	if (r)
		return r == -ENODEV ? 0 : r;
	s->cpus.v[s->cpus.len++] = cpu;
	/* If this fails, the regular drains read the ring. */
	(void)epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->rings[index].fd, &e);
	if (s->event_rings)
		(void)epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->event_rings[index].fd, &e);
	return 0;
}
