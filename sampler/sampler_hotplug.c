/* CPUs that go offline and come online while they are sampled. */
#include "sampler/sampler_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define POLL_NS (SAMPLER_CPU_CHECK_MS * NS_PER_MS)

static bool has(const int *cpus, size_t n, int cpu)
{
	for (size_t i = 0; i < n; i++)
		if (cpus[i] == cpu)
			return true;
	return false;
}

/* Counts a CPU once, even if it comes online again. */
static int count_once(struct sampler_cpus *seen, int cpu, uint64_t *count, int *first)
{
	if (has(seen->v, seen->len, cpu))
		return 0;
	if (!(*count)++)
		*first = cpu;
	return vec_push(seen, cpu);
}

static int miss(struct sampler *s, int cpu)
{
	return count_once(&s->missed, cpu, &s->stats.cpus_missed, &s->stats.cpu_missed);
}

/* Closes the events of a CPU and drops their records, whose ids are unknown. */
static void give_up(struct sampler *s, size_t cpu_index)
{
	sampler_close_on_cpu(s, s->cpus.v[cpu_index]);
	ring_skip(&s->rings[cpu_index]);
	if (s->event_rings)
		ring_skip(&s->event_rings[cpu_index]);
}

int sampler_announce_id(struct sampler *s, size_t event, uint64_t id)
{
	int r = 0;

	for (size_t i = 0; i < s->nlisteners && !r; i++)
		if (s->listeners[i].event_id)
			r = s->listeners[i].event_id(s->listeners[i].ctx, event, id);
	return r;
}

/* Opens the events on the CPU of a ring. The ring is open already. */
static int sample(struct sampler *s, size_t cpu_index)
{
	size_t before[SAMPLER_EVENTS_MAX], opened = s->fds.len;
	int cpu = s->cpus.v[cpu_index];
	int r, listener_error = 0;

	for (size_t e = 0; e < s->options.nevents; e++)
		before[e] = s->ids[e].len;
	r = sampler_open_on_cpu(s, -1, cpu_index);
	sampler_show_ids(s);
	for (size_t e = 0; e < s->options.nevents && !r && !listener_error; e++)
		for (size_t i = before[e]; i < s->ids[e].len && !listener_error; i++)
			listener_error = sampler_announce_id(s, e, s->ids[e].v[i]);
	if (r || listener_error) {
		give_up(s, cpu_index);
		return listener_error && listener_error != -E2BIG ? listener_error : miss(s, cpu);
	}
	/* No event applies to this kind of core, or the CPU went offline. */
	return s->fds.len == opened
		       ? miss(s, cpu)
		       : count_once(&s->added, cpu, &s->stats.cpus_added, &s->stats.cpu_added);
}

/* Adds a CPU that was never online before. */
static int add(struct sampler *s, int cpu)
{
	size_t index = s->cpus.len;

	if (sampler_add_ring(s, cpu))
		return miss(s, cpu);
	/* The CPU went offline again. */
	return s->cpus.len > index ? sample(s, index) : 0;
}

static int follow(struct sampler *s, const int *online, size_t n)
{
	bool whole = s->setup.mode == SAMPLER_CPUS;
	int r = 0;

	for (size_t i = 0; i < s->cpus.len && !r && whole; i++) {
		bool there = has(online, n, s->cpus.v[i]), was = !s->rings[i].offline;

		s->rings[i].offline = !there;
		if (was && !there)
			sampler_close_on_cpu(s, s->cpus.v[i]);
		else if (there && !was)
			r = sample(s, i);
	}
	for (size_t i = 0; i < n && !r; i++)
		if (!has(s->cpus.v, s->cpus.len, online[i]) &&
		    !has(s->missed.v, s->missed.len, online[i]))
			r = whole ? add(s, online[i]) : miss(s, online[i]);
	return r;
}

int sampler_follow_cpus(struct sampler *s)
{
	AUTO_FREE int *online = NULL;
	uint64_t now = clock_monotonic_ns();
	size_t n;

	if (s->polled_ns && now - s->polled_ns < POLL_NS)
		return 0;
	s->polled_ns = now;
	/* If the list is not readable now, try again at the next check. */
	return cpulist_changed(&s->online, s->options.roots.sysfs, &online, &n) <= 0
		       ? 0
		       : follow(s, online, n);
}
