/* One way to the names of a .NET process's JIT-compiled code, taken while it is recorded. */
#ifndef PROFCPU_JIT_WAY_H
#define PROFCPU_JIT_WAY_H

#include "container/opener.h"
#include "symbols/jit_methods_file.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define JIT_WAY_WHY_BYTES 384

/* The process, and where what is known of it goes. Lives as long as the way's state. */
struct jit_target {
	pid_t pid;
	struct opener *opener; /* the capture's own: used by its thread only */
	struct jit_methods_writer *out;
	atomic_uint *maps_on; /* perf maps of all processes that we have switched on and not yet off */
	uint64_t until_ns; /* CLOCK_MONOTONIC: by then each step is to be done */
	bool lines; /* which IL the code comes from is wanted too */
	bool ended; /* the process, as far as can be seen: nothing more is to be asked of it */
	bool replaced; /* for certain: it runs another program, in which nothing is to be put back */
	bool more; /* out: the last step did not take all there was */
	bool frees; /* out: code was freed since the last step, so that between two of them some may come and go */
};

struct jit_way {
	const char *name; /* as --jit-names has it */
	bool outlives; /* what was told can be read after the process's end: a last step is made then too (t->ended) */
	const char *words; /* "the runtime's memory": where the names come from, for the report */
	/*
	 * Begins to follow the process. 0; -ESRCH: it has ended; -EAGAIN: a runtime that is still starting may be ready later;
	 * any other -errno: not this way. why says why in words that end a sentence.
	 */
	int (*begin)(struct jit_target *t, void **ret_state, char *why);
	/*
	 * What is new since the last step goes to t->out, whose errors are the caller's; `last`: the recording has ended and nothing
	 * follows but end. 0, with a word about where names come from in why if there is one to say; -ESRCH: the process has ended;
	 * -errno.
	 */
	int (*step)(void *state, uint64_t now_ns, bool last, char *why);
	/* Puts everything in the target back as it was, by until_ns, or says in why what stays. NULL is fine. */
	void (*end)(void *state, uint64_t until_ns, char *why);
};

/* One more clause. */
static inline void jit_way_add_why(char *why, const char *text)
{
	size_t len = strlen(why);

	snprintf(why + len, JIT_WAY_WHY_BYTES - len, "%s%s", len ? "; " : "", text);
}

extern const struct jit_way jit_way_memory, jit_way_perf_map, jit_way_rundown;

#endif
