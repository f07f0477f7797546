/* Opens events. If that fails, tries again with fewer features, at last with cpu-clock. */
#include "sampler/sampler_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define RESCANS_MAX 8

static void close_events(struct sampler *s)
{
	for (size_t i = 0; i < s->fds.len; i++)
		close(s->fds.v[i].fd);
	s->fds.len = 0;
	for (size_t i = 0; i < s->options.nevents; i++)
		s->ids[i].len = 0;
	pidset_free(&s->attached);
	s->denied = s->setup.threads = 0;
	/* Drop records of closed events, whose ids are unknown. */
	for (size_t i = 0; i < sampler_nrings(s); i++)
		ring_skip(sampler_ring(s, i));
}

static bool applies(const struct sampler *s, size_t event, int cpu)
{
	return !s->events[event].cpus[0] || cpulist_has(s->events[event].cpus, cpu);
}

/* Opens an event that writes into the ring, and adds its id to those of s->opened[event]. */
static int open_one(struct sampler *s, const struct perf_event_attr *attr, size_t event, pid_t tid,
		    const struct ring *ring, bool event_only)
{
	AUTO_CLOSE int fd = attr_open(attr, tid, ring->cpu);
	uint64_t id;

	if (fd < 0)
		return fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) || ioctl(fd, PERF_EVENT_IOC_ID, &id))
		return -errno;
	int r = vec_push(&s->ids[event], id);

	if (!r)
		r = vec_push(&s->fds, ((struct sampler_fd){fd, ring->cpu, tid, (uint16_t)event,
							   event_only, id}));
	if (!r)
		(void)TAKE_FD(fd);
	return r;
}

static int open_event_only(struct sampler *s, size_t event, pid_t tid, const struct ring *ring)
{
	const struct perf_event_attr attr = attr_event_only(&s->opened[event].attr, &s->features);

	return open_one(s, &attr, event, tid, ring, true);
}

/* Event and object of a failure, for the message. */
struct open_place {
	size_t event;
	char where[64];
};

/* first: the first event of the CPU. It also gets records other than samples, unless the CPU has an
 * event-only ring for them. */
static int open_event(struct sampler *s, size_t event, pid_t tid, size_t c, bool first)
{
	struct perf_event_attr attr = s->opened[event].attr;
	int r = 0;

	if (first && s->event_rings && !s->renewing)
		r = open_event_only(s, event, tid, &s->event_rings[c]);
	attr_set_side_band(&attr, first && !s->event_rings ? &s->features : NULL);
	if (s->renewing || !s->started_ns)
		attr.disabled = 1;
	return r ? r : open_one(s, &attr, event, tid, &s->rings[c], false);
}

/* Opens all events of a thread on one CPU; tid -1: of all threads. */
static int open_on_cpu(struct sampler *s, pid_t tid, size_t c, struct open_place *place)
{
	bool first = true;

	for (size_t e = 0; e < s->options.nevents; e++) {
		if (!applies(s, e, s->cpus.v[c]))
			continue;
		int r = open_event(s, e, tid, c, first);

		first = false;
		if (!r ||
		    (r == -ENODEV && !cpulist_is_online(s->options.roots.sysfs, s->cpus.v[c])))
			continue;
		place->event = e;
		if (tid < 0)
			snprintf(place->where, sizeof(place->where), "CPU %d", s->cpus.v[c]);
		return r;
	}
	return 0;
}

int sampler_open_on_cpu(struct sampler *s, pid_t tid, size_t cpu_index)
{
	struct open_place place;

	return open_on_cpu(s, tid, cpu_index, &place);
}

/*
 * Opens the event-only event of a CPU that runs until sampler_start. All sampling events of the
 * thread exist already. So if it records a FORK, the new thread inherited them.
 */
static int open_early(struct sampler *s, pid_t tid, size_t c)
{
	size_t e = 0;

	while (e < s->options.nevents && !applies(s, e, s->cpus.v[c]))
		e++;
	int r = e < s->options.nevents ? open_event_only(s, e, tid, &s->rings[c]) : 0;

	return r == -ENODEV && !cpulist_is_online(s->options.roots.sysfs, s->cpus.v[c]) ? 0 : r;
}

