/* Shared by the parts of events: reading (events.c), and joining begins and ends (events_pair.c).
 */
#ifndef PROFCPU_MANAGED_EVENTS_IMPL_H
#define PROFCPU_MANAGED_EVENTS_IMPL_H

#include "profcpu/managed/events.h"

/* An event as it was read, in the order of the trace. */
struct managed_raw {
	struct managed_event event;
	/*
	 * Shared by a begin and its end: the method; GC: number of the collection. Histories of
	 * collections: index.
	 */
	uint64_t key;
	uint32_t order;
	uint16_t id; /* enum managed_event_id */
};

/* How long the phases of a collection took, in microseconds: MANAGED_HISTORY_* of them. */
#define MANAGED_HISTORY_MARKS 5
#define MANAGED_HISTORY_SWEEPING 7   /* marks, plan, sweep */
#define MANAGED_HISTORY_COMPACTING 8 /* marks, plan, relocate, compact */

struct managed_history {
	uint32_t n, us[MANAGED_HISTORY_COMPACTING];
};

struct managed_raws {
	VEC(struct managed_raw) v;
	VEC(struct managed_history) histories;
};

uint32_t managed_collection_label(struct managed_collection c);

/*
 * events_pair.c: sorts the raw events by time, and adds to e->v what they tell. 0; -ENOMEM.
 */
int managed_events_pair(struct managed_events *e, struct managed_raws *raws);

#endif
