/*
 * Divides an amount, such as memory, among numbered takers that come one after another, such as
 * processes. The first may take half of the limit. Each next one may take less, by the square of
 * the part that the others leave. So n takers that take all they may leave at least 1 / (n + 2)^2
 * of the limit to the next one. A reserve of fixed parts, as in base/share.h, would serve only few
 * takers that take all they may. fair_share_most is the rule; struct fair_share counts, for one
 * thread.
 */
#ifndef BASE_FAIR_SHARE_H
#define BASE_FAIR_SHARE_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <stdint.h>

/* A zeroed struct has no limit. */
struct fair_share {
	uint64_t limit; /* of all; 0: no limit */
	uint64_t taken;
	struct hashmap ids; /* taker -> index into takers */
	VEC(uint64_t) takers;
	int32_t last;        /* the taker that was looked up last */
	uint32_t last_place; /* index of the last one, plus 1; 0: it has taken nothing */
};

/* Returns how much one taker may take of a limit, if all others have taken so much. */
uint64_t fair_share_most(uint64_t others, uint64_t limit);

/* Returns how much more a taker may take now. */
uint64_t fair_share_room(struct fair_share *s, int32_t taker);

/*
 * Counts what a taker has taken. It may exceed the room. The first eighth of the limit, and all if
 * memory is short, counts for no taker but leaves less to all.
 */
void fair_share_take(struct fair_share *s, int32_t taker, uint64_t amount);

void fair_share_free(struct fair_share *s);

#endif
