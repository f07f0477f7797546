/*
 * Families of processes: a process and all that it forked since. They share the memory of their
 * maps, so a limit of a tracker counts what each family takes. One that takes much leaves room to
 * others, by the rule of base/fair_share.
 */
#ifndef SYMBOLS_CORE_FAMILIES_H
#define SYMBOLS_CORE_FAMILIES_H

#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

/* The parts of one family in the limits. */
struct family {
	uint32_t refs;        /* address spaces and images; 0: unused */
	uint32_t next;        /* the next unused one */
	uint64_t nodes;       /* of trees of maps */
	uint64_t image_bytes; /* of images that it mapped first */
	uint64_t dropped;     /* its maps that were dropped */
	uint32_t ended_next;  /* the next ended thread that may make room for it */
};

/* A zeroed struct is empty. */
struct families {
	VEC(struct family) v; /* family 0 means none */
	uint32_t unused;
	uint64_t dropped, most_dropped; /* maps of all families; of the one with the most */
	int32_t most_pid;               /* its process that lost the latest; 0: none */
};

void families_free(struct families *f);

/* Makes a family, with one reference. Returns 0 or -ENOMEM. */
int families_new(struct families *f, uint32_t *ret_family);
void families_enter(struct families *f, uint32_t family);
void families_leave(struct families *f, uint32_t family);

/* Counts a dropped map. */
void families_drop_map(struct families *f, uint32_t family, int32_t pid);

/* Whether a family with `mine` may take more, when all, it included, have taken `all`. */
bool family_has_room(uint64_t mine, uint64_t all, uint64_t limit);

#endif
