/*
 * How well a recording's frames are known: by kind of code, by image or process, by source of names; and of what has no name
 * the reason and the mend. It says the same wherever it is made of one recording, as what a later run cannot find out
 * is kept with the names (symbols/store.h).
 */
#ifndef SYMBOLS_AUDIT_H
#define SYMBOLS_AUDIT_H

#include "base/outbuf.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbols/answers.h"
#include "symbols/store.h"
#include "symbols/symbol.h"

#include <stdbool.h>
#include <stdint.h>

enum audit_kind {
	AUDIT_KERNEL,
	AUDIT_NATIVE,
	AUDIT_STRIPPED, /* native code without .symtab and debug file: only what it exports has names */
	AUDIT_RUNTIME, /* the .NET runtime's own native code, with symbols or without */
	AUDIT_AOT, /* managed code in native programs */
	AUDIT_R2R,
	AUDIT_PROCESS_KINDS, /* what follows is told apart by process, what is before by image */
	AUDIT_JIT = AUDIT_PROCESS_KINDS,
	AUDIT_STUBS, /* of the .NET runtime */
	AUDIT_UNMAPPED,
	AUDIT_KINDS,
};

/* "kernel", "native", "stripped" and so on. Static. */
const char *audit_kind_name(enum audit_kind kind);

/* Why something has no name. */
enum audit_reason {
	AUDIT_FINE, /* it has */
	AUDIT_NOT_LOOKED,
	AUDIT_GONE,
	AUDIT_REPLACED,
	AUDIT_DENIED,
	AUDIT_UNREADABLE,
	AUDIT_NO_FORMAT,
	AUDIT_NO_R2R,
	AUDIT_NO_SYMBOLS,
	AUDIT_NO_DEBUG_FILE,
	AUDIT_NOT_COVERED,
	AUDIT_KERNEL_HIDDEN,
	AUDIT_KERNEL_OTHER,
	AUDIT_JIT_NOT_ASKED,
	AUDIT_JIT_FAILED, /* detail says why */
	AUDIT_JIT_MISSED,
	AUDIT_JIT_OTHER_RECORDER,
	AUDIT_JIT_NO_MAP,
	AUDIT_JIT_EARLY,
	AUDIT_JIT_FREED,
	AUDIT_JIT_UNTOLD,
	AUDIT_NOT_MAPPED,
	AUDIT_NOT_MAPPED_UNWOUND, /* in a recording whose stacks were unwound */
	AUDIT_REASONS,
};

const char *audit_reason_word(enum audit_reason reason); /* "gone" and so on: for programs. Static. */
const char *audit_reason_text(enum audit_reason reason); /* what it is, in words. Static */
const char *audit_reason_mend(enum audit_reason reason); /* what to do; NULL: nothing can be done. Static */

/* The frames of one kind of an image or of a process; each frame of each sample counts once, what is inlined not at all. */
struct audit_group {
	enum audit_kind kind;
	char *path; /* of kinds before AUDIT_PROCESS_KINDS: as it was recorded, without " (deleted)"; else NULL */
	struct image_build_id build_id; /* len 0: not known */
	int32_t pid; /* of the others */
	char *comm;
	uint64_t frames[FRAME_IS_NAMED + 1]; /* by enum frame_status */
	uint64_t sources[SYMBOL_SOURCES]; /* of those that are placed or named */
	enum audit_reason reason;
	char *detail; /* of AUDIT_JIT_FAILED; else NULL */
};

/* A process whose JIT-compiled code was asked for, or which runs .NET. */
struct audit_process {
	int32_t pid, ns_pid; /* ns_pid 0: not known */
	char *comm; /* NULL: no sample of it */
	bool is_dotnet;
	char *version, *way, *why; /* struct answers_process; NULL: not known */
	bool jitdump_early;
	uint64_t contradictions, doubts; /* struct jit_names_stats */
};

struct audit {
	uint64_t samples, stacks_complete, stacks_truncated;
	VEC(struct audit_group) groups; /* that with most frames first */
	VEC(struct audit_process) processes; /* by PID */
	struct store_notes notes;
};

/* What it is made of; all borrowed. */
struct audit_input {
	struct profile *profile; /* with all samples */
	const struct answers *answers;
	const uint32_t *frame_images; /* image in answers by frame, ANSWERS_NONE: nothing is mapped there; nframe_images of them */
	size_t nframe_images;
	const uint8_t *frame_flags; /* enum frames_flag by frame */
	size_t nframe_flags;
	/* The name of a process's main thread, which may have no sample, as a text of the profile; PROFILE_NONE: not known. */
	int (*comm)(void *ctx, int32_t pid, uint32_t *ret_comm);
	void *ctx;
	struct store_notes notes;
	bool by_profcpu; /* recorded it */
	bool jit_not_asked; /* with --jit-names=none */
	bool unwound; /* stacks were, by us or by the recorder */
};

int audit_make(const struct audit_input *input, struct audit *ret_audit); /* 0, -ENOMEM, -errno of profile_groups */
void audit_free(struct audit *a);

/* How many frames of a group have no name. */
static inline uint64_t audit_unnamed(const struct audit_group *g)
{
	return g->frames[FRAME_IS_UNKNOWN] + g->frames[FRAME_IS_PLACED];
}

static inline uint64_t audit_frames(const struct audit_group *g)
{
	return audit_unnamed(g) + g->frames[FRAME_IS_NAMED];
}

/* Adds the counts of all groups of a kind to *sum, which is zeroed: its kind, frames and sources. */
void audit_sum(const struct audit *a, enum audit_kind kind, struct audit_group *sum);

/* The groups with frames without a name, that with most first. The caller frees *ret_unnamed. 0 or -ENOMEM. */
int audit_list_unnamed(const struct audit *a, const struct audit_group ***ret_unnamed, size_t *ret_n);

#endif