static int open_on_cpus(struct sampler *s, pid_t tid, struct open_place *place)
{
	bool early = !s->event_rings && !s->started_ns && !s->opened[0].attr.enable_on_exec;
	int r = 0;

	for (size_t c = 0; c < s->cpus.len && !r; c++)
		r = open_on_cpu(s, tid, c, place);
	for (size_t c = 0; c < s->cpus.len && !r && early; c++)
		r = open_early(s, tid, c);
	return r;
}

static bool is_denied(int error)
{
	return error == -EACCES || error == -EPERM;
}

static bool is_permitted(const struct sampler *s, enum permission_use use)
{
	return permission_missing(&s->permission, use) == PERMISSION_BLOCKED;
}

/* Whether the sampler chooses between events of threads and of whole CPUs. */
static bool is_free_mode(const struct sampler *s)
{
	return s->options.mode == SAMPLER_AUTO && !s->options.system_wide && !s->options.command;
}

/* Whether events of whole CPUs may take the place of denied ones of threads. */
static bool may_use_cpus(const struct sampler *s)
{
	return is_free_mode(s) && !s->cpus_denied && is_permitted(s, PERMISSION_CPU);
}

static int open_thread(struct sampler *s, struct target_thread t, struct open_place *place)
{
	if (!pidset_add(&s->attached, t.tid))
		return 0;
	snprintf(place->where, sizeof(place->where),
		 t.pid == t.tid ? "process %d" : "process %d, thread %d", t.pid, t.tid);
	s->opening = t.pid;
	int r = open_on_cpus(s, t.tid, place);

	if (r == -ESRCH)
		return 0; /* ended */
	if (is_denied(r) && s->fds.len && !may_use_cpus(s)) {
		s->denied++;
		return 0;
	}
	if (!r)
		s->setup.threads++;
	return r;
}

static int list_threads(struct sampler *s, struct target_threads *threads, pid_t *ret_silent)
{
	int r = 0;

	threads->len = 0;
	for (size_t i = 0; i < s->targets.list.len && r != -ENOMEM; i++) {
		r = targets_threads(s->targets.list.v[i], sampler_proc(&s->options), threads);
		*ret_silent = r == -ETIME ? s->targets.list.v[i] : *ret_silent;
	}
	return r == -ENOMEM ? r : 0; /* an ended process has no threads */
}

static size_t count_unattached(const struct sampler *s, const struct target_threads *threads)
{
	size_t n = 0;

	for (size_t i = 0; i < threads->len; i++)
		n += !pidset_has(&s->attached, threads->v[i].tid);
	return n;
}

/*
 * Opens events while new threads appear. A new thread is in /proc a moment before its FORK record.
 * The record shows that it inherited the events of its parent. The next pass opens events for new
 * threads without such a record.
 */
static int open_threads(struct sampler *s, struct open_place *place)
{
	struct target_threads threads = {0};
	const struct timespec moment = {.tv_nsec = 2000000};
	pid_t silent = 0;
	int r = pidset_new(&s->attached);

	for (int pass = 0; !r && pass < RESCANS_MAX; pass++) {
		if (pass == 1)
			r = targets_add_children(&s->targets, sampler_proc(&s->options));
		if (!r)
			r = list_threads(s, &threads, &silent);
		if (!r && pass)
			r = sampler_peek_forks(s);
		if (!r && pass && count_unattached(s, &threads)) {
			nanosleep(&moment, NULL);
			r = sampler_peek_forks(s);
		}
		if (r || (pass && !count_unattached(s, &threads)))
			break;
		for (size_t i = 0; !r && i < threads.len; i++)
			r = open_thread(s, threads.v[i], place);
	}
	vec_free(&threads);
	if (!r && !s->fds.len && silent)
		snprintf(place->where, sizeof(place->where), "process %d", silent);
	if (!r && !s->fds.len)
		r = silent ? -ETIME : -ESRCH;
	return r;
}

static int open_command(struct sampler *s, struct open_place *place)
{
	snprintf(place->where, sizeof(place->where), "the command");
	s->setup.threads = 1;
	return open_on_cpus(s, s->options.command, place);
}

