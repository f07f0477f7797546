/*
 * A set of process ids with one bit each, so that the lookup for each record costs one memory
 * access.
 */
#ifndef BASE_PIDSET_H
#define BASE_PIDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PIDSET_MAX (1 << 22) /* the kernel's PID_MAX_LIMIT on 64-bit machines */

struct pidset {
	/* Address space for all ids; the kernel allocates only pages with bits set. */
	uint64_t *words;
	size_t len; /* bits set */
};

/* Makes an empty set. 0 or -ENOMEM. */
int pidset_new(struct pidset *ret_set);
void pidset_free(struct pidset *set); /* accepts a zeroed set */

static inline bool pidset_has(const struct pidset *set, pid_t pid)
{
	return (uint32_t)pid < PIDSET_MAX &&
	       (set->words[(uint32_t)pid / 64] >> ((uint32_t)pid & 63) & 1);
}

/* Both return whether the set changed; it never does for ids outside 0 to PIDSET_MAX - 1. */
bool pidset_add(struct pidset *set, pid_t pid);
bool pidset_remove(struct pidset *set, pid_t pid);

#endif
