/* The values of --jit-names: where a recording takes the names of JIT-compiled code from. */
#ifndef PROFCPU_JIT_NAMES_OPTION_H
#define PROFCPU_JIT_NAMES_OPTION_H

enum jit_names {
	/* memory; if that fails, rundown, unless it could crash the process (way.h) */
	JIT_NAMES_AUTO,
	JIT_NAMES_MEMORY,
	JIT_NAMES_RUNDOWN,
	/* contact no runtime; a perf map or jitdump that exists is still read */
	JIT_NAMES_NONE,
};

/* Parses "auto", "memory", "rundown" or "none". Returns 0 or -EINVAL. */
int jit_names_option_parse(const char *text, enum jit_names *ret_names);

/* The word that jit_names_option_parse reads. Static. */
const char *jit_names_option_word(enum jit_names names);

#endif
