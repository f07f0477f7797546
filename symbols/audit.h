/*
 * How well the frames of a recording are known: by kind of code, by image or process, and by source
 * of names. For frames without a name it gives the reason and the remedy. Two audits of one
 * recording agree, because the store keeps what a later run cannot find out
 * (symbols/store/store.h).
 */
#ifndef SYMBOLS_AUDIT_H
#define SYMBOLS_AUDIT_H

#include "base/outbuf.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "symbols/core/symbol.h"
#include "symbols/jit/runtime.h"
#include "symbols/store/lookup_cache.h"
#include "symbols/store/store.h"

#include <stdbool.h>
#include <stdint.h>

enum audit_kind {
	AUDIT_KERNEL,
	AUDIT_NATIVE,
	/* native code with neither .symtab nor debug file: only exported functions have names */
	AUDIT_STRIPPED,
	AUDIT_RUNTIME, /* the .NET runtime's own native code, with or without symbols */
	AUDIT_AOT,     /* managed code in native programs */
	AUDIT_R2R,
	/* kinds from here on are grouped by process, the earlier ones by image */
	AUDIT_PROCESS_KINDS,
	AUDIT_JIT = AUDIT_PROCESS_KINDS,
	AUDIT_STUBS, /* of the .NET runtime */
	AUDIT_UNMAPPED,
	AUDIT_KINDS,
};

/* "kernel", "native", "stripped" and so on. Static. */
const char *audit_kind_name(enum audit_kind kind);

/* Why frames have no name. */
enum audit_reason {
	AUDIT_NAMED, /* they have one */
	AUDIT_NOT_LOOKED_UP,
	AUDIT_GONE,
	AUDIT_REPLACED,
	AUDIT_FILE_SYSTEM,
	AUDIT_NO_ANSWER,
	AUDIT_DENIED,
	AUDIT_UNREADABLE,
	AUDIT_TOO_LARGE,
	AUDIT_MEMORY,
	AUDIT_NO_FORMAT,
	AUDIT_NO_R2R,
	AUDIT_NO_SYMBOLS,
	AUDIT_NO_DEBUG_FILE,
	AUDIT_DEBUG_DENIED,
	AUDIT_NO_DBG, /* the same of .NET native AOT */
	AUDIT_NOT_COVERED,
	AUDIT_KERNEL_HIDDEN,
	AUDIT_KERNEL_OTHER,
	AUDIT_JIT_NOT_WANTED,
	AUDIT_JIT_FAILED, /* audit_group.detail says why */
	AUDIT_JIT_MISSED,
	AUDIT_JIT_OTHER_RECORDER,
	AUDIT_JIT_NO_MAP,
	AUDIT_JIT_OLD_MAP,
	AUDIT_JIT_THUNKS,
	AUDIT_JIT_EARLY,
	AUDIT_JIT_CUT, /* the same of other runtimes than .NET */
	AUDIT_JIT_OPEN,
	AUDIT_JIT_FREED,
	AUDIT_JIT_UNREPORTED,
	AUDIT_NOT_MAPPED,
	AUDIT_NOT_MAPPED_UNWOUND, /* The stacks of the recording were unwound. */
	AUDIT_OTHER_PID_NS,
	AUDIT_REASONS,
};

/* "gone" and so on, for programs. Static. */
const char *audit_reason_word(enum audit_reason reason);

/* The reason in words. Static. */
const char *audit_reason_text(enum audit_reason reason);

/*
 * The frames of one kind, in one image or process. Each frame of each sample counts once; inlined
 * frames do not count.
 */
struct audit_group {
	enum audit_kind kind;
	/* Kinds before AUDIT_PROCESS_KINDS: as recorded, without " (deleted)"; others: NULL. */
	char *path;
	struct build_id build_id; /* len 0: not known */
	int32_t pid;              /* other kinds; else 0 */
	char *comm;
	enum jit_runtime runtime;            /* of AUDIT_JIT */
	uint64_t frames[FRAME_IS_NAMED + 1]; /* by enum frame_status */
	uint64_t sources[SYMBOL_SOURCES];    /* of the placed and named frames */
	enum audit_reason reason;
	char *detail; /* AUDIT_JIT_FAILED: why; else NULL */
};

/*
 * The remedy in words, with DIR for the recording's directory and PID for the process; NULL: there
 * is none. Static.
 */
const char *audit_remedy(const struct audit_group *g);

/* Writes the remedy with the directory's path and the PID; without a remedy it does nothing. */
void audit_put_remedy(const struct audit_group *g, const char *dir, struct outbuf *out);

/* A process that runs .NET, or whose JIT-compiled code was looked up. */
struct audit_process {
	int32_t pid, ns_pid; /* ns_pid 0: not known */
	char *comm;          /* NULL: it has no sample */
	bool is_dotnet;
	char *version, *way, *why;       /* struct lookup_cache_process; NULL: not known */
	bool jitdump_early, open;        /* struct lookup_cache_process */
	uint64_t contradictions, doubts; /* struct jit_names_stats */
};

struct audit {
	uint64_t samples, stacks_complete, stacks_truncated;
	VEC(struct audit_group) groups;      /* most frames first */
	VEC(struct audit_process) processes; /* by PID */
	struct store_notes notes;
};

/* Inputs of an audit; all borrowed. */
struct audit_input {
	struct profile *profile; /* with all samples */
	const struct lookup_cache *lookup_cache;
	/*
	 * Image in lookup_cache by frame; LOOKUP_NONE: nothing is mapped there. nframe_images
	 * entries.
	 */
	const uint32_t *frame_images;
	size_t nframe_images;
	const uint8_t *frame_flags; /* enum callchain_frame_flag by frame */
	size_t nframe_flags;
	/*
	 * Gets the name of a process's main thread, which may have no sample, as a text of the
	 * profile. PROFILE_NONE: not known.
	 */
	int (*comm)(void *ctx, int32_t pid, uint32_t *ret_comm);
	void *ctx;
	const struct jit_runtimes *runtimes;
	struct store_notes notes;
	bool by_profcpu;    /* profcpu made the recording */
	bool jit_names_off; /* recorded with --jit-names=none */
	bool unwound;       /* stacks were unwound, by this program or by the recorder */
};

/* Returns 0, -ENOMEM. */
int audit_new(const struct audit_input *input, struct audit *ret_audit);
void audit_free(struct audit *a);

/* The number of frames of a group that have no name. */
static inline uint64_t audit_unnamed(const struct audit_group *g)
{
	return g->frames[FRAME_IS_UNKNOWN] + g->frames[FRAME_IS_PLACED];
}

static inline uint64_t audit_frames(const struct audit_group *g)
{
	return audit_unnamed(g) + g->frames[FRAME_IS_NAMED];
}

/*
 * Adds the frames and sources of all groups of a kind to *sum, which must be zeroed, and sets its
 * kind.
 */
void audit_sum(const struct audit *a, enum audit_kind kind, struct audit_group *sum);

/*
 * Lists the groups that have frames without a name, most such frames first. The caller frees
 * *ret_unnamed. Returns 0 or -ENOMEM.
 */
int audit_list_unnamed(const struct audit *a, const struct audit_group ***ret_unnamed,
		       size_t *ret_n);

#endif
