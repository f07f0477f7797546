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

const struct perf_event_header *ring_record(struct ring *r, uint64_t pos, uint64_t end,
					    int *ret_error)
{
	size_t off = pos & (r->size - 1);
	const struct perf_event_header *h = (const void *)(r->data + off);

	/* Another CPU wrote them: what comes next is asked for while this one is looked at. */
	for (size_t ahead = RING_AHEAD; ahead < RING_AHEAD + 192; ahead += 64)
		__builtin_prefetch(r->data + ((off + ahead) & (r->size - 1)));
	/* Records are multiples of 8 bytes at multiples of 8, so that a header never straddles. */
	*ret_error = -EBADMSG;
	if ((pos & 7) || end - pos < sizeof(*h))
		return NULL;
	size_t size = h->size;

	if (size < sizeof(*h) || (size & 7) || size > end - pos || size > r->size)
		return NULL;
	if (off + size <= r->size)
		return h;
	if (!r->straddle)
		r->straddle = malloc(RING_RECORD_MAX);
	*ret_error = -ENOMEM;
	if (!r->straddle)
		return NULL;
	memcpy(r->straddle, r->data + off, r->size - off);
	memcpy(r->straddle + (r->size - off), r->data, size - (r->size - off));
	return (const void *)r->straddle;
}
