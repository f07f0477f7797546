/*
 * One CPU's ring of records that the kernel writes and we read. Protocol:
 * include/uapi/linux/perf_event.h, struct perf_event_mmap_page: data_head is read before the data,
 * data_tail is written after the data were used.
 */
#ifndef SAMPLER_RING_H
#define SAMPLER_RING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_RECORD_MAX 65536 /* header.size is 16 bits wide */

struct ring {
	struct perf_event_mmap_page *page;
	unsigned char *data;
	size_t size;      /* bytes of data, a power of two */
	uint64_t tail;    /* next position to read; positions never wrap */
	uint64_t scanned; /* the sampler's: end of the search for new processes */
	uint64_t until;   /* the sampler's: end of the present round */
	int cpu;
	bool offline;        /* the sampler's: the CPU went offline */
	int fd;              /* the event of the ring; valid if mapped_bytes is not 0 */
	size_t mapped_bytes; /* 0: memory of the caller (ring_of) */
	unsigned char
		*straddle; /* RING_RECORD_MAX bytes for a record that goes over the end, or NULL */
	unsigned char *kept; /* records that passed the filter, `size` bytes, or NULL */
};

/*
 * Maps the ring of an event with data_bytes of data, a power of two pages. ring_unmap closes the
 * descriptor. On failure it stays with the caller. 0; -errno (-EPERM: over the limit of locked
 * memory).
 */
int ring_map(struct ring *r, int fd, int cpu, size_t data_bytes);

/* A ring in memory of the caller's. */
void ring_of(struct ring *r, struct perf_event_mmap_page *page, void *data, size_t data_bytes);

/* Unmaps, closes and frees. A zeroed ring is fine. */
void ring_unmap(struct ring *r);

/* How far the kernel has written. */
static inline uint64_t ring_head(const struct ring *r)
{
	return __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
}

/*
 * Whether a record of this size has no room now (kernel/events/ring_buffer.c,
 * ring_buffer_has_space: a byte stays free). The kernel reports the loss only with the next record
 * that fits.
 */
static inline bool ring_is_full(const struct ring *r, size_t bytes)
{
	return ring_head(r) - r->page->data_tail + bytes >= r->size;
}

/* Gives everything before tail back to the kernel. */
static inline void ring_release(struct ring *r, uint64_t tail)
{
	r->tail = tail;
	__atomic_store_n(&r->page->data_tail, tail, __ATOMIC_RELEASE);
}

/* Throws away what is in the ring. */
static inline void ring_skip(struct ring *r)
{
	ring_release(r, ring_head(r));
	r->scanned = r->tail;
}

/* Whether the record of `size` bytes at pos goes over the end of the ring's memory. */
static inline bool ring_straddles(const struct ring *r, uint64_t pos, size_t size)
{
	return (pos & (r->size - 1)) + size > r->size;
}

/* Copies n bytes from pos on. */
void ring_copy(const struct ring *r, uint64_t pos, unsigned char *to, size_t n);

#define RING_START 64 /* bytes of a record that ring_start shows */

/* Room for the start of a record that goes over the end. */
struct ring_start {
	_Alignas(8) unsigned char bytes[RING_START];
};

/*
 * The start of the record at pos, in place or copied to *buf. Only the first RING_START bytes are
 * valid; header.size is the size of the whole record. pos is before end. NULL: not a record.
 */
const struct perf_event_header *ring_start(const struct ring *r, uint64_t pos, uint64_t end,
					   struct ring_start *buf);

/*
 * The whole record at pos, in place or copied to r->straddle. A copy is valid until the next one.
 * pos is before end. NULL with *ret_error: -EBADMSG (not a record), -ENOMEM.
 */
const struct perf_event_header *ring_record(struct ring *r, uint64_t pos, uint64_t end,
					    int *ret_error);

#endif
