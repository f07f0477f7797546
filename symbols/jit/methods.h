/*
 * The code that the runtimes of one process made while it ran: its place, its times and its name.
 * Each source (the runtime's memory, its events, a jitdump, a perf map) is a layer of its own.
 * Names come from all layers together (symbols/jit/names.h), and recordings keep them
 * (symbols/jit/methods_file.h).
 *
 * Within a layer, later code ends any code that it overlaps, entirely: its memory was free, or the
 * runtime could not have reused it. The later one of two overlapping methods has the larger
 * sure_ns. If these are equal, it is the one added later.
 *
 *        found by a scan at T0          found by a scan at T
 *   old  ------------|......................|
 *   new              |......................|-------------
 *                 from_ns                sure_ns
 *
 * A scan at T finds code that the scan before (T0) did not find. The code may have been used from
 * T0 on (from_ns) and surely exists at T (sure_ns). Between the two times the older method holds,
 * because a scan saw it there. In that time the result is in doubt (jit_method.doubt_ns), and
 * lookups count it. From sure_ns on the newer method holds.
 *
 * If no older method was there, the newer one holds from T0 on: it was made between the scans.
 * Sources with exact times (sure_ns == from_ns) are never in doubt.
 */
#ifndef SYMBOLS_JIT_METHODS_H
#define SYMBOLS_JIT_METHODS_H

#include "symbols/core/symbol.h"
#include "symbols/jit/il.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_METHODS_MAX ((size_t)2 << 20)       /* of one process and source, over time */
#define JIT_METHODS_NAME_MAX ((size_t)64 << 10) /* longer names are cut */

struct jit_method {
	uint64_t start;
	uint32_t bytes; /* at least 1 */
	enum symbol_source source;
	/* Holds in [from, until), CLOCK_MONOTONIC. 0 and UINT64_MAX: without a known limit. */
	uint64_t from_ns, until_ns;
	uint64_t sure_ns; /* surely there from then on; from_ns or earlier: the time is exact */
	/* Out: from then on another method may have been there; UINT64_MAX: never. */
	uint64_t doubt_ns;
	const char *name; /* raw */
	uint32_t len;
	uint32_t il; /* out: number of its map in jit_methods_il, plus 1; 0: it has none */
};

struct jit_methods;

int jit_methods_new(struct jit_methods **ret_methods); /* Returns 0 or -ENOMEM */
void jit_methods_free(struct jit_methods *m);

/* Memory that a method takes at most besides its name, also while jit_methods_finish works. */
#define JIT_METHODS_EACH_BYTES 208

/*
 * Lets code that is added from now on take at most these bytes, and maps to IL and lines of
 * jitdumps a quarter more. Without a call, only the other limits hold.
 */
void jit_methods_limit_memory(struct jit_methods *m, uint64_t bytes);

/* The bytes that were taken, with the maps and lines. */
uint64_t jit_methods_taken(const struct jit_methods *m);

/*
 * Adds code; the name is copied. Returns 0; -EINVAL: no bytes, past 2^64, an empty time, or no
 * source; -E2BIG: over JIT_METHODS_MAX or the limit of memory; -ENOMEM. Code that is refused is not
 * added, and ends the code last added at its start.
 */
int jit_methods_add(struct jit_methods *m, const struct jit_method *method);

/*
 * Ends the code last added at start by that source, if it has no end yet: it holds until time_ns.
 * Returns 0; -ENOENT: there is none; -ENOMEM.
 */
int jit_methods_end(struct jit_methods *m, enum symbol_source source, uint64_t start,
		    uint64_t time_ns);

/* Marks that code as in doubt from time_ns on: it was not seen since. As jit_methods_end. */
int jit_methods_doubt(struct jit_methods *m, enum symbol_source source, uint64_t start,
		      uint64_t time_ns);

/*
 * Moves method number id of its source at time_ns: it holds until then at its old place, and from
 * then on at start. As jit_methods_add.
 */
int jit_methods_move(struct jit_methods *m, enum symbol_source source, uint32_t id, uint64_t start,
		     uint64_t time_ns);

/*
 * Gives the code last added at start by that source a map of jit_methods_il. Returns 0; -ENOENT:
 * there is none, or it was refused; -ENOMEM.
 */
int jit_methods_set_il(struct jit_methods *m, enum symbol_source source, uint64_t start,
		       uint32_t map);

/* The maps of these methods to IL, for adding and lookups. Borrowed. */
struct jit_il *jit_methods_il(const struct jit_methods *m);

/* Ends all code that has no end at time_ns: the process became another program. */
void jit_methods_end_all(struct jit_methods *m, uint64_t time_ns);

/*
 * Puts the layers in order; nothing may be added afterwards. Returns 0; -ENOMEM; -E2BIG: too many
 * methods overlap.
 */
int jit_methods_finish(struct jit_methods *m);

/* The method that covers an address at a time. */
struct jit_methods_result {
	const struct jit_method *method; /* NULL: none; borrowed */
	uint32_t id;                     /* of the method in its layer, in the order of adding */
	uint64_t from_ns,
		until_ns; /* [from, until): the times for which this result holds at the address. */
};

/* Looks up an address in one layer, after jit_methods_finish. O(log^2 n). */
void jit_methods_find(const struct jit_methods *m, enum symbol_source source, uint64_t addr,
		      uint64_t time_ns, struct jit_methods_result *ret_result);

/* Method number id of a source. */
const struct jit_method *jit_methods_get(const struct jit_methods *m, enum symbol_source source,
					 uint32_t id);

/* The number of methods that were refused, of all sources. */
size_t jit_methods_refused_count(const struct jit_methods *m);

/* The number of methods in a layer, and of those whose whole time later ones took. */
size_t jit_methods_count(const struct jit_methods *m, enum symbol_source source);
size_t jit_methods_hidden_count(const struct jit_methods *m, enum symbol_source source);

#endif
