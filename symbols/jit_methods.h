/*
 * The code that the runtimes of one process made while it ran: what was where, and when. Each source (the runtime's memory,
 * its events, a jitdump, a perf map) is a layer of its own; symbols/jit_names.h makes one provider of all of them,
 * symbols/jit_methods_file.h keeps them in a recording.
 *
 * Within a layer code that came later ends what it overlaps, whole: the memory was free, or it could not have been given
 * away. Of two methods that overlap in space the later one is that which was surely there later (sure_ns), of equal ones
 * that which was added later.
 *
 *	   seen by a look at T0           seen by a look at T
 *	old  ------------|......................|
 *	new              |......................|-------------
 *	                 from_ns             sure_ns
 *
 * A look at what there is finds code that was not there at the look before (T0): it may be used from T0 on (from_ns) and surely
 * is there at T (sure_ns). Between the two the older one holds, which was seen there; in this time the answer is in doubt, and
 * is counted where it is asked for (struct jit_method, doubt_ns). From sure_ns on the newer one holds. Where nothing else was
 * there, samples between T0 and T are the newer one's: it was made then. Sources that know times exactly (sure_ns ==
 * from_ns) are never in doubt.
 */
#ifndef SYMBOLS_JIT_METHODS_H
#define SYMBOLS_JIT_METHODS_H

#include "symbols/jit_il.h"
#include "symbols/symbol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_METHODS_MAX ((size_t)2 << 20) /* of one process and source, over time */
#define JIT_METHODS_NAME_MAX ((size_t)64 << 10) /* longer names are cut */

struct jit_method {
	uint64_t start;
	uint32_t bytes; /* at least 1 */
	enum symbol_source source;
	uint64_t from_ns, until_ns; /* holds in [from, until), CLOCK_MONOTONIC; 0 and UINT64_MAX: as far as is known */
	uint64_t sure_ns; /* surely there from then on; from_ns (or anything before it): exactly known */
	uint64_t doubt_ns; /* out: from then on another may have been there; UINT64_MAX: it was not */
	const char *name; /* raw */
	uint32_t len;
	uint32_t il; /* out: number of its map in jit_methods_il, and 1; 0: it has none */
};

struct jit_methods;

int jit_methods_new(struct jit_methods **ret_methods); /* 0 or -ENOMEM */
void jit_methods_free(struct jit_methods *m);

/*
 * Adds code; the name is copied. 0; -EINVAL: no bytes, past 2^64, never there, or no source: not added; -E2BIG: over
 * JIT_METHODS_MAX: not added; -ENOMEM.
 */
int jit_methods_add(struct jit_methods *m, const struct jit_method *method);

/* What was added last of that source at start, and has no end, holds until time_ns. 0; -ENOENT: there is no such. */
int jit_methods_end(struct jit_methods *m, enum symbol_source source, uint64_t start, uint64_t time_ns);

/* The same, that from time_ns on another may have been there: it was not looked at since. */
int jit_methods_doubt(struct jit_methods *m, enum symbol_source source, uint64_t start, uint64_t time_ns);

/* What was added as number id of its source holds until time_ns, and from then on at start. 0; as jit_methods_add. */
int jit_methods_move(struct jit_methods *m, enum symbol_source source, uint32_t id, uint64_t start, uint64_t time_ns);

/* What was added last of that source at start has that map of jit_methods_il. 0; -ENOENT: there is no such, or it was refused; -ENOMEM. */
int jit_methods_set_il(struct jit_methods *m, enum symbol_source source, uint64_t start, uint32_t map);

/* The maps of these methods to IL, to add to and to ask. Borrowed. */
struct jit_il *jit_methods_il(const struct jit_methods *m);

/* All that has no end holds until time_ns: the process became another program. */
void jit_methods_end_all(struct jit_methods *m, uint64_t time_ns);

/* Puts the layers in order; nothing may be added afterwards. 0; -ENOMEM; -E2BIG: methods overlap beyond all measure. */
int jit_methods_finish(struct jit_methods *m);

/* What covers an address at a time. */
struct jit_methods_answer {
	const struct jit_method *method; /* NULL: nothing; borrowed */
	uint32_t id; /* of the method in its layer, in the order of adding */
	uint64_t from_ns, until_ns; /* [from, until): as long as this is the answer for the address */
};

/* Of one layer, after jit_methods_finish. O(log^2 n). */
void jit_methods_at(const struct jit_methods *m, enum symbol_source source, uint64_t addr, uint64_t time_ns,
		    struct jit_methods_answer *ret_answer);

/* The method number id of a source. */
const struct jit_method *jit_methods_get(const struct jit_methods *m, enum symbol_source source, uint32_t id);

/* How many methods a layer has, and how many of them later ones left no time. */
size_t jit_methods_count(const struct jit_methods *m, enum symbol_source source);
size_t jit_methods_covered(const struct jit_methods *m, enum symbol_source source);

#endif
