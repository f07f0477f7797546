/*
 * Which offsets in IL the places in the code of methods come from, in the order of the places: what is kept of a method is taken apart
 * when it is asked for first, so that its size counts once and not for each address.
 */
#ifndef SYMBOLS_IL_POINTS_H
#define SYMBOLS_IL_POINTS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/pdb_room.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IL_POINTS_MAX (4u << 20) /* that are looked at, of all methods; a method behind that has none */

/* What runtimes have where a place comes from no IL, is before the first of it or behind the last. */
#define IL_POINTS_NONE ((uint32_t)-1)
#define IL_POINTS_PROLOG ((uint32_t)-2)
#define IL_POINTS_EPILOG ((uint32_t)-3)

struct il_point {
	uint32_t native, il;
};

/* Some of the points. */
struct il_points_method {
	size_t first, n;
};

/* Begins with {room}, borrowed; NULL: without a limit of bytes. */
struct il_points {
	struct pdb_room *room;
	uint64_t taken; /* of it */
	VEC(struct il_point) points;
	VEC(struct il_points_method) methods;
	struct hashmap by_key; /* index into methods */
	uint32_t looked; /* at so many */
	int error; /* of the method that is read */
};

void il_points_free(struct il_points *p);

/* Puts all points of a method by il_points_add. 0; -errno: it has none, but for -ENOMEM. */
typedef int il_points_read_fn(void *ctx, uint32_t key, struct il_points *p);

/* A place that is not behind the one before ends them. il: or a mark; a prolog is 0, and code of no IL belongs to what is before it.
 * False: enough. */
bool il_points_add(struct il_points *p, uint32_t native, uint32_t il);

/* The offset in IL of a place in the method with that key. 0; -ENOENT: of none; -ENOMEM. */
int il_points_find(struct il_points *p, uint32_t key, uint32_t native, il_points_read_fn *read, void *ctx, uint32_t *ret_il);

#endif
