/*
 * From records to named frames: follows the processes of a recording (maps, names, forks, execs) and asks the symbol
 * sources for every sampled address, live (this machine's files and processes) or from what a recording holds.
 */
#ifndef SYMBOLS_SYMBOLIZER_H
#define SYMBOLS_SYMBOLIZER_H

#include "base/vec.h"
#include "container/opener.h"
#include "profile/profile.h"
#include "recording/perfdata.h"
#include "symbols/audit.h"
#include "symbols/callchains.h"
#include "symbols/image.h"

#include <stdbool.h>

struct symbolizer;

struct symbolizer_options {
	/* Where a recording keeps what naming needs (its symbols/ directory), or -1. When it is there and whole it is the
	 * only source: this machine's files may have changed since. Only what could not be read when it was written is
	 * looked for again. Borrowed. */
	int store_dir_fd;
	bool recorded_here; /* this is the machine of the recording, so that its paths and PIDs mean the same */
	/* The door to this machine's processes; NULL: only files by path, in our own root. Borrowed. */
	struct opener *opener;
	uint64_t recorded_until_ns; /* CLOCK_REALTIME: who began after that is no process of the recording; 0: not known */
	/* One moment, that of the recording's begin, by CLOCK_REALTIME and by the clock of its records; 0: not known. */
	uint64_t recorded_from_ns, from_ns;
	bool recorded_elsewhere; /* on another machine, as far as is known */
	bool monotonic; /* times of records are CLOCK_MONOTONIC, which is that of runtimes too */
	bool by_profcpu, jit_not_asked; /* struct audit_input */
	bool offline; /* never look at this machine's files and processes, only at the store */
	/* What a whole store knows of stripped images is bettered where their debug files are here by now. */
	bool improve;
	bool raw_names; /* full names of managed methods as the runtime spells them */
	bool mangled; /* full names of native functions mangled */
	/* Only functions count, as in folded stacks and pictures: all addresses of a function make one frame, whose addr and, but
	 * for what stackcollapse-perf.pl makes of odd module names, sym_off are 0. Distinct frames and stacks are several times
	 * fewer. */
	bool by_function;
	bool perf_names_only; /* with by_function: names of the full form may be those of a neighbour */
	bool keep_answers; /* symbolizer_store will be called */
	/* Functions that were inlined have frames of their own; frames have source lines, and each line is a frame. Both by the
	 * address that the full form looks up. */
	bool inlines, lines;
	size_t max_stack; /* frames of a stack, inlined ones not counted; 0: CALLCHAINS_FRAMES_MAX */
};

/* What is known of a sample's callchain, as in struct callchain; SYMBOLIZER_STACK_PLAIN: nothing. */
struct symbolizer_stack {
	bool at_calls, truncated;
	uint32_t first_spliced, first_guess;
};

#define SYMBOLIZER_STACK_PLAIN ((struct symbolizer_stack){.first_spliced = CALLCHAIN_NO_FRAME, .first_guess = CALLCHAIN_NO_FRAME})

/* profile: borrowed, filled with texts, threads, frames, stacks. 0 or -errno; a store that is damaged is said by log_warn
 * and not used. */
int symbolizer_new(struct profile *profile, const struct symbolizer_options *options,
		   struct symbolizer **ret_symbolizer);
void symbolizer_free(struct symbolizer *s);

/* Takes in a record that is not a sample: MMAP, MMAP2, COMM, FORK, EXIT, KSYMBOL; ignores others. 0 or -ENOMEM. */
int symbolizer_apply(struct symbolizer *s, const struct perfdata_record *record);

/* Build ids of the header, for images whose map records carry none. */
int symbolizer_build_ids(struct symbolizer *s, const struct perfdata_build_id_entry *ids, size_t n);

/*
 * A sample is named in two steps, so that the first samples need not wait for the kernel's names. The second step comes
 * before any record that symbolizer_changes_kernel and any build id, and in the order of the samples.
 */
struct symbolizer_sample {
	struct callchain_half half;
	int32_t pid, tid;
	uint32_t comm; /* as the thread is named now */
	uint32_t thread; /* of the profile; PROFILE_NONE: the second step tells */
};

/* Both: 0, -ENOMEM, -E2BIG. time_ns: the record's; stack: of its callchain. */
int symbolizer_begin(struct symbolizer *s, const struct perfdata_record *record, const struct symbolizer_stack *stack,
		     struct symbolizer_sample *ret_sample);
int symbolizer_end(struct symbolizer *s, const struct symbolizer_sample *sample, uint64_t time_ns,
		   uint32_t *ret_thread, uint32_t *ret_stack);

