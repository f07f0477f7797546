/*
 * Maps from JIT-compiled code to IL: the offset in a method's IL that each place in its code comes
 * from. A map is kept as the text that recordings hold (symbols/jit/methods_file.h), with a point
 * for each place where the IL offset changes. A point is its distance in code from the point before
 * and the change of the IL offset, in hexadecimal: "0+0,c+7,1f-3".
 */
#ifndef SYMBOLS_JIT_IL_H
#define SYMBOLS_JIT_IL_H

#include "base/outbuf.h"
#include "dotnet/il_points.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JIT_IL_MODULES_MAX ((size_t)1 << 16)
#define JIT_IL_BYTES_MAX ((size_t)512 << 20) /* of all maps and paths; maps beyond are not used */
#define JIT_IL_ID_BYTES 16

/*
 * Writes a map; points are sorted in place. The prolog maps to the method's first IL. Code without
 * IL belongs to the code before it.
 */
void jit_il_put(struct outbuf *out, struct il_point *points, size_t n);

/* Proof that an assembly is the one whose code was compiled. */
enum jit_il_id {
	JIT_IL_NO_ID,
	JIT_IL_MVID, /* the MVID in its metadata */
	JIT_IL_PDB,  /* the GUID of its PDB */
};

struct jit_il_module {
	const char *path; /* of the assembly, in the process's root */
	enum jit_il_id kind;
	unsigned char id[JIT_IL_ID_BYTES]; /* as its bytes are in the file */
};

struct jit_il;

int jit_il_new(struct jit_il **ret_il); /* Returns 0 or -ENOMEM */
void jit_il_free(struct jit_il *il);

/*
 * Lets maps and paths that are added from now on take at most these bytes, if this is less than
 * JIT_IL_BYTES_MAX leaves.
 */
void jit_il_limit(struct jit_il *il, uint64_t bytes);

/* Takes bytes of that memory, for lines of other sources. False: too few are left. */
bool jit_il_take(struct jit_il *il, uint64_t bytes);

/* The bytes that were taken. */
uint64_t jit_il_bytes(const struct jit_il *il);

/* The path is copied. Returns 0; -E2BIG; -ENOMEM. */
int jit_il_add_module(struct jit_il *il, const struct jit_il_module *module, uint32_t *ret_module);

/*
 * Adds a map; text is copied. Returns 0; -EBADMSG: text is not a map; -EINVAL: no such module;
 * -E2BIG; -ENOMEM.
 */
int jit_il_add(struct jit_il *il, uint32_t module, uint32_t rid, const char *text,
	       uint32_t *ret_map);

size_t jit_il_modules(const struct jit_il *il);
size_t jit_il_maps(const struct jit_il *il);

/* Borrowed; module < jit_il_modules. */
const struct jit_il_module *jit_il_module(const struct jit_il *il, uint32_t module);

/* A place in the IL of a method. */
struct jit_il_place {
	uint32_t module, rid; /* rid: row of the method in the module's metadata, from 1 on */
	uint32_t il;
};

/*
 * Finds the IL of a place in code. Each map is read at its first lookup; all maps together keep at
 * most IL_POINTS_MAX points. Returns 0; -ENOENT: no IL; -ENOMEM.
 */
int jit_il_find(const struct jit_il *il, uint32_t map, uint32_t native,
		struct jit_il_place *ret_place);

#endif
