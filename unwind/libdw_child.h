/*
 * Walks stacks by libdw (libdw_walk.h) in a child process. libdw was not written for hostile files:
 * a damaged one can crash it, keep it busy, or make it take memory. The child has limits for all,
 * and if it ends, another one is started. It executes no other program, and ends with the thread
 * that started it. One thread uses this.
 */
#ifndef UNWIND_LIBDW_CHILD_H
#define UNWIND_LIBDW_CHILD_H

#include "unwind/libdw_image.h"
#include "unwind/libdw_walk.h"

#define LIBDW_CHILD_CPU_S 4      /* of one walk, rounded up */
#define LIBDW_CHILD_EARLY_MS 500 /* CPU time of one walk that must end early */
#define LIBDW_CHILD_MS_MAX 20000 /* of one walk, if the machine is busy */
/* Memory beyond that of this process: the smaller of these bytes, and this part of what is left. */
#define LIBDW_CHILD_BYTES ((size_t)1 << 30)
#define LIBDW_CHILD_PART 4

/* The mapped code at an address. */
struct libdw_child_code {
	uint64_t start, end;             /* of the mapping */
	uint64_t file_off;               /* of its start */
	uint32_t number;                 /* of the image */
	const struct libdw_image *image; /* borrowed; NULL: no CFI */
};

/* Returns 0; -ENOENT: no code there; -ENOMEM. */
typedef int libdw_child_find_fn(void *ctx, uint64_t addr, struct libdw_child_code *ret_code);

struct libdw_child;

/* Starts nothing yet. Returns 0 or -ENOMEM. */
int libdw_child_new(libdw_child_find_fn *find_code, void *ctx, struct libdw_child **ret_child);
void libdw_child_free(struct libdw_child *c);

/* Makes it forget all images and their numbers. */
void libdw_child_forget(struct libdw_child *c);

/*
 * Walks a stack as libdw_walk_stack does. A child that has made other walks may fail because of
 * them. So a failed walk is repeated once in a new child, except for one that took its time.
 * *ret_failed: that one also failed, by the rules of the image ret_cost->slowest; LIBDW_NO_IMAGE:
 * not by an image. Then *walk has only the sampled frame, with the end WALK_DAMAGED. Returns 0 or
 * -ENOMEM.
 */
int libdw_child_walk(struct libdw_child *c, const struct libdw_sample *sample, struct walk *walk,
		     struct libdw_cost *ret_cost, bool *ret_failed);

/* Whether this build has libdw. Without it each stack has only its sampled frame, WALK_NO_RULE. */
bool libdw_child_works(void);

#endif
