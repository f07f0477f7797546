/* One ring for each CPU, and one beside it for what is no sample. */
#include "sampler/internal.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include <linux/capability.h>

#define RINGS_TOTAL_MAX ((size_t)64 << 20)
#define RING_LOCKED_MAX ((size_t)2 << 20)  /* with CAP_IPC_LOCK */
#define RING_PLAIN_MAX ((size_t)512 << 10) /* what kernel.perf_event_mlock_kb allows by default */
#define RING_MIN ((size_t)32 << 10)

/* Where stacks are copied: copies of 32 KiB at 4,999 Hz fill 2 MiB in 12 ms, and who reads may have to wait longer for a CPU. */
#define RING_STACKS_MAX ((size_t)8 << 20)
#define RINGS_STACKS_TOTAL_MAX ((size_t)128 << 20)

/* The largest power of two that each of n rings may have within the total, from `least` up to `most`. */
static size_t ring_share(size_t least, size_t most, size_t n, size_t total)
{
	while (most > least && most * n > total)
		most /= 2;
	return most;
}

bool sampler_locks_freely(void)
{
	return sampler_has_cap(CAP_IPC_LOCK);
}

size_t sampler_may_lock(const struct sampler_roots *roots, size_t ncpus)
{
	long kb = sampler_sysctl(roots, "perf_event_mlock_kb", 516);
	struct rlimit limit = {0};

	if (sampler_locks_freely())
		return SIZE_MAX;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur > RINGS_STACKS_TOTAL_MAX)
		return RINGS_STACKS_TOTAL_MAX;
	return (size_t)limit.rlim_cur + (kb > 0 && kb < 1 << 20 ? ((size_t)kb << 10) * ncpus : 0);
}

static size_t ring_wanted(const struct sampler *s, size_t ncpus)
{
	bool locked = sampler_locks_freely();
	size_t least = RING_PLAIN_MAX, may = sampler_may_lock(&s->options.roots, ncpus), others = s->options.locked_bytes;

	if (s->options.ring_bytes)
		return s->options.ring_bytes;
	if (!s->options.stack_bytes)
		return ring_share(least, locked ? RING_LOCKED_MAX : least, ncpus, RINGS_TOTAL_MAX);
	if (locked)
		return ring_share(least, RING_STACKS_MAX, ncpus, RINGS_STACKS_TOTAL_MAX);
	if (others)
		least /= 4;
	/* Half of what one may lock is for others of this user, and for the rings beside. */
	return ring_share(least, RING_STACKS_MAX, ncpus, (others < may ? may - others : 0) / 2);
}

/* Of what is no sample there is no more for stacks. */
static size_t side_wanted(const struct sampler *s)
{
	return s->options.stack_bytes && !s->options.ring_bytes && s->setup.ring_bytes > RING_LOCKED_MAX ? RING_LOCKED_MAX
													: s->setup.ring_bytes;
}

/* 0, or -errno of the event (-ENODEV: there is no such CPU) or of the mapping, which *ret_map then
 * tells. */
static int open_ring(const struct sampler *s, struct ring *ring, int cpu, size_t *bytes, size_t min_bytes, bool *ret_map)
{
	struct perf_event_attr attr = attr_ring_owner();

	/* Long records fill the other half faster than that of a callchain each; what is read early may still be in a cache. */
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
			    "of %zu KiB for %s: %s; the limit of locked memory is used up: "
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

/* As large as it would be without stacks or not at all: many processes that begin and end while nobody reads yet fill it. */
static int open_side(const struct sampler *s, struct ring *ring, int cpu)
{
	size_t bytes = side_wanted(s);
	bool map;

	return open_ring(s, ring, cpu, &bytes, bytes, &map);
}

/* An owner and an event more for each CPU are not to take the descriptors that are needed later. */
static bool room_for_sides(const struct sampler *s)
{
	return s->cpus.len * (s->options.nevents + 3) + SAMPLER_FD_RESERVE <= s->fd_limit;
}

void sampler_open_sides(struct sampler *s)
{
	int r = 0;

	if (s->no_sides || s->sides || !room_for_sides(s))
		return;
	s->sides = calloc(s->cpus.len, sizeof(*s->sides));
	for (size_t i = 0; s->sides && i < s->cpus.len && !r; i++)
		r = open_side(s, &s->sides[i], s->cpus.v[i]);
	if (!s->sides || r)
		sampler_close_sides(s);
}

void sampler_close_sides(struct sampler *s)
{
	for (size_t i = 0; s->sides && i < s->cpus.len; i++)
		ring_unmap(&s->sides[i]);
	free(s->sides);
	s->sides = NULL;
	s->no_sides = true;
}

/* Room for one ring more. */
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
	if (!r && s->sides)
		r = grow(&s->sides, index);
	if (!r)
		r = open_ring(s, &s->rings[index], cpu, &bytes, RING_MIN, &map);
	if (!r && s->sides && (r = open_side(s, &s->sides[index], cpu)))
		ring_unmap(&s->rings[index]);
	if (r)
		return r == -ENODEV ? 0 : r;
	s->cpus.v[s->cpus.len++] = cpu;
	/* Without it they are read at the intervals that there are in any case. */
	(void)epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->rings[index].fd, &e);
	if (s->sides)
		(void)epoll_ctl(s->poll_fd, EPOLL_CTL_ADD, s->sides[index].fd, &e);
	return 0;
}
