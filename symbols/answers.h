/*
 * Every question that was asked of a symbol source and what it answered, remembered. While names are looked up it is the
 * cache; written out (symbols/store.h) it is what another machine needs to give the same names, "nothing is known of
 * this address" among them.
 *
 * A question is an image and an address of its own kind: a file offset for images that are files, an addr for the kernel
 * and for JIT code.
 */
#ifndef SYMBOLS_ANSWERS_H
#define SYMBOLS_ANSWERS_H

#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "symbols/answers_lines.h"
#include "symbols/image.h"

#include <stdbool.h>
#include <stdint.h>

#define ANSWERS_NONE UINT32_MAX
#define ANSWERS_TIMES_MAX 1024 /* answers for one address, each for a time of its own: they are gone through in turn */

/* What an image is. The text of each kind is in recordings. */
enum answers_kind {
	ANSWERS_FILE, /* a file by its path */
	ANSWERS_JIT, /* memory in which a process of its own makes code: named by its perf map */
	ANSWERS_VDSO,
	ANSWERS_VSYSCALL,
	ANSWERS_OTHER, /* memory that has no file and is not named by a perf map */
	ANSWERS_KERNEL,
	ANSWERS_KINDS,
};

/* Why the source of an image gives no names, or not all. The text of each is in recordings. */
enum answers_why {
	ANSWERS_FINE, /* it does, or nobody has looked for it */
	ANSWERS_GONE,
	ANSWERS_REPLACED, /* another file is there */
	ANSWERS_DENIED, /* not for us */
	ANSWERS_UNREADABLE,
	ANSWERS_NO_FORMAT, /* neither ELF nor a .NET image */
	ANSWERS_NO_R2R, /* a .NET image without precompiled code, or without metadata */
	ANSWERS_NO_SYMBOLS, /* stripped, and without a build id to find its debug file by */
	ANSWERS_OTHER_KERNEL, /* another kernel runs */
	ANSWERS_WHYS,
};

/* By what an image is known again. Two with equal fields are one image. */
struct answers_image {
	uint32_t path; /* in answers.texts; as the record has it, " (deleted)" included */
	uint8_t kind; /* enum answers_kind */
	struct image_build_id build_id;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	/* Of JIT images, of files that nothing but the process's root tells apart, and of single-file programs where another one has
	 * their path and build id; else 0. */
	int32_t pid;
	/* What it is not known by: that its source, or a part of it, could not be read when answers were kept (wanted), or now (unread).
	 * Then what is not answered is asked again. */
	bool wanted, unread;
	bool lineless; /* asked for lines, it has none */
	bool lines_unread; /* they could not be read now */
	uint8_t why; /* enum answers_why */
	uint32_t stripped; /* index + 1 into answers.stripped: a debug file would name more of it; 0: no */
};

/* What it takes to name an image without symbols of its own later, and elsewhere, by its debug file. */
struct answers_stripped {
	struct image_build_id build_id;
	struct image_segment *segments;
	size_t nsegments;
	bool named; /* its debug file was found meanwhile */
};

/* A symbol that covers an address that was asked for; start is where it begins, for name+offset. */
struct answers_symbol {
	uint64_t start, end;
	uint32_t image;
	uint32_t name; /* in answers.texts; with SYMBOL_BOUNDS the function's vaddr, "0x1234", as it has no name */
	uint32_t module; /* kernel symbols: "[ext4]"; else ANSWERS_NONE */
	uint32_t source; /* enum symbol_source */
	uint64_t from_ns, until_ns; /* as in struct symbol */
};

struct answers_entry {
	uint64_t addr;
	uint32_t image, symbol; /* symbol ANSWERS_NONE: not known */
};

/* A process whose JIT-compiled code was asked for: how its names were taken. Texts are in answers.texts, ANSWERS_NONE: not
 * known. */
struct answers_process {
	int32_t pid, ns_pid; /* ns_pid 0: not known */
	uint32_t version; /* of its .NET runtime */
	uint32_t way; /* as --jit-names has it */
	uint32_t why; /* why they could not be taken */
	bool jitdump_early; /* its jitdump stopped early */
	uint64_t contradictions, doubts; /* struct jit_names_stats */
};

/* A zeroed struct is empty. Members are read by other modules of symbols/, changed only here. */
struct answers {
	struct intern texts;
	VEC(struct answers_image) images;
	VEC(struct answers_symbol) symbols;
	VEC(struct answers_entry) entries;
	VEC(struct answers_stripped) stripped;
	struct answers_lines lines;
	VEC(struct answers_process) processes;
	struct hashmap image_ids, symbol_ids, entry_ids; /* hash -> index, probed on by key + 1 */
	struct hashmap process_ids; /* pid -> index */
	uint64_t unkept; /* answers for times beyond ANSWERS_TIMES_MAX: their sources are needed again */
};

void answers_free(struct answers *a);

/* Each finds what equals its argument or adds it. 0, -ENOMEM, -E2BIG. */
int answers_image(struct answers *a, const struct answers_image *image, uint32_t *ret_image);
int answers_symbol(struct answers *a, const struct answers_symbol *symbol, uint32_t *ret_symbol);

/* Notes of an image that it is stripped, with its segments, which are copied. Once for each image. 0 or -ENOMEM. */
int answers_stripped(struct answers *a, uint32_t image, const struct image_build_id *build_id,
		     const struct image_segment *segments, size_t nsegments);

/* Notes a process; what was known of one of its PID is forgotten. 0 or -ENOMEM. */
int answers_process(struct answers *a, const struct answers_process *process);
const struct answers_process *answers_process_of(const struct answers *a, int32_t pid); /* NULL: nothing is known of it */

/* Finds an equal image without adding. 0 or -ENOENT. */
int answers_find_image(const struct answers *a, const struct answers_image *image, uint32_t *ret_image);

/* Whether an answer holds at some times only. */
static inline bool answers_timed(const struct answers *a, uint32_t symbol)
{
	return symbol != ANSWERS_NONE && (a->symbols.v[symbol].from_ns || a->symbols.v[symbol].until_ns != UINT64_MAX);
}

/* What is known of an address at a time: 0 and a symbol id or ANSWERS_NONE; -ENOENT: was never asked; -ESTALE: is known of
 * other times only. */
int answers_get(const struct answers *a, uint32_t image, uint64_t addr, uint64_t time_ns, uint32_t *ret_symbol);

/* Remembers an answer that answers_get did not know at that time, unless there are ANSWERS_TIMES_MAX for others; those
 * are counted in unkept. That nothing is known is for always. 0 or -ENOMEM. */
int answers_put(struct answers *a, uint32_t image, uint64_t addr, uint32_t symbol);

/* Puts another answer in the place of one that holds always. 0 or -ENOENT. */
int answers_replace(struct answers *a, uint32_t image, uint64_t addr, uint32_t symbol);

#endif
