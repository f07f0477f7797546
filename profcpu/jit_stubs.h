/* The runtime's stubs that nobody tells of, found in the memory of a process by their code (symbols/clr_stub_code.h). */
#ifndef PROFCPU_JIT_STUBS_H
#define PROFCPU_JIT_STUBS_H

#include "base/vec.h"
#include "profcpu/jit_known.h"
#include "profcpu/jit_way.h"
#include "symbols/clr_stub_code.h"

#define JIT_STUBS_BYTES_MAX ((uint64_t)256 << 20) /* of executable memory that a look reads */
#define JIT_STUBS_MAX ((size_t)256 << 10) /* runs of stubs of one process */
#define JIT_STUBS_LOOK_NS 500000000ULL /* a look takes no longer; 5 ms a MB are usual */

/* Zeroed is empty. */
struct jit_stubs {
	bool tried; /* there was a look, whatever came of it */
	int error; /* of the last one; 0: none */
	uint64_t looked_ns; /* when the last one without an error began; 0: there was none */
	bool cut; /* it came to a limit, and left out what is behind */
	VEC(struct clr_stub_code) found; /* by it; by address */
};

/*
 * Looks where executable memory of the runtime's is that no (settled) method of known covers, and writes what is new and gone since the
 * last look. 0; -ESRCH; -ENOMEM; -errno. What was found before holds after an error.
 */
int jit_stubs_look(struct jit_stubs *s, struct jit_target *t, const struct jit_known *known, uint64_t now_ns);

/* After the last look, in words that are added to why (JIT_WAY_WHY_BYTES), where something was left out. That the process has ended is the
 * caller's to say. */
void jit_stubs_say(const struct jit_stubs *s, const struct jit_known *known, char *why);
void jit_stubs_free(struct jit_stubs *s);

#endif
