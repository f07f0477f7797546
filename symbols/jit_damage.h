/* What could not be used of what there was of processes' JIT-compiled code, counted. */
#ifndef SYMBOLS_JIT_DAMAGE_H
#define SYMBOLS_JIT_DAMAGE_H

#include <stdint.h>

enum jit_damage_kind {
	JIT_PERFMAP_BAD_LINES,
	JIT_CAPTURE_BAD_LINES,
	JIT_CAPTURES_CUT, /* profcpu was killed while it wrote them */
	JIT_DUMPS_REFUSED, /* of another process, no jitdumps, not to be read to their end, or more than are looked at */
	JIT_DUMPS_EARLY, /* stopped early, and so asked last */
	JIT_DUMPS_UNTIMED, /* with a clock of their own */
	JIT_DUMP_BAD_RECORDS,
	JIT_DAMAGE_KINDS
};

struct jit_damage {
	uint64_t n[JIT_DAMAGE_KINDS];
};

/* As recordings have it, and as the report has it. */
const char *jit_damage_key(enum jit_damage_kind kind);
const char *jit_damage_json(enum jit_damage_kind kind);

void jit_damage_add(struct jit_damage *to, const struct jit_damage *more);

#endif
