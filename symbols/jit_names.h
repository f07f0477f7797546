/*
 * One provider of the names of a process's JIT-compiled code out of all that is known of it: what was captured while it ran
 * (symbols/jit_methods_file.h), its jitdump, its perf map.
 *
 * Who has time answers for the time that is asked for, in this order: jitdump, runtime events, runtime memory, lines of a
 * perf map as they were seen to come; then the perf map as it is now, which has no time. A jitdump that stopped early, or has a clock of
 * its own, comes last: what it says may have been freed since. It has stopped early where it ends within a record, or where code that
 * another source saw made after its last record is not in it.
 *
 * A name is completed: where another source has the same body (same start) under a name that is equal but for type arguments and
 * tier, the one that says more is taken. Where two sources name an address at one time differently, that is a contradiction, counted
 * for each function that is asked for, as are answers in doubt (symbols/jit_methods.h).
 */
#ifndef SYMBOLS_JIT_NAMES_H
#define SYMBOLS_JIT_NAMES_H

#include "symbols/jit_methods.h"
#include "symbols/jitdump.h"
#include "symbols/symbol.h"

#include <stdbool.h>
#include <stdint.h>

/* Taken by jit_names_new; each may be NULL. */
struct jit_names_sources {
	struct jit_methods *methods; /* finished; with jitdump, of the jitdump too */
	struct jitdump *jitdump;
	struct jitdump_stats jitdump_stats;
	struct symbol_provider *perfmap;
	bool untimed; /* times that are asked for are of another clock: what held last is the answer at all times */
};

struct jit_names_stats {
	uint64_t answers; /* distinct ones */
	uint64_t contradictions; /* answers of sources with time that another such source contradicts */
	uint64_t perfmap_contradictions; /* of them or others, those that only the perf map of now contradicts: it forgets */
	uint64_t doubts; /* answers in whose time code was replaced, nobody knows when */
	uint64_t completed; /* names that another source completed */
	bool jitdump_early; /* the jitdump stopped early */
};

/*
 * 0 or -ENOMEM; sources are taken in both cases. *ret_names NULL: there is no source. A perf map alone is given back as it is.
 * Answers are timed, start and end are those of the method that gave it: within them other sources may complete the name
 * otherwise.
 */
int jit_names_new(const struct jit_names_sources *sources, struct symbol_provider **ret_names);

/* What was found out so far; all 0 for a perf map alone. */
struct jit_names_stats jit_names_stats(const struct symbol_provider *names);

/* The line of an address at a time, where a jitdump has lines and gives the answer there. 0, -ENOENT. */
int jit_names_line(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns, struct jitdump_line *ret_line);

/* Where an address at a time comes from in the IL of its method, by what was captured. 0, -ENOENT. */
int jit_names_il(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns, struct jit_il_place *ret_place);

/* Whether there is anything that either of them could give. *ret_il (may be NULL): the maps to IL, borrowed; NULL where there are none. */
bool jit_names_has_lines(const struct symbol_provider *names, const struct jit_il **ret_il);

/* Whether two raw names can be of one method: equal but for tiers and type arguments, or equal in the full form but for
 * these. Two stubs always can. */
bool jit_names_agree(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
