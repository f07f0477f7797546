/* The kinds of event profiles: what they are made of, and how they are shown. */
#ifndef PROFCPU_MANAGED_KINDS_H
#define PROFCPU_MANAGED_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum managed_kind {
	MANAGED_ALLOC,
	MANAGED_EXCEPTIONS,
	MANAGED_CONTENTION,
	MANAGED_GC,
	MANAGED_JIT,
	MANAGED_CAUSES,  /* made from waits; the events of CONTENTION, GC and JIT explain them */
	MANAGED_RUNTIME, /* made from CPU samples; the events of GC and JIT explain them */
	MANAGED_KINDS,
};

/* Events of the runtime, by their number. Source: ClrEtwAll.man of dotnet/runtime. */
enum managed_event_id {
	MANAGED_ID_GC_START = 1,
	MANAGED_ID_GC_END = 2,
	MANAGED_ID_RESTART_END = 3,
	MANAGED_ID_SUSPEND_BEGIN = 9,
	MANAGED_ID_ALLOCATION_TICK = 10,
	MANAGED_ID_GC_TRIGGERED = 35,
	MANAGED_ID_POOL_ADJUSTED = 55,
	MANAGED_ID_EXCEPTION_THROWN = 80,
	MANAGED_ID_CONTENTION_START = 81,
	MANAGED_ID_CONTENTION_STOP = 91,
	MANAGED_ID_METHOD_LOAD = 143,
	MANAGED_ID_JITTING_STARTED = 145,
	MANAGED_ID_GC_HISTORY = 205,
	MANAGED_ID_ALLOCATION_SAMPLED = 303,
	MANAGED_ID_PRIVATE = 0x8000, /* bit: of the provider for the runtime's own developers */
	MANAGED_ID_BACKGROUND_BEGIN = MANAGED_ID_PRIVATE + 11,
	MANAGED_ID_BACKGROUND_SWEEP = MANAGED_ID_PRIVATE + 16,
	MANAGED_ID_BACKGROUND_END = MANAGED_ID_PRIVATE + 17,
};

#define MANAGED_IDS_MAX 10 /* events of one kind */

struct managed_kind_info {
	const char *name;      /* of its option, its event in the profile, and its files */
	const char *title;     /* of its picture */
	const char *countname; /* what its weights count; NULL: they are nanoseconds */
	const char *word;      /* starts its lines of the report */
	/* The needs of a session: keywords and level of the runtime's provider. */
	uint64_t keywords;
	uint32_t level;
	/* The same for runtimes that ignore the list of events, if it is to be less. */
	uint64_t all_keywords;
	uint32_t all_level;
	/* The events that are used, for runtimes that send only these (.NET 10). 0: the end. */
	uint32_t ids[MANAGED_IDS_MAX + 1];
};

/* The events of PROVIDER_PRIVATE that MANAGED_CAUSES needs. */
#define MANAGED_PRIVATE_IDS 3
extern const uint32_t managed_private_ids[MANAGED_PRIVATE_IDS];

const struct managed_kind_info *managed_kind_info(enum managed_kind kind);

/* Keyword of the thread pool. At level 5 it has an event for each work item. */
#define MANAGED_KEYWORD_POOL UINT64_C(0x10000)

/* Bits of the kinds whose events are read for these. */
unsigned managed_kinds_read(unsigned wanted);

/* Bits of enum managed_kind from words between commas, as the manifest has them. NULL: none. */
unsigned managed_kinds_of(const char *words);

/* Whether one of the words between commas is this one. */
bool managed_words_have(const char *words, const char *word);

#endif
