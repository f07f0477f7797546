/* A set of process ids: one bit each, so that asking costs one memory access for each record. */
#ifndef SAMPLER_PIDSET_H
#define SAMPLER_PIDSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PIDSET_MAX (1 << 22) /* the kernel's PID_MAX_LIMIT on 64 bits */

struct pidset {
	uint64_t *words; /* address space for all; the kernel gives pages where a bit is set */
	size_t len;      /* bits set */
};

int pidset_new(struct pidset *ret_set); /* 0 or -ENOMEM */
void pidset_free(struct pidset *set);   /* a zeroed set is fine */

static inline bool pidset_has(const struct pidset *set, pid_t pid)
{
	return (uint32_t)pid < PIDSET_MAX &&
	       (set->words[(uint32_t)pid / 64] >> ((uint32_t)pid & 63) & 1);
}

/* Both say whether the set changed; ids outside of 0 to PIDSET_MAX - 1 never do. */
bool pidset_add(struct pidset *set, pid_t pid);
bool pidset_remove(struct pidset *set, pid_t pid);

#endif
