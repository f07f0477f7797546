/*
 * One provider of names for a process's JIT-compiled code, made of all its sources: captured
 * methods (symbols/jit/methods_file.h), jitdump and perf map.
 *
 * Sources with times come first, in this order: jitdump, runtime events, runtime memory, captured
 * lines of a perf map. The perf map as it is now has no times and comes after them. A jitdump that
 * stopped early, or has a clock of its own, comes last: its code may have been freed since. A
 * jitdump stopped early if it ends within a record, or lacks code that another source saw made
 * after its last record.
 *
 * A source with the same body (same start) can complete a name. If the two names differ only in
 * type arguments and tier, the longer one is used. Two sources contradict each other if they name
 * an address at one time differently. Contradictions are counted for each function that is looked
 * up, as are results in doubt (symbols/jit/methods.h).
 */
#ifndef SYMBOLS_JIT_NAMES_H
#define SYMBOLS_JIT_NAMES_H

#include "symbols/core/symbol.h"
#include "symbols/jit/jitdump.h"
#include "symbols/jit/methods.h"

#include <stdbool.h>
#include <stdint.h>

/* Owned by jit_names_new from the call on; each may be NULL. */
struct jit_names_sources {
	struct jit_methods *methods; /* finished; includes the methods of the jitdump */
	struct jitdump *jitdump;
	struct jitdump_stats jitdump_stats;
	struct symbol_provider *perfmap;
	bool open;    /* the process may still add names, so a jitdump may end within a record */
	bool untimed; /* Lookups use another clock, so each gets the code that was there last. */
};

struct jit_names_stats {
	uint64_t results;        /* distinct results */
	uint64_t contradictions; /* results that another source with times contradicts */
	/* results that only the current perf map contradicts, which forgets older code */
	uint64_t perfmap_contradictions;
	uint64_t doubts;    /* results in whose time code was replaced at an unknown moment */
	uint64_t completed; /* names that another source completed */
	bool jitdump_early; /* the jitdump stopped early */
};

/*
 * Makes the provider, and takes sources even on failure. *ret_names NULL: there is no source. A
 * perf map alone is returned as it is. Results are timed. Their start and end are those of the
 * method that gave the name, although other sources may complete it differently within them.
 * Returns 0 or -ENOMEM.
 */
int jit_names_new(const struct jit_names_sources *sources, struct symbol_provider **ret_names);

/* Counts so far; all 0 for a perf map alone. */
struct jit_names_stats jit_names_stats(const struct symbol_provider *names);

/*
 * Gets the line of an address at a time, if a jitdump has lines and names the address then. Returns
 * 0, -ENOENT.
 */
int jit_names_line(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns,
		   struct jitdump_line *ret_line);

/* Gets the place in IL of an address at a time, from captured maps. Returns 0, -ENOENT. */
int jit_names_il(const struct symbol_provider *names, uint64_t addr, uint64_t time_ns,
		 struct jit_il_place *ret_place);

/*
 * Whether jit_names_line or jit_names_il can find anything. *ret_il (may be NULL): the maps to IL,
 * borrowed; NULL: there are none.
 */
bool jit_names_has_lines(const struct symbol_provider *names, const struct jit_il **ret_il);

/*
 * Whether two raw names can belong to one method: they are equal without tiers and type arguments,
 * raw or in the full form. Two stubs always agree.
 */
bool jit_names_agree(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
