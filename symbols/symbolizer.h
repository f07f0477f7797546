/*
 * Turns the records of a recording into named frames. It follows the processes (maps, names, forks,
 * execs) and looks up each sampled address. Sources are this machine's files and processes, or the
 * names that the recording holds.
 */
#ifndef SYMBOLS_SYMBOLIZER_H
#define SYMBOLS_SYMBOLIZER_H

#include "base/vec.h"
#include "container/opener.h"
#include "profile/profile.h"
#include "recording/perfdata.h"
#include "symbols/audit.h"
#include "symbols/callchains.h"
#include "symbols/symtab/image.h"
#include "symbols/tracker.h"

#include <stdbool.h>

struct symbolizer;

struct symbolizer_options {
	/*
	 * The symbols/ directory of a recording, or -1. Borrowed. A complete store there is the
	 * only source, because this machine's files may have changed. Only sources that could not
	 * be read when it was written are read again.
	 */
	int store_dir_fd;
	/* this is the machine of the recording: its paths and PIDs mean the same */
	bool recorded_here;
	/*
	 * Access to this machine's processes. NULL: only files by path, in our own root. Borrowed.
	 */
	struct opener *opener;
	/*
	 * The recording belongs to another user than root and us, who may have forged it: its
	 * processes have only the rights of that user.
	 */
	bool foreign;
	uint32_t owner;
	/* CLOCK_REALTIME; a process that began later is not in the recording. 0: not known. */
	uint64_t recorded_until_ns;
	/*
	 * The start of the recording by CLOCK_REALTIME and by the clock of its records; 0: not
	 * known.
	 */
	uint64_t recorded_from_ns, from_ns;
	bool recorded_elsewhere; /* on another machine, as far as is known */
	bool monotonic;          /* times of records are CLOCK_MONOTONIC, the clock of runtimes */
	bool by_profcpu, jit_names_off; /* struct audit_input */
	bool offline; /* never read this machine's files and processes, only the store */
	/*
	 * Improve a complete store: name its stripped images from debug files that are here by now.
	 */
	bool improve;
	bool raw_names; /* full names of managed methods as the runtime spells them */
	bool mangled;   /* full names of native functions mangled */
	/*
	 * Make one frame for all addresses of a function, as folded stacks and pictures need. Its
	 * addr is 0. Its sym_off is 0 too, except for odd module names that stackcollapse-perf.pl
	 * misreads. Distinct frames and stacks become several times fewer.
	 */
	bool by_function;
	/* with by_function: names of the full form may be those of a neighbouring function */
	bool perf_names_only;
	bool keep_cache; /* symbolizer_store will be called */
	/*
	 * inlines: inlined functions get frames of their own. lines: frames have source lines, and
	 * each line is a frame. Both use the address that the full form looks up.
	 */
	bool inlines, lines;
	/* Frames of a stack, inlined ones not counted; 0: CALLCHAINS_FRAMES_MAX. */
	size_t max_stack;
};

/* Facts about a sample's callchain, as in struct callchain. SYMBOLIZER_STACK_PLAIN: none known. */
struct symbolizer_stack {
	bool at_call_sites, truncated;
	uint32_t first_spliced, first_guess;
};

#define SYMBOLIZER_STACK_PLAIN                                          \
	((struct symbolizer_stack){.first_spliced = CALLCHAIN_NO_FRAME, \
				   .first_guess = CALLCHAIN_NO_FRAME})

/*
 * profile is borrowed, and filled with texts, threads, frames and stacks. A damaged store is
 * reported by log_warn and not used. Returns 0 or -errno.
 */
int symbolizer_new(struct profile *profile, const struct symbolizer_options *options,
		   struct symbolizer **ret_symbolizer);
void symbolizer_free(struct symbolizer *s);

/*
 * Applies a record that is not a sample: MMAP, MMAP2, COMM, FORK, EXIT, KSYMBOL. Ignores others.
 * Returns 0 or -ENOMEM.
 */
int symbolizer_apply(struct symbolizer *s, const struct perfdata_record *record);

/* Follows the processes of the records. Borrowed; unwinding uses it too. */
const struct tracker *symbolizer_tracker(const struct symbolizer *s);

/* Opens a file for unwinding, as struct unwinder_options requires. symbolizer is ctx. */
int symbolizer_open_file(void *symbolizer, uint32_t image, int *ret_fd);

/* Adds build ids of the header, for images whose map records carry none. */
int symbolizer_build_ids(struct symbolizer *s, const struct perfdata_build_id_entry *ids, size_t n);

/*
 * A sample is named in two steps, so that the first samples need not wait for the kernel's names.
 * The second step takes samples in their order. It comes before any record of
 * symbolizer_changes_kernel and before any build id.
 */
struct symbolizer_sample {
	struct callchain_half half;
	int32_t pid, tid;
	uint32_t comm;   /* the thread's name at this time */
	uint32_t thread; /* of the profile; PROFILE_NONE: the second step sets it */
};

/* time_ns: time of the record; stack: facts about its callchain. Both steps: 0, -ENOMEM, -E2BIG. */
int symbolizer_begin(struct symbolizer *s, const struct perfdata_record *record,
		     const struct symbolizer_stack *stack, struct symbolizer_sample *ret_sample);
int symbolizer_end(struct symbolizer *s, const struct symbolizer_sample *sample, uint64_t time_ns,
		   uint32_t *ret_thread, uint32_t *ret_stack);

