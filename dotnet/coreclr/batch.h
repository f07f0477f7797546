/*
 * Collects reads of a process's memory and does them together: one system call for about a thousand
 * reads.
 */
#ifndef DOTNET_CORECLR_BATCH_H
#define DOTNET_CORECLR_BATCH_H

#include "base/vec.h"
#include "dotnet/coreclr/io.h"

#include <string.h>

/* An empty batch: zero all but io. */
struct clr_batch {
	const struct clr_io *io;
	VEC(struct memory_piece) pieces;
};

/*
 * Adds a read; clr_batch_run fills buf. Reads are numbered from 0 in order of adding. 0 or -ENOMEM.
 */
static inline int clr_batch_add(struct clr_batch *b, uint64_t addr, void *buf, uint32_t len)
{
	return vec_push(&b->pieces, ((struct memory_piece){.addr = addr, .buf = buf, .len = len}));
}

static inline int clr_batch_run(struct clr_batch *b)
{
	return b->pieces.len ? b->io->read_pieces(b->io->ctx, b->pieces.v, b->pieces.len) : 0;
}

static inline bool clr_batch_ok(const struct clr_batch *b, size_t i)
{
	return b->pieces.v[i].ok;
}

/* Removes all reads; keeps the allocated memory. */
static inline void clr_batch_clear(struct clr_batch *b)
{
	b->pieces.len = 0;
}

static inline void clr_batch_free(struct clr_batch *b)
{
	vec_free(&b->pieces);
}

/* Little-endian values at an offset in data read. */
static inline uint64_t clr_u64(const void *p, size_t at)
{
	uint64_t x;

	memcpy(&x, (const char *)p + at, sizeof(x));
	return x;
}

static inline uint32_t clr_u32(const void *p, size_t at)
{
	uint32_t x;

	memcpy(&x, (const char *)p + at, sizeof(x));
	return x;
}

static inline uint16_t clr_u16(const void *p, size_t at)
{
	uint16_t x;

	memcpy(&x, (const char *)p + at, sizeof(x));
	return x;
}

#endif
