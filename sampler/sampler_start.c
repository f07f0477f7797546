/*
 * From opened to sampling. Until sampler_start only event-only events run, so that no mapping is
 * missed while the state of running processes is read. Rings that fill meanwhile are emptied into
 * memory.
 */
#include "sampler/sampler_impl.h"

#include "base/clock.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define EARLY_FIRST ((size_t)256 << 10) /* bytes of the first memory for a ring */

/* Closes the event-only events that write into the rings of samples. */
static void close_early(struct sampler *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->fds.len; i++) {
		if (!s->fds.v[i].event_only) {
			s->fds.v[kept++] = s->fds.v[i];
			continue;
		}
		close(s->fds.v[i].fd);
	}
	s->fds.len = kept;
}

uint64_t sampler_start(struct sampler *s)
{
	if (s->started_ns)
		return s->started_ns;
	s->started_ns = clock_monotonic_ns();
	for (size_t i = 0; i < s->fds.len && !s->awaiting_exec; i++)
		if (!s->fds.v[i].event_only)
			(void)ioctl(s->fds.v[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	/* The sampling events record the same now. */
	if (!s->event_rings)
		close_early(s);
	s->setup.descriptors = s->fds.len + sampler_nrings(s);
	return s->started_ns;
}

/* Makes room for more records. 0; -E2BIG: the limit is reached; -ENOMEM. */
static int grow_early(struct sampler *s, struct sampler_early *early, size_t bytes)
{
	size_t size = early->ring.size ? early->ring.size : EARLY_FIRST;

	while (size < early->page.data_head + bytes)
		size *= 2;
	if (size == early->ring.size)
		return 0;
	if (!s->early_max)
		s->early_max = memory_left_eighth(s->options.memory, SAMPLER_EARLY_MAX);
	if (s->early_bytes - early->ring.size + size > s->early_max)
		return -E2BIG;
	unsigned char *data = realloc(early->ring.data, size);

	if (!data)
		return -ENOMEM;
	s->early_bytes += size - early->ring.size;
	ring_of(&early->ring, &early->page, data, size);
	return 0;
}

static int take_early(struct sampler *s, struct ring *ring, struct sampler_early *early)
{
	uint64_t head = ring_head(ring);
	size_t bytes = head - ring->tail;
	int r = bytes < ring->size / 2 || bytes > ring->size ? -E2BIG : grow_early(s, early, bytes);

	if (r)
		return r == -E2BIG ? 0 : r;
	early->ring.cpu = ring->cpu;
	ring_copy(ring, ring->tail, early->ring.data + early->page.data_head, bytes);
	early->page.data_head += bytes;
	early->ring.until = early->page.data_head;
	ring_release(ring, head);
	ring->scanned = head;
	return 0;
}

int sampler_take_early(struct sampler *s)
{
	size_t n = sampler_nrings(s);
	int r = 0;

	if (n && !s->early && !(s->early = calloc(n, sizeof(*s->early))))
		return -ENOMEM;
	for (size_t i = 0; i < n && !r; i++)
		r = take_early(s, sampler_ring(s, i), &s->early[i]);
	return r;
}

void sampler_free_early(struct sampler *s)
{
	for (size_t i = 0; s->early && i < sampler_nrings(s); i++) {
		free(s->early[i].ring.data);
		ring_unmap(&s->early[i].ring);
	}
	free(s->early);
	s->early = NULL;
	s->early_bytes = 0;
}