/* Whether the caller should end the samples that it began, so that memory does not grow. */
bool symbolizer_full(const struct symbolizer *s);

bool symbolizer_changes_kernel(const struct perfdata_record *record);

/*
 * Starts to read the running kernel's names in the background, if this machine may be used. False:
 * there is nothing to wait for.
 */
bool symbolizer_prefetch_kernel(struct symbolizer *s);

/*
 * Sources of names (files, perf maps, the kernel's symbols) that samples need and that could not be
 * read.
 */
struct symbolizer_unread {
	uint64_t sources,
		/* All sources, and those other than perf maps, which many programs never write. */
		files;
	char first[256]; /* The name of one source, a file before a perf map; bytes as recorded. */
	/* A jitdump or perf map was read before its process ended; it has ended since. */
	bool closed;
	/* /proc/kallsyms is among them: it shows no addresses without permission */
	bool kernel_hidden;
	bool searched;  /* all of them were searched for on this machine */
	bool has_store; /* the recording holds names of other sources */
};

void symbolizer_unread(const struct symbolizer *s, struct symbolizer_unread *ret_unread);

/*
 * Sampled code without inlined functions and lines, although they were wanted: neither stored nor
 * readable here.
 */
struct symbolizer_missing_lines {
	uint64_t files;
	char first[256];         /* the name of one file */
	uint64_t pdbs;           /* PDBs that lines of .NET code need and that this machine lacks */
	char first_pdb[128];     /* the name of one */
	uint64_t pdbs_refused;   /* PDBs that did not fit the budget of dotnet/pdb_budget.h */
	char first_refused[128]; /* the name of one */
	uint64_t jits;           /* processes whose JIT-compiled code has no lines */
	int32_t jit_pid;         /* one of these processes */
	/* How its names were taken: "memory", "rundown"; "": profcpu did not take them. */
	char jit_way[16];
};

/* Returns 0 or -ENOMEM. */
int symbolizer_missing_lines(const struct symbolizer *s,
			     struct symbolizer_missing_lines *ret_lineless);

/* Whether the recording can give lines of JIT-compiled code that a later run may look up. */
bool symbolizer_can_add_lines(const struct symbolizer *s);

/* Whether the store has lines or inlined functions, and none were wanted. */
bool symbolizer_hides_lines(const struct symbolizer *s);

/* Whether lines were read that the store lacks. */
bool symbolizer_has_new_lines(const struct symbolizer *s);

/*
 * Whether names come from a complete store. Then nothing was looked up on this machine, except
 * debug files with improve.
 */
bool symbolizer_from_store(const struct symbolizer *s);

/* Kernel modules and symbols of records over KERNEL_RANGES_MAX, whose addresses have no names. */
uint64_t symbolizer_refused_kernel(const struct symbolizer *s);

/* Samples whose stacks have fewer frames, because memory is short. */
uint64_t symbolizer_cut_stacks(const struct symbolizer *s);

/* Lookups whose names were left out, and methods of processes, because memory is short. */
uint64_t symbolizer_left_out(const struct symbolizer *s);

/* Whether a store can hold every symbol that was found. */
bool symbolizer_can_store_all(const struct symbolizer *s);

/* Whether improve replaced a name, so that the store should be written again. */
bool symbolizer_has_improved(const struct symbolizer *s);

/* A file with sampled addresses. */
struct symbolizer_image {
	char *path;               /* as recorded, without " (deleted)" */
	struct build_id build_id; /* len 0: not known */
	bool stripped; /* an ELF file without symbols of its own, whose debug file was not found */
	bool unread;   /* it could not be read */
	/* Sampled addresses by source of their names; SYMBOL_NONE: without a name. */
	uint64_t addrs[SYMBOL_SOURCES];
};

/* A portable PDB that wanted lines need and that this machine lacks. */
struct symbolizer_pdb {
	char *name;             /* of the file */
	unsigned char guid[16]; /* its bytes as in the image */
};

struct symbolizer_images {
	VEC(struct symbolizer_pdb) pdbs;
	VEC(struct symbolizer_image) list;
};

/*
 * Lists all files in the order of their first record. Counts are complete only if lookups are kept
 * (keep_cache, or a store). Returns 0 or -ENOMEM.
 */
int symbolizer_images(const struct symbolizer *s, struct symbolizer_images *ret_images);
void symbolizer_images_free(struct symbolizer_images *images);

/*
 * Writes into dir_fd (a recording's symbols/) the names that another machine needs for the frames
 * so far. For each sampled image it writes the build id and the symbols that cover sampled
 * addresses, from kallsyms and perf maps too. A symbolizer with offline set then gives the same
 * frames. Needs keep_cache. Names that were stored, but left out for lack of memory, stay instead.
 */
int symbolizer_store(struct symbolizer *s, int dir_fd);

/*
 * Closes the sources of names, so that later work needs no more memory than naming did. Call it
 * after the last lookup and the store; only symbolizer_audit and symbolizer_free may follow.
 * Returns 0 or -ENOMEM.
 */
int symbolizer_close_sources(struct symbolizer *s);

/*
 * Call it after all samples were added to the profile, without by_function. The caller frees
 * *ret_audit. Returns 0 or -errno.
 */
int symbolizer_audit(struct symbolizer *s, bool unwound, struct audit *ret_audit);

#endif
