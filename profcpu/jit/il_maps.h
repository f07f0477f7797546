/*
 * Joins the maps to IL in a runtime's events with their methods. Map and method come in separate
 * events, and either may come first.
 */
#ifndef PROFCPU_JIT_IL_MAPS_H
#define PROFCPU_JIT_IL_MAPS_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/eventpipe/rundown.h"
#include "symbols/jit/methods_file.h"

/* bytes of maps that wait for their methods */
#define JIT_IL_MAPS_WAITING_MAX ((size_t)256 << 20)

/* A body of a method, and the data for it so far. */
struct jit_il_body {
	uint64_t method_id, code_id;
	uint64_t start; /* 0: only its map has come, or the body is gone */
	uint32_t module, rid;
	struct il_point *points; /* map that waits for the method */
	size_t npoints;
};

/* A struct that is zeroed, except out and memory, is empty. */
struct jit_il_maps {
	struct jit_methods_writer *out; /* borrowed */
	VEC(struct jit_il_body) bodies;
	struct hashmap by_id, by_start;
	struct hashmap modules; /* rundown_module_key -> number in the file */
	struct arena waiting;
	VEC(struct il_point) points; /* of the current map */
	struct share *memory;        /* borrowed: counts all this; NULL: no limit */
	uint64_t counted;            /* bytes in it */
};

void jit_il_maps_free(struct jit_il_maps *m);

/*
 * Both: 0 or -ENOMEM. Pass a method after it was written to the file. A method without an assembly
 * in a file has no lines.
 */
int jit_il_maps_method(struct jit_il_maps *m, const struct rundown_method *method);
int jit_il_maps_map(struct jit_il_maps *m, const struct rundown_il_map *map);

/* The body at start is gone: later maps belong to the next body with the same ids. */
void jit_il_maps_gone(struct jit_il_maps *m, uint64_t start);

#endif
