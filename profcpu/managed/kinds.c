#include "profcpu/managed/kinds.h"

#include <string.h>

/* Keywords of the runtime's provider. */
#define KINDS_GC UINT64_C(0x1)
#define KINDS_JIT UINT64_C(0x10)
#define KINDS_CONTENTION UINT64_C(0x4000)
#define KINDS_EXCEPTION UINT64_C(0x8000)
#define KINDS_ALLOCATION_SAMPLING UINT64_C(0x80000000000)

/*
 * Allocations: .NET 10 has AllocationSampled and sends only the listed events, so it makes no
 * AllocationTick, the event of older runtimes. These ignore the list.
 */
static const struct managed_kind_info kinds[MANAGED_KINDS] = {
	[MANAGED_ALLOC] = {.name = "alloc",
			   .title = "Allocations",
			   .countname = "bytes",
			   .word = "alloc",
			   .keywords = KINDS_ALLOCATION_SAMPLING,
			   .level = 4,
			   .all_keywords = KINDS_GC,
			   .all_level = 5,
			   .ids = {MANAGED_ID_ALLOCATION_SAMPLED}},
	[MANAGED_EXCEPTIONS] = {.name = "exceptions",
				.title = "Exceptions",
				.countname = "exceptions",
				.word = "exception",
				.keywords = KINDS_EXCEPTION,
				.level = 4,
				.ids = {MANAGED_ID_EXCEPTION_THROWN}},
	[MANAGED_CONTENTION] = {.name = "contention",
				.title = "Lock contention",
				.word = "locks",
				.keywords = KINDS_CONTENTION,
				.level = 4,
				.ids = {MANAGED_ID_CONTENTION_START, MANAGED_ID_CONTENTION_STOP}},
	[MANAGED_GC] = {.name = "gc",
			.title = "GC pauses",
			.word = "gc",
			.keywords = KINDS_GC,
			.level = 4,
			.ids = {MANAGED_ID_GC_START, MANAGED_ID_GC_END, MANAGED_ID_RESTART_END,
				MANAGED_ID_SUSPEND_BEGIN, MANAGED_ID_GC_TRIGGERED}},
	[MANAGED_JIT] = {.name = "jit",
			 .title = "JIT compilation",
			 .word = "jit",
			 .keywords = KINDS_JIT,
			 .level = 5,
			 .ids = {MANAGED_ID_METHOD_LOAD, MANAGED_ID_JITTING_STARTED}},
	[MANAGED_CAUSES] = {.name = "causes",
			    .title = "Waits by cause",
			    .word = "waits",
			    .keywords =
				    KINDS_GC | KINDS_JIT | KINDS_CONTENTION | MANAGED_KEYWORD_POOL,
			    .level = 5,
			    .all_keywords = KINDS_GC | KINDS_CONTENTION | MANAGED_KEYWORD_POOL,
			    .all_level = 4,
			    .ids = {MANAGED_ID_GC_START, MANAGED_ID_GC_END, MANAGED_ID_RESTART_END,
				    MANAGED_ID_SUSPEND_BEGIN, MANAGED_ID_CONTENTION_START,
				    MANAGED_ID_CONTENTION_STOP, MANAGED_ID_METHOD_LOAD,
				    MANAGED_ID_JITTING_STARTED, MANAGED_ID_POOL_ADJUSTED,
				    MANAGED_ID_GC_HISTORY}},
	/* Comes with the causes, which ask for its events. */
	[MANAGED_RUNTIME] = {.name = "runtime",
			     .title = "CPU of the runtime: JIT and GC",
			     .word = "runtime"},
};

const uint32_t managed_private_ids[MANAGED_PRIVATE_IDS] = {
	MANAGED_ID_BACKGROUND_BEGIN & ~MANAGED_ID_PRIVATE,
	MANAGED_ID_BACKGROUND_SWEEP & ~MANAGED_ID_PRIVATE,
	MANAGED_ID_BACKGROUND_END & ~MANAGED_ID_PRIVATE};

unsigned managed_kinds_read(unsigned wanted)
{
	return wanted & 1u << MANAGED_CAUSES
		       ? wanted | 1u << MANAGED_CONTENTION | 1u << MANAGED_GC | 1u << MANAGED_JIT |
				 1u << MANAGED_RUNTIME
		       : wanted;
}

const struct managed_kind_info *managed_kind_info(enum managed_kind kind)
{
	return &kinds[kind];
}

bool managed_words_have(const char *words, const char *word)
{
	size_t len = strlen(word);

	while (words && *words) {
		size_t n = strcspn(words, ",");

		if (n == len && !memcmp(words, word, n))
			return true;
		words += n + (words[n] == ',');
	}
	return false;
}

unsigned managed_kinds_of(const char *words)
{
	unsigned wanted = 0;

	for (unsigned k = 0; k < MANAGED_KINDS; k++)
		if (k != MANAGED_RUNTIME && managed_words_have(words, kinds[k].name))
			wanted |= 1u << k;
	return wanted & 1u << MANAGED_CAUSES ? wanted | 1u << MANAGED_RUNTIME : wanted;
}
