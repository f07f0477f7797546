/* Pieces of the file in memory, within a limit. */
#include "base/bigmem.h"
#include "recording/perfdata_impl.h"

#include <stdlib.h>

int perfdata_chunk_get(struct perfdata_pool *pool, struct perfdata_chunk **ret_chunk)
{
	struct perfdata_chunk *c = pool->unused;

	if (c) {
		pool->unused = c->next;
	} else {
		c = malloc(sizeof(*c));
		if (!c)
			return -ENOMEM;
		c->cap = pool->chunk_bytes;
		c->bytes = bigmem_alloc(c->cap, 1);
		if (!c->bytes) {
			free(c);
			return -ENOMEM;
		}
		pool->held_bytes += c->cap;
	}
	c->len = 0;
	c->refs = 1;
	c->file_off = 0;
	c->can_reread = false;
	*ret_chunk = c;
	return 0;
}

void perfdata_limit_memory(struct perfdata *d, uint64_t bytes)
{
	uint64_t part = bytes / 4, entry = 2 * sizeof(*d->queue.entries.v);
	int window_log = PERFDATA_WINDOW_LOG_LEAST;

	/* The queue has a second array for merging, and a round may take four chunks more. */
	d->pool.held_max = part < PERFDATA_HELD_BYTES_MAX ? (size_t)part : PERFDATA_HELD_BYTES_MAX;
	d->queue.max =
		part / entry < PERFDATA_QUEUE_MAX ? (size_t)(part / entry) + 2 : PERFDATA_QUEUE_MAX;
	while ((UINT64_C(2) << window_log) <= part)
		window_log++;
	if (window_log < PERFDATA_WINDOW_LOG_MOST)
		d->in.unzip.window_log = window_log;
}

static void perfdata_chunk_free(struct perfdata_pool *pool, struct perfdata_chunk *c)
{
	if (c->bytes)
		pool->held_bytes -= c->cap;
	free(c->bytes);
	free(c);
}

void perfdata_chunk_put(struct perfdata_pool *pool, struct perfdata_chunk *c)
{
	if (!c || --c->refs)
		return;
	if (!c->bytes || pool->held_bytes > pool->held_max) {
		perfdata_chunk_free(pool, c);
		return;
	}
	c->next = pool->unused;
	pool->unused = c;
}

void perfdata_chunk_put_filled(struct perfdata_pool *pool, struct perfdata_chunk *c)
{
	if (c && c->refs > 1 && c->can_reread && pool->held_bytes > pool->held_max) {
		free(c->bytes);
		c->bytes = NULL;
		pool->held_bytes -= c->cap;
	}
	perfdata_chunk_put(pool, c);
}

void perfdata_pool_free(struct perfdata_pool *pool)
{
	while (pool->unused) {
		struct perfdata_chunk *c = pool->unused;

		pool->unused = c->next;
		perfdata_chunk_free(pool, c);
	}
}
