/*
 * Divides an amount, such as memory, among takers that do not know of one another. One taker gets
 * at most as much as it leaves to all others. Takers of up to SHARE_SMALL draw on a reserve of the
 * same size, so that greedy ones leave something to the others. For one thread.
 */
#ifndef BASE_SHARE_H
#define BASE_SHARE_H

#include <stdint.h>

#define SHARE_SMALL ((uint64_t)4 << 20)

struct share_total {
	uint64_t limit, taken; /* limit: at most UINT64_MAX / 4; taken: up to twice the limit */
};

/* The part of one taker. */
struct share {
	struct share_total *of; /* borrowed; NULL: no limit */
	uint64_t taken;
};

/*
 * Changes what a taker has taken for one thing from *counted to amount, and *counted with it. s may
 * be NULL: no limit. Returns 0, or -E2BIG and changes nothing.
 */
int share_count(struct share *s, uint64_t *counted, uint64_t amount);

/* Gives back what was taken for one thing. */
void share_release(struct share *s, uint64_t *counted);

#endif
