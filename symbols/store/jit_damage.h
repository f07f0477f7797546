/* Counts of damaged or unusable data about the JIT-compiled code of processes. */
#ifndef SYMBOLS_STORE_JIT_DAMAGE_H
#define SYMBOLS_STORE_JIT_DAMAGE_H

#include <stdint.h>

enum jit_damage_kind {
	JIT_PERFMAP_BAD_LINES,
	JIT_PERFMAPS_REFUSED,  /* by owner, kind, size or access */
	JIT_PERFMAP_BYTES_CUT, /* of maps that would take too much memory */
	JIT_CAPTURE_BAD_LINES,
	JIT_CAPTURES_CUT,  /* profcpu was killed while it wrote them */
	JIT_DUMPS_REFUSED, /* of another process, not a jitdump, damaged, too large, or too many */
	JIT_DUMPS_EARLY,   /* stopped early, so other sources are preferred */
	JIT_DUMPS_UNTIMED, /* with another clock */
	JIT_DUMP_BAD_RECORDS,
	JIT_DUMP_BAD_TABLES,  /* of lines; V8 damages some of each process */
	JIT_METHODS_LEFT_OUT, /* of captures and jitdumps, which would take too much memory */
	JIT_DAMAGE_KINDS
};

struct jit_damage {
	uint64_t n[JIT_DAMAGE_KINDS];
};

/* The word of a kind in recordings, and its key in the report. */
const char *jit_damage_store_key(enum jit_damage_kind kind);
const char *jit_damage_report_key(enum jit_damage_kind kind);

void jit_damage_add(struct jit_damage *to, const struct jit_damage *more);

#endif
