/*
 * The images of a recording: the file or code that each map record maps, and its symbol source on
 * this machine. A source is opened when one of its addresses is first looked up.
 */
#ifndef SYMBOLS_IMAGES_H
#define SYMBOLS_IMAGES_H

#include "container/opener.h"
#include "recording/perfdata.h"
#include "symbols/jit/runtime.h"
#include "symbols/jit/sources.h"
#include "symbols/store/lookup_cache.h"
#include "symbols/symtab/kernel_map.h"

#include <stdbool.h>
#include <stdint.h>

struct images;

/* A portable PDB that lines need and that this machine lacks; a symbol server may have it. */
struct images_pdb {
	unsigned char guid[16];
	char *name; /* of the file */
};

/* Counts of images whose source was opened or missing. */
struct images_stats {
	uint64_t opened;
	/* Absent or unreadable files. Files of other formats, such as .NET's, do not count. */
	uint64_t missing;
	uint64_t replaced;         /* files that differ from the one that was mapped */
	uint64_t pdbs_refused;     /* PDBs that did not fit the budget of dotnet/pdb_budget.h */
	const char *first_refused; /* the name of one refused PDB; borrowed */
	struct jit_sources_stats jit;
};

struct images_options {
	bool keep_cache; /* put each symbol found into lookup_cache, for a store */
	struct jit_sources_options jit;
	bool no_bounds; /* do not look up functions without a name */
	/*
	 * The start of the recording by CLOCK_REALTIME and by the clock of its records; 0: not
	 * known.
	 */
	uint64_t recorded_from_ns, from_ns;
	bool recorded_elsewhere; /* on another machine, as far as is known */
	/* lookup_cache was read from a recording, so only its wanted images lack a source. */
	bool has_store;
};

/* lookup_cache, kernel and opener (may be NULL) are borrowed. Returns 0 or -ENOMEM. */
int images_new(struct lookup_cache *lookup_cache, struct kernel_map *kernel, struct opener *opener,
	       const struct images_options *options, struct images **ret_images);
void images_free(struct images *im);

/*
 * Adds a build id of the recording's header, for map records of this path that carry none. Returns
 * 0, -ENOMEM, -E2BIG.
 */
int images_build_id(struct images *im, const char *path, const struct perfdata_build_id *id);

/*
 * Gets the image that a MMAP or MMAP2 record of a process maps. *ret_anonymous: memory without a
 * file. Returns 0, -ENOMEM, -E2BIG.
 */
int images_add_record(struct images *im, const struct perfdata_record *record, uint32_t *ret_image,
		      bool *ret_anonymous);

/* The runtime that the file of an image belongs to. */
enum jit_runtime images_runtime(const struct images *im, uint32_t image);

/*
 * Looks up the symbol that covers an address at a time, in this machine's source. The address has
 * the form that lookup_cache.h defines for the kind of image. *ret_symbol: a symbol id of
 * lookup_cache, or LOOKUP_NONE. *ret_timed: another symbol may hold at another time. lookup_cache
 * notes whether the source could not be read; a missing symbol is then not kept. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int images_lookup(struct images *im, uint32_t image, uint64_t addr, uint64_t time_ns,
		  uint32_t *ret_symbol, bool *ret_timed);

/*
 * Opens the file of an image. It is found and checked once for all uses. Returns 0, -ENOENT,
 * -ENOMEM, -errno.
 */
int images_open_again(struct images *im, uint32_t image, int *ret_fd);

/*
 * Notes in lookup_cache how the names of each process's JIT-compiled code were taken. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int images_note_processes(struct images *im);

/*
 * Gets how the names of a process's JIT-compiled code were taken, as text; "": profcpu did not take
 * them.
 */
void images_jit_way(const struct images *im, int32_t pid, char *text, size_t len);

/*
 * Whether the names of a JIT image were read while its process ran, which has ended since
 * (jit_sources_has_closed).
 */
bool images_has_closed(const struct images *im, uint32_t image);

/* Whether the recording holds names of the code of a JIT image's process. */
bool images_is_captured(const struct images *im, uint32_t image);

/*
 * Looks up the functions inlined at an address that a symbol covers, and their lines. *ret_chain: a
 * chain of lookup_cache->lines, or LOOKUP_NONE. *ret_unread: the source could not be read or is
 * gone, or its process has no memory left for lines; the result is then not kept. Returns 0,
 * -ENOMEM, -E2BIG.
 */
int images_lookup_lines(struct images *im, uint32_t image, uint32_t symbol, uint64_t addr,
			uint64_t time_ns, uint32_t *ret_chain, bool *ret_unread);

/* The missing PDBs so far; borrowed until the next lookup. */
const struct images_pdb *images_pdbs(const struct images *im, size_t *ret_n);

struct images_stats images_stats(const struct images *im);

#endif
