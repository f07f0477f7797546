/*
 * Reads the events of a runtime from which profiles are made: allocations, exceptions, waits for
 * locks, pauses of the GC, and compilations. Joins those that begin and end something.
 */
#ifndef PROFCPU_MANAGED_EVENTS_H
#define PROFCPU_MANAGED_EVENTS_H

#include "base/error.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/eventpipe/nettrace.h"
#include "profcpu/managed/kinds.h"

#define MANAGED_NO_LABEL UINT32_MAX
#define MANAGED_NO_GENERATION UINT32_MAX

/* One thing that happened. */
struct managed_event {
	uint64_t time_ns; /* of the trace; its end, if it took time */
	/* Allocations: estimated bytes. Exceptions, and the pool's: 1. Others: nanoseconds. */
	uint64_t weight;
	uint64_t addr;      /* compilations: start of the code; 0: not known */
	uint32_t tid;       /* in the PID namespace of the process */
	uint32_t stack;     /* id in stacks */
	uint32_t collector; /* GC: the thread that stopped the others */
	/*
	 * Id in texts: the type, or the method in the runtime's spelling. Contention: the thread
	 * that holds the lock, 0: not known. GC: struct managed_collection, packed. Causes: the
	 * pool has added a thread, because work items waited. Runtime: enum managed_phase.
	 */
	uint32_t label;
	uint8_t kind; /* enum managed_kind */
};

/* Why and how the runtime collected. */
struct managed_collection {
	uint32_t generation; /* MANAGED_NO_GENERATION: not known */
	uint32_t reason, type;
};

struct managed_collection managed_collection_of(uint32_t label);
/* Words of reasons and types of the runtime. Static. */
const char *managed_collection_reason(uint32_t reason);
const char *managed_collection_type(uint32_t type);

/* Phases of a collection. Source: etw_gc_time_info of dotnet/runtime, and its background GC. */
enum managed_phase {
	MANAGED_PHASE_OTHER,      /* in no known phase: stopping threads, for instance */
	MANAGED_PHASE_BACKGROUND, /* of a background collection, whose phases are not known */
	MANAGED_PHASE_MARK,
	MANAGED_PHASE_PLAN,
	MANAGED_PHASE_RELOCATE,
	MANAGED_PHASE_COMPACT,
	MANAGED_PHASE_SWEEP,
	MANAGED_PHASE_BACKGROUND_MARK,
	MANAGED_PHASE_BACKGROUND_SWEEP,
	MANAGED_PHASES,
};

/* "mark". Static. */
const char *managed_phase_word(enum managed_phase phase);

struct managed_events {
	struct nettrace_trace head;
	/* In the order of time, but for the phases of a collection, which become known at its end.
	 */
	VEC(struct managed_event) v;
	struct intern stacks; /* addresses of head.pointer_bytes each, innermost first */
	struct intern texts;
	uint64_t last_ns;        /* time of the last event of any kind; 0: none */
	uint64_t seen;           /* events of any kind */
	uint64_t lost, left_out; /* dropped by the runtime; left out because memory is short */
	/* By kind: an end without a begin, or a begin without an end. */
	uint64_t unpaired[MANAGED_KINDS];
	bool exact_samples; /* allocations are AllocationSampled, not AllocationTick */
	bool is_cut;        /* the end of the trace is missing */
};

/*
 * Reads from fd to the end. wanted: bits of enum managed_kind. max_bytes: of the events, their
 * stacks and texts.
 *
 * 0; -EBADMSG, -E2BIG: damaged, *err says how. The events before the damage are there. -ENOMEM;
 * -errno of read. The caller frees *ret_events in any case.
 */
int managed_events_read(int fd, unsigned wanted, uint64_t max_bytes,
			struct managed_events *ret_events, struct parse_error *err);
void managed_events_free(struct managed_events *e);

#endif
