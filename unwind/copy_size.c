#include "unwind/copy_size.h"

static bool set_bytes(struct copy_size *c, uint32_t bytes)
{
	bool changed;

	bytes &= ~7u;
	bytes = bytes < COPY_SIZE_MIN   ? COPY_SIZE_MIN
		: bytes > COPY_SIZE_MAX ? COPY_SIZE_MAX
					: bytes;
	changed = bytes != c->bytes;
	c->bytes = bytes;
	c->quiet = 0;
	return changed;
}

static bool decide(struct copy_size *c)
{
	if (c->edges * 100 > COPY_SIZE_SAMPLES * COPY_SIZE_EDGES)
		return set_bytes(c, c->bytes * 2);
	/* A stack that was deep once will be deep again. */
	if (c->deep || c->bytes <= COPY_SIZE_MIN) {
		c->quiet = 0;
		return false;
	}
	if (++c->quiet < COPY_SIZE_QUIET)
		return false;
	return set_bytes(c, c->bytes / 2);
}

bool copy_size_note(struct copy_size *c, uint32_t reached, bool edge)
{
	bool changed;

	c->samples++;
	c->edges += edge;
	c->deep += edge || reached > c->bytes / 2;
	if (c->fixed || (c->samples < COPY_SIZE_SAMPLES &&
			 c->edges * 100 <= COPY_SIZE_SAMPLES * COPY_SIZE_EDGES))
		return false;
	changed = decide(c);
	c->samples = c->edges = c->deep = 0;
	return changed;
}