static int open_cpus(struct sampler *s, struct open_place *place)
{
	sampler_open_event_rings(s);
	int r = open_on_cpus(s, -1, place);

	if (!r && !s->options.system_wide)
		r = targets_add_children(&s->targets, sampler_proc(&s->options));
	return r;
}

static void set_attrs(struct sampler *s)
{
	for (size_t i = 0; i < s->options.nevents; i++) {
		s->opened[i].attr = attr_of(&s->options, &s->events[i], &s->features, i == 0);
		if (s->setup.mode == SAMPLER_CPUS)
			s->opened[i].attr.inherit = s->opened[i].attr.disabled =
				s->opened[i].attr.enable_on_exec = 0;
		if (s->setup.kernel_excluded)
			s->opened[i].attr.exclude_kernel = 1;
	}
	s->identified = s->opened[0].attr.sample_type & PERF_SAMPLE_IDENTIFIER;
}

static bool all_events(const struct sampler *s, uint32_t type)
{
	for (size_t i = 0; i < s->options.nevents; i++)
		if (s->events[i].type != type)
			return false;
	return true;
}

static void fall_back(struct sampler *s)
{
	s->options.nevents = 1;
	s->events[0] = sampler_event_fallback();
	s->setup.fell_back = true;
}

/* Whether the event happens in the kernel, so that excluding the kernel leaves nothing. */
static bool needs_kernel(const struct sampler_event *e)
{
	bool scheduler =
		e->type == PERF_TYPE_SOFTWARE && (e->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						  e->config == PERF_COUNT_SW_CPU_MIGRATIONS);

	return !e->exclude_kernel && (e->type == PERF_TYPE_TRACEPOINT || scheduler);
}

/* Drops one feature after a denial. False: none is left to drop. */
static bool reduce_demands(struct sampler *s)
{
	if (s->setup.mode == SAMPLER_CPUS) {
		if (!is_free_mode(s) || s->cpus_denied)
			return false;
		s->cpus_denied = true;
		s->setup.mode = SAMPLER_THREADS;
		sampler_close_event_rings(s);
		return true;
	}
	if (may_use_cpus(s)) {
		s->setup.mode = SAMPLER_CPUS;
		return true;
	}
	if (s->setup.kernel_excluded || is_permitted(s, PERMISSION_KERNEL))
		return false;
	for (size_t i = 0; i < s->options.nevents; i++)
		if (needs_kernel(&s->events[i]))
			return false;
	s->setup.kernel_excluded = true;
	return true;
}

/* Drops one feature after an error. False: none is left to drop. */
static bool reduce_features(struct sampler *s, int error)
{
	switch (-error) {
	case EACCES:
	case EPERM:
		return reduce_demands(s);
	case EMFILE:
		if (s->event_rings) {
			sampler_close_event_rings(s);
			return true;
		}
		if (s->setup.mode != SAMPLER_THREADS || s->options.command)
			return false;
		if (is_free_mode(s) && !s->cpus_denied) {
			s->setup.mode = SAMPLER_CPUS;
			return true;
		}
		if (s->started_ns)
			return false;
		/* Do without the events that run until sampler_start. */
		s->started_ns = clock_monotonic_ns();
		return true;
	case ENOENT:
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP:
	case EINVAL:
		if (s->options.events_chosen && s->events[0].precise_ip) {
			for (size_t i = 0; i < s->options.nevents; i++)
				s->events[i].precise_ip--;
			return true;
		}
		if (!s->options.events_chosen || s->setup.fell_back ||
		    !all_events(s, PERF_TYPE_HARDWARE))
			return false;
		fall_back(s);
		return true;
	default:
		return false;
	}
}

int sampler_open_events(struct sampler *s, struct sampler_problem *problem)
{
	struct open_place place = {0};
	int r;

	for (;;) {
		set_attrs(s);
		if (s->setup.mode == SAMPLER_CPUS)
			r = open_cpus(s, &place);
		else if (s->options.command)
			r = open_command(s, &place);
		else
			r = open_threads(s, &place);
		if (!r)
			return 0;
		close_events(s);
		if (!reduce_features(s, r))
			return sampler_explain(s, r, place.event,
					       place.where[0] ? place.where : "the targets",
					       problem);
	}
}
