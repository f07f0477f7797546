/*
 * Shared by the parts of jit_code: code heaps and the order of a scan (jit_code.c), headers and
 * sizes of code (jit_code_bodies.c), IL offsets (jit_code_il.c), stubs (jit_code_stubs.c).
 *
 * jit_code_facts.c has settings and precompiled images.
 */
#ifndef DOTNET_CORECLR_JIT_CODE_IMPL_H
#define DOTNET_CORECLR_JIT_CODE_IMPL_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/coreclr/barriers.h"
#include "dotnet/coreclr/code_ranges.h"
#include "dotnet/coreclr/jit_code.h"
#include "dotnet/coreclr/modules.h"
#include "dotnet/coreclr/types.h"

/*
 * A code heap and its nibble map as of the last scan. Unreported bodies have no nibble in the map.
 */
struct clr_code_heap {
	uint64_t list; /* addr of its node */
	/* Start of the range. Addresses in unwind information are relative to it. */
	uint64_t section;
	/* base: address of the first nibble. map: addr of the nibble map. */
	uint64_t base, end, map;
	bool collectible;
	uint32_t seen; /* last scan that found it */
	VEC(uint32_t) words;
};

struct clr_body {
	uint64_t start;
	/* Hash of its description, which shows when other code replaces it. */
	uint64_t fingerprint;
	uint32_t bytes;
	uint32_t name; /* in clr_jit_code.names */
	uint32_t heap;
	bool here, is_stub;
	bool movable;   /* its heap frees single bodies */
	bool is_listed; /* in clr_jit_code.movable */
	/*
	 * Begin of the last scan that saw it. Valid only if movable; other bodies are seen by
	 * every scan.
	 */
	uint64_t seen_ns;
};

/* A body that is being read. */
struct clr_candidate {
	uint64_t start, next; /* next: start of the next code, or end of the heap */
	uint32_t heap;
	bool failed; /* unreadable or inconsistent */
	bool known;  /* reported before; only compare it */
	bool is_stub;
	uint64_t header;        /* addr of its RealCodeHeader, or the kind of a stub block */
	unsigned char code[64]; /* RealCodeHeader with the first unwind information */
	unsigned char last[16]; /* last unwind information */
	uint64_t method;        /* addr of its MethodDesc */
	unsigned char desc[32], chunk[64];
	uint64_t type;
	unsigned char dynamic[96]; /* DynamicMethodDesc */
	unsigned char *text, *sig; /* name and signature of a dynamic method */
	uint32_t bytes;
	uint64_t fingerprint;
	uint64_t debug; /* addr of its debug information; 0: none or not wanted */
	unsigned char debug_head[64];
	uint32_t debug_len;          /* bytes read */
	const unsigned char *bounds; /* NULL: none */
	uint32_t bounds_bytes;
};

/* A range of stubs outside code heaps. */
struct clr_stub_range {
	uint64_t start, end;
	const char *name; /* static */
};

struct clr_jit_code {
	struct clr_io target; /* from the caller */
	/* Reads as target until until_ns, then fails with -ETIMEDOUT, so that all readers stop. */
	struct clr_io io;
	uint64_t until_ns; /* CLOCK_MONOTONIC */
	struct clr_contract contract;
	uint64_t anchor; /* an addr in the runtime's module */
	uint32_t scan;
	struct clr_modules_cache modules;
	struct clr_types types;
	VEC(struct clr_code_heap) heaps;
	struct hashmap heaps_by_list;
	VEC(struct clr_body) bodies;
	struct hashmap bodies_by_start;
	VEC(struct clr_stub_range) stubs; /* sorted by start */
	/* Begin of this scan and of the one before; CLOCK_MONOTONIC, 0: none. */
	uint64_t began_ns, before_ns;
	bool has_barriers; /* the barriers were found */
	struct clr_barriers barriers;
	VEC(uint32_t) movable; /* indexes of movable bodies, and of some that are gone */
	size_t nmovable;       /* number of movable bodies present */
	bool compares_all;     /* compare all movable bodies in each scan */
	size_t recheck_at;     /* index into movable at which the next comparison begins */
	bool wants_il;
	VEC(struct il_point) points;       /* of the code being reported */
	VEC(struct clr_code_range) images; /* precompiled; sorted by start */
	struct intern names;
	uint32_t named; /* number of names */
	uint64_t name_bytes;
	struct clr_jit_code_stats stats;
};

/* Whether the time of the scan is over. Call it in loops that may run long without reading. */
bool clr_jit_code_is_late(const struct clr_jit_code *j);

/*
 * Reads the description of candidates and marks invalid ones as failed. 0; -ENOMEM; errors of io.
 */
int clr_jit_code_bodies_read(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
			     struct arena *texts);

/* Makes the name of a candidate: an id of clr_jit_code.names. 0; -ENOENT; -ENOMEM; errors of io. */
int clr_jit_code_bodies_name(struct clr_jit_code *j, const struct clr_candidate *c,
			     uint32_t *ret_name);

/* Reads the IL offsets of candidates. Those unreadable get none. 0; -ENOMEM; errors of io. */
int clr_jit_code_il_read(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
			 struct arena *texts);

/* Decodes the IL offsets read. 0; -ENOENT: none; -ENOMEM; errors of io. */
int clr_jit_code_il_decode(struct clr_jit_code *j, const struct clr_candidate *c,
			   struct clr_jit_code_il *ret_il);

/* The row of the candidate's method, and the addr of its module. 0; -ENOENT: none. */
int clr_jit_code_bodies_method(struct clr_jit_code *j, const struct clr_candidate *c,
			       uint32_t *ret_rid, uint64_t *ret_module);

/* Keeps the ranges of precompiled images. 0 or -ENOMEM. */
int clr_jit_code_keep_images(struct clr_jit_code *j, const struct clr_code_ranges *ranges);

/* The addr of the candidate's Module; 0: unknown. */
uint64_t clr_jit_code_bodies_module(const struct clr_jit_code *j, const struct clr_candidate *c);

/*
 * Reports new and vanished ranges of stubs. maps: text of /proc/PID/maps, or NULL. It must be older
 * than ranges, so that each mapped code heap is in a range.
 */
int clr_jit_code_stubs_scan(struct clr_jit_code *j, const struct clr_code_ranges *ranges,
			    const char *maps, const struct clr_jit_code_listener *l);

/* Whether the method has no metadata: made by DynamicMethod, or an IL stub of the runtime. */
bool clr_jit_code_bodies_is_dynamic(const struct clr_jit_code *j, const struct clr_candidate *c);

/* Whether the candidate's heap frees single bodies. */
bool clr_jit_code_bodies_is_movable(const struct clr_jit_code *j, const struct clr_candidate *c);

#endif
