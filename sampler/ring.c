#include "sampler/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RING_AHEAD 1024u /* bytes */

int ring_map(struct ring *r, int fd, int cpu, size_t data_bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *base = mmap(NULL, page + data_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (base == MAP_FAILED)
		return -errno;
	ring_of(r, base, (unsigned char *)base + page, data_bytes);
	r->cpu = cpu;
	r->fd = fd;
	r->mapped_bytes = page + data_bytes;
	return 0;
}

void ring_of(struct ring *r, struct perf_event_mmap_page *page, void *data, size_t data_bytes)
{
	assert(data_bytes && !(data_bytes & (data_bytes - 1)));
	*r = (struct ring){.page = page, .data = data, .size = data_bytes};
	r->tail = r->scanned = page->data_tail;
}

void ring_unmap(struct ring *r)
{
	if (r->mapped_bytes) {
		munmap(r->page, r->mapped_bytes);
		close(r->fd);
	}
	free(r->straddle);
	free(r->kept);
	*r = (struct ring){0};
}

/* The header of a whole record, or NULL. */
static const struct perf_event_header *header_at(const struct ring *r, uint64_t pos, uint64_t end)
{
	const struct perf_event_header *h = (const void *)(r->data + (pos & (r->size - 1)));

	/* Records are multiples of 8 bytes at multiples of 8, so that a header never straddles. */
	if ((pos & 7) || end - pos < sizeof(*h))
		return NULL;
	size_t size = h->size;

	return size < sizeof(*h) || (size & 7) || size > end - pos || size > r->size ? NULL : h;
}

/*
 * Prefetches the next record, because another CPU wrote it. A long record is skipped: its successor
 * is prefetched.
 */
static void prefetch(const struct ring *r, uint64_t pos, size_t size)
{
	uint64_t ahead = pos + (size > RING_AHEAD ? size : RING_AHEAD);

	for (uint64_t at = ahead; at < ahead + 192; at += 64)
		__builtin_prefetch(r->data + (at & (r->size - 1)));
}

void ring_copy(const struct ring *r, uint64_t pos, unsigned char *to, size_t n)
{
	size_t off = pos & (r->size - 1), first = n < r->size - off ? n : r->size - off;

	memcpy(to, r->data + off, first);
	memcpy(to + first, r->data, n - first);
}

const struct perf_event_header *ring_start(const struct ring *r, uint64_t pos, uint64_t end,
					   struct ring_start *buf)
{
	const struct perf_event_header *h = header_at(r, pos, end);

	if (!h)
		return NULL;
	prefetch(r, pos, h->size);
	if (!ring_straddles(r, pos, h->size))
		return h;
	ring_copy(r, pos, buf->bytes, h->size < RING_START ? h->size : RING_START);
	return (const void *)buf->bytes;
}

const struct perf_event_header *ring_record(struct ring *r, uint64_t pos, uint64_t end,
					    int *ret_error)
{
	const struct perf_event_header *h = header_at(r, pos, end);

	*ret_error = -EBADMSG;
	if (!h)
		return NULL;
	size_t size = h->size;

	prefetch(r, pos, size);
	if (!ring_straddles(r, pos, size))
		return h;
	if (!r->straddle)
		r->straddle = malloc(RING_RECORD_MAX);
	*ret_error = -ENOMEM;
	if (!r->straddle)
		return NULL;
	ring_copy(r, pos, r->straddle, size);
	return (const void *)r->straddle;
}
