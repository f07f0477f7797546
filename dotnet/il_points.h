/*
 * Maps offsets in a method's machine code to offsets in its IL. Reads the points of a method on the
 * first lookup and keeps them, so the limits count each method once.
 */
#ifndef DOTNET_IL_POINTS_H
#define DOTNET_IL_POINTS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/pdb_budget.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Points read for all methods. Methods beyond the limit have none. */
#define IL_POINTS_MAX (4u << 20)

/* Points written for one method; more are omitted. */
#define IL_POINTS_METHOD_MAX ((size_t)1 << 16)

/*
 * Marks of the runtime in place of an IL offset: code without IL, before the first IL instruction,
 * and after the last.
 */
#define IL_POINTS_NONE ((uint32_t)-1)
#define IL_POINTS_PROLOG ((uint32_t)-2)
#define IL_POINTS_EPILOG ((uint32_t)-3)

struct il_point {
	uint32_t native; /* offset from the start of the code */
	uint32_t il;     /* offset, or one of the marks above */
};

/* The points of one method: a range of il_points.points. */
struct il_points_method {
	size_t first, n;
};

/* Initialise with {budget}, which is borrowed; NULL: no limit in bytes. */
struct il_points {
	struct pdb_budget *budget;
	uint64_t taken; /* bytes taken from the budget */
	VEC(struct il_point) points;
	VEC(struct il_points_method) methods;
	struct hashmap by_key; /* index into methods */
	uint32_t nread;        /* points read so far */
	int error;             /* error of the method being read */
};

void il_points_free(struct il_points *p);

/*
 * Adds all points of a method by il_points_add. 0; -ENOMEM; another -errno: the method has no
 * points.
 */
typedef int il_points_read_fn(void *ctx, uint32_t key, struct il_points *p);

/*
 * Adds a point. il: an offset or a mark. A prolog counts as IL offset 0; code without IL belongs to
 * the point before it. False: stop, because the limit is reached or native is not in ascending
 * order.
 */
bool il_points_add(struct il_points *p, uint32_t native, uint32_t il);

/*
 * Finds the IL offset for an offset in the code of the method with that key. 0; -ENOENT: no IL;
 * -ENOMEM.
 */
int il_points_find(struct il_points *p, uint32_t key, uint32_t native, il_points_read_fn *read,
		   void *ctx, uint32_t *ret_il);

#endif