/* Whether samples that were begun should be ended now, so that memory does not grow. */
bool symbolizer_full(const struct symbolizer *s);

bool symbolizer_changes_kernel(const struct perfdata_record *record);

/* Starts to read the running kernel's names meanwhile, where it may be asked. false: there is nothing to wait for. */
bool symbolizer_expect_kernel(struct symbolizer *s);

/* Sources of names (files, perf maps, the kernel's symbols) that samples need and that could not be read. */
struct symbolizer_unread {
	uint64_t sources, files; /* all, and those that are no perf maps: many a program never writes one */
	char first[256]; /* the name of one, rather of a file than of a perf map; bytes as they were recorded */
	bool kernel_hidden; /* /proc/kallsyms is among them: it has no addresses for who may not see them */
	bool looked; /* this machine was asked for all of them */
	bool has_store; /* the recording has names of others */
};

void symbolizer_unread(const struct symbolizer *s, struct symbolizer_unread *ret_unread);

/* Files with samples whose inlined functions and lines were asked for, are not in the store, and could not be read here. */
struct symbolizer_lineless {
	uint64_t files;
	char first[256]; /* the name of one */
	uint64_t pdbs; /* that lines of .NET code need, and that are nowhere here */
	char first_pdb[128]; /* the name of one */
	uint64_t pdbs_refused; /* there was no room for them (symbols/pdb_room.h) */
	char first_refused[128]; /* the name of one */
	uint64_t jits; /* processes whose JIT-compiled code was asked for lines and has none */
	int32_t jit_pid; /* one of them, */
	char jit_way[16]; /* and how its names were taken: "memory", "perfmap", "rundown"; "": not by us */
};

void symbolizer_lineless(const struct symbolizer *s, struct symbolizer_lineless *ret_lineless);

/* Whether the recording has what lines of JIT-compiled code are found by, and they may be asked for later. */
bool symbolizer_keeps_lines(const struct symbolizer *s);

/* Whether the store has lines or inlined functions, and none were asked for. */
bool symbolizer_hides_lines(const struct symbolizer *s);

/* Whether lines were read that the store does not have. */
bool symbolizer_has_new_lines(const struct symbolizer *s);

/* Whether names come from a whole store, so that nothing was looked up on this machine but, with improve, debug files. */
bool symbolizer_from_store(const struct symbolizer *s);

/* Whether a store can hold every answer that was given. */
bool symbolizer_all_kept(const struct symbolizer *s);

/* Whether improve did, so that the store is to be written again. */
bool symbolizer_improved(const struct symbolizer *s);

/* A file whose addresses were asked for. */
struct symbolizer_image {
	char *path; /* as it was recorded, without " (deleted)" */
	struct image_build_id build_id; /* len 0: not known */
	bool stripped; /* an ELF file without symbols of its own, of which no debug file was found */
	bool unread; /* it could not be read */
	uint64_t addrs[SYMBOL_SOURCES]; /* that were asked for, by where their names come from; SYMBOL_NONE: nothing is known */
};

/* A portable PDB that lines which were asked for need, and that is nowhere here. */
struct symbolizer_pdb {
	char *name; /* of the file */
	unsigned char guid[16]; /* as its bytes are in the image */
};

struct symbolizer_images {
	VEC(struct symbolizer_pdb) pdbs;
	VEC(struct symbolizer_image) list;
};

/* All of them, in the order in which they were met; as far as answers are kept (keep_answers, or a store). 0 or -ENOMEM. */
int symbolizer_images(const struct symbolizer *s, struct symbolizer_images *ret_images);
void symbolizer_images_free(struct symbolizer_images *images);

/* Writes what is needed to name the frames seen so far on another machine into dir_fd (a recording's symbols/):
 * for each image that samples hit its build id and the symbols that cover sampled addresses, the hit part of kallsyms,
 * perf maps of the sampled processes. Readable by a symbolizer with offline set, which then gives the same frames.
 * Needs keep_answers. */
int symbolizer_store(struct symbolizer *s, int dir_fd);

/* Closes what names come from, after the last question and the store, so that what follows does not need more memory than naming did.
 * Only symbolizer_audit and symbolizer_free may follow. 0 or -ENOMEM. */
int symbolizer_close_sources(struct symbolizer *s);

/* Call after all samples were added to the profile, without by_function. 0 or -errno; the caller frees *ret_audit. */
int symbolizer_audit(struct symbolizer *s, bool unwound, struct audit *ret_audit);

#endif
