/*
 * Which offsets in the IL of their methods the places in the JIT-compiled code of a process come from. A map is kept as the text that
 * recordings have of it (symbols/jit_methods_file.h): a point for each place in the code where the offset in IL changes, with how far
 * it is behind the point before, and by how much the offset differs: "0+0,c+7,1f-3", hexadecimal.
 */
#ifndef SYMBOLS_JIT_IL_H
#define SYMBOLS_JIT_IL_H

#include "base/outbuf.h"
#include "symbols/il_points.h"

#include <stddef.h>
#include <stdint.h>

#define JIT_IL_POINTS_MAX ((size_t)1 << 16) /* of one method; more are not written */
#define JIT_IL_MODULES_MAX ((size_t)1 << 16)
#define JIT_IL_BYTES_MAX ((size_t)512 << 20) /* of all maps and paths; what is above is not known */
#define JIT_IL_ID_BYTES 16

#define JIT_IL_NONE IL_POINTS_NONE
#define JIT_IL_PROLOG IL_POINTS_PROLOG
#define JIT_IL_EPILOG IL_POINTS_EPILOG

struct jit_il_point {
	uint32_t native; /* from the start of the code */
	uint32_t il; /* or one of the marks above */
};

/* Writes a map; points are put in order. A prolog is the method's beginning, and code of no IL belongs to what is before it. */
void jit_il_put(struct outbuf *out, struct jit_il_point *points, size_t n);

/* By what it is known that an assembly is the one whose code was compiled. */
enum jit_il_id {
	JIT_IL_NO_ID,
	JIT_IL_MVID, /* the one in its metadata */
	JIT_IL_PDB, /* the GUID of its PDB */
};

struct jit_il_module {
	const char *path; /* of the assembly in the process's root */
	enum jit_il_id kind;
	unsigned char id[JIT_IL_ID_BYTES]; /* as its bytes are in the file */
};

struct jit_il;

int jit_il_new(struct jit_il **ret_il); /* 0 or -ENOMEM */
void jit_il_free(struct jit_il *il);

/* The path is copied. 0; -E2BIG; -ENOMEM. */
int jit_il_add_module(struct jit_il *il, const struct jit_il_module *module, uint32_t *ret_module);

/* text: a map, copied. 0; -EBADMSG: it is none; -EINVAL: no such module; -E2BIG; -ENOMEM. */
int jit_il_add(struct jit_il *il, uint32_t module, uint32_t rid, const char *text, uint32_t *ret_map);

size_t jit_il_modules(const struct jit_il *il);
size_t jit_il_maps(const struct jit_il *il);

/* Borrowed; module < jit_il_modules. */
const struct jit_il_module *jit_il_module(const struct jit_il *il, uint32_t module);

/* Where a place comes from. */
struct jit_il_place {
	uint32_t module, rid; /* rid: row of the method in the module's metadata, from 1 on */
	uint32_t il;
};

/* Reads the map when it is asked for first; of all maps IL_POINTS_MAX points. 0; -ENOENT: of no IL; -ENOMEM. */
int jit_il_find(const struct jit_il *il, uint32_t map, uint32_t native, struct jit_il_place *ret_place);

#endif
