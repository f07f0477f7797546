/* The maps to IL among a runtime's events, joined with the methods that they are of: each comes without the other, and either first. */
#ifndef PROFCPU_JIT_IL_MAPS_H
#define PROFCPU_JIT_IL_MAPS_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "eventpipe/rundown.h"
#include "symbols/jit_methods_file.h"

#define JIT_IL_MAPS_WAITING_MAX ((size_t)256 << 20) /* bytes of maps whose methods have not come */

/* A body of a method, and what there is of it. */
struct jit_il_body {
	uint64_t method_id, code_id;
	uint64_t start; /* 0: only its map has come, or it is gone */
	uint32_t module, rid;
	struct jit_il_point *points; /* that wait for it */
	size_t npoints;
};

/* Zeroed with out is empty. */
struct jit_il_maps {
	struct jit_methods_writer *out; /* borrowed */
	VEC(struct jit_il_body) bodies;
	struct hashmap by_id, by_start;
	struct hashmap modules; /* rundown_module_key -> number in the file */
	struct arena waiting;
	VEC(struct jit_il_point) points; /* of the map that is being taken */
};

void jit_il_maps_free(struct jit_il_maps *m);

/* Each 0 or -ENOMEM. A method is told once it is in the file; what is no method of an assembly in a file has no lines. */
int jit_il_maps_method(struct jit_il_maps *m, const struct rundown_method *method);
int jit_il_maps_map(struct jit_il_maps *m, const struct rundown_il_map *map);

/* The body there is no more: a map that comes is of the next one with the same ids. */
void jit_il_maps_gone(struct jit_il_maps *m, uint64_t start);

#endif
