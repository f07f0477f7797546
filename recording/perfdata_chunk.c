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
	if (!c->bytes || pool->held_bytes > PERFDATA_HELD_BYTES_MAX) {
		perfdata_chunk_free(pool, c);
		return;
	}
	c->next = pool->unused;
	pool->unused = c;
}

void perfdata_chunk_put_filled(struct perfdata_pool *pool, struct perfdata_chunk *c)
{
	if (c && c->refs > 1 && c->can_reread && pool->held_bytes > PERFDATA_HELD_BYTES_MAX) {
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
