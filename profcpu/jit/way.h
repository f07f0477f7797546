/*
 * One way to take the names of a .NET process's JIT-compiled code during a recording: from memory
 * or events.
 */
#ifndef PROFCPU_JIT_WAY_H
#define PROFCPU_JIT_WAY_H

#include "base/share.h"
#include "container/opener.h"
#include "symbols/jit/methods_file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#define JIT_WAY_WHY_BYTES 384

/* The process, and the output. Lives as long as the way's state. */
struct jit_target {
	pid_t pid;
	struct opener *opener; /* the capture's own: only its thread uses it */
	struct jit_methods_writer *out;
	struct share memory, disk; /* for its events, and for its names in the recording */
	uint64_t until_ns;         /* CLOCK_MONOTONIC: deadline of each step */
	bool lines;                /* capture the IL of the code too */
	bool automatic;            /* the user did not choose the way, so it must be safe */
	bool ended;                /* the process has probably ended: contact it no more */
	bool more;                 /* out: the last step left some of the data */
	/* Out: code was freed since the last step, so code may come and go between two steps. */
	bool frees;
};

struct jit_way {
	const char *name; /* as --jit-names spells it */
	/*
	 * The data stays readable after the process has ended; a last step is then made (t->ended).
	 */
	bool outlives;
	const char *words; /* source of the names, for the report: "the runtime's memory" */
	/*
	 * Begins to follow the process. why gets the reason of a failure, to end a sentence.
	 *
	 * 0; -ESRCH: the process has ended; -EAGAIN: a starting runtime may be ready later;
	 * -EBUSY: t->automatic, and it could crash the process; other -errno: this way fails.
	 */
	int (*begin)(struct jit_target *t, void **ret_state, char *why);
	/*
	 * Writes what is new since the last step to t->out, whose errors the caller handles. The
	 * last step has last set: the recording has ended, and only end follows. A remark about the
	 * source of the names may go to why.
	 *
	 * Returns 0; -ESRCH: the process has ended; -errno.
	 */
	int (*step)(void *state, uint64_t now_ns, bool last, char *why);
	/* Ends what runs in the target, by until_ns. state may be NULL. */
	void (*end)(void *state, uint64_t until_ns);
};

/* Appends a clause. */
static inline void jit_way_add_why(char *why, const char *text)
{
	size_t len = strlen(why);

	snprintf(why + len, JIT_WAY_WHY_BYTES - len, "%s%s", len ? "; " : "", text);
}

extern const struct jit_way jit_way_memory, jit_way_rundown;

#endif
