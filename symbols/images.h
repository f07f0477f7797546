/*
 * The images of a recording: what each map record maps, and the symbol source for it on this machine. A source is opened
 * when an address of it is asked for the first time.
 */
#ifndef SYMBOLS_IMAGES_H
#define SYMBOLS_IMAGES_H

#include "container/opener.h"
#include "recording/perfdata.h"
#include "symbols/answers.h"
#include "symbols/jit_sources.h"
#include "symbols/kernel_map.h"

#include <stdbool.h>
#include <stdint.h>

struct images;

/* A portable PDB that lines need, and that is nowhere here: a symbol server may have it. */
struct images_pdb {
	unsigned char guid[16];
	char *name; /* of the file */
};

/* Where sources were not to be had, counted by image. */
struct images_stats {
	uint64_t opened;
	uint64_t missing; /* not there or not readable; files of other formats, such as .NET's, are neither */
	uint64_t replaced; /* the file there now is another one than was mapped */
	uint64_t pdbs_refused; /* symbols/pdb_room.h has no room for them */
	const char *first_refused; /* the name of one; borrowed */
	struct jit_sources_stats jit;
};

struct images_options {
	bool keep_answers; /* each answer is put into answers, for a store */
	struct jit_sources_options jit;
	bool no_bounds; /* functions without a name are not asked for */
	/* One moment, that of the recording's begin, by CLOCK_REALTIME and by the clock of its records; 0: not known. */
	uint64_t recorded_from_ns, from_ns;
	bool recorded_elsewhere; /* on another machine, as far as is known */
	bool has_store; /* answers came from a recording, so that only images that are wanted lack a source */
};

/* answers, kernel and opener (may be NULL) are borrowed. 0 or -ENOMEM. */
int images_new(struct answers *answers, struct kernel_map *kernel, struct opener *opener,
	       const struct images_options *options, struct images **ret_images);
void images_free(struct images *im);

/* A build id from the recording's header, for map records of this path that carry none. 0, -ENOMEM, -E2BIG. */
int images_build_id(struct images *im, const char *path, const struct perfdata_build_id *id);

/* What a MMAP or MMAP2 record maps. *ret_anonymous: memory without a file. */
enum answers_kind images_kind(const struct perfdata_record *record, bool *ret_anonymous);

/* The image that a MMAP or MMAP2 record of a process maps. *ret_anonymous: memory without a file. 0, -ENOMEM, -E2BIG. */
int images_of_record(struct images *im, const struct perfdata_record *record, uint32_t *ret_image,
		     bool *ret_anonymous);

/*
 * Asks this machine's source for what covers an address (the image's kind of address, answers.h) at a time.
 * 0 and a symbol id of answers, or ANSWERS_NONE; *ret_timed: there may be another answer at another time. -ENOMEM, -E2BIG.
 * Notes in answers whether the image's source could not be read; such an answer is not kept.
 */
int images_ask(struct images *im, uint32_t image, uint64_t addr, uint64_t time_ns, uint32_t *ret_symbol,
	       bool *ret_timed);

/* Notes in answers how names of processes' JIT-compiled code were taken. 0, -ENOMEM, -E2BIG. */
int images_note_processes(struct images *im);

/* How names of a process's JIT-compiled code were taken, as text; "": not by us. */
void images_way(const struct images *im, int32_t pid, char *text, size_t len);

/* Whether the recording itself has something of the code of a JIT image's process. */
bool images_is_captured(const struct images *im, uint32_t image);

/*
 * Asks which functions were inlined at an address that a symbol covers, and the lines there. 0 and a chain of answers->lines, or
 * ANSWERS_NONE. *ret_unread: what would know could not be read, or is not on this machine any more; that is not kept. -ENOMEM, -E2BIG.
 */
int images_ask_lines(struct images *im, uint32_t image, uint32_t symbol, uint64_t addr, uint64_t time_ns, uint32_t *ret_chain,
		     bool *ret_unread);

/* Those that were met; borrowed until the next question. */
const struct images_pdb *images_pdbs(const struct images *im, size_t *ret_n);

struct images_stats images_stats(const struct images *im);

#endif
