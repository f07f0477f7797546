/* The counters that a user wants: the option --counters, as dotnet-counters takes it. */
#ifndef PROFCPU_COUNTERS_COUNTER_LIST_H
#define PROFCPU_COUNTERS_COUNTER_LIST_H

#include "base/arena.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_LIST_WHY_BYTES 256

struct counter_name {
	const char *name;
	bool seen; /* it had a value */
};

/* Counters of one EventSource or Meter, or of both if they have the same name. */
struct counter_group {
	const char *provider;
	bool events_only;               /* EventCounters, even if a meter has the same name */
	VEC(struct counter_name) names; /* empty: all */
	bool seen;                      /* one of them had a value */
	/* Kept by counter_stream. */
	bool has_meter;    /* an instrument was reported, so EventCounters do not count */
	uint64_t first_ns; /* of its first EventCounter; 0: none yet */
};

/* A zeroed struct is empty. */
struct counter_list {
	VEC(struct counter_group) v;
	struct arena text;
	char why[COUNTER_LIST_WHY_BYTES]; /* after an error: what is wrong */
};

void counter_list_free(struct counter_list *l);

/*
 * Adds "PROVIDER[NAME,NAME],PROVIDER": without names all counters of a provider, and only
 * EventCounters if EventCounters\ stands before it. Those of one provider are merged. Providers do
 * not depend on upper and lower case, names of counters do. 0; -EINVAL; -ENOMEM.
 */
int counter_list_add(struct counter_list *l, const char *text);

/* Returns the group that a counter belongs to, or NULL. */
struct counter_group *counter_list_find(const struct counter_list *l, const char *provider,
					const char *name);

/* Notes that a counter of the group had a value. */
void counter_group_mark(struct counter_group *g, const char *name);

#endif
