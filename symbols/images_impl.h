/*
 * Shared by the parts of images: images and their files (images.c), lookups of symbols
 * (images_lookup.c), lines (images_lines.c), single-file .NET programs (images_bundle.c), and what
 * to free when memory is short (images_room.c).
 */
#ifndef SYMBOLS_IMAGES_IMPL_H
#define SYMBOLS_IMAGES_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/pe.h"
#include "elf/cfi_frames.h"
#include "symbols/core/image_file.h"
#include "symbols/core/line_source.h"
#include "symbols/images.h"
#include "symbols/map_record.h"

/* The image whose directory and process may have other assemblies, as ctx of r2r_assembly_opener.
 */
struct images_beside {
	struct images *images;
	uint32_t image;
};

/* Symbols by symbol.piece: id in lookup_cache + 1; 0: not looked up. */
struct images_pieces {
	VEC(uint32_t) symbols;
};

/* Whether the file of an image is a single-file .NET program. */
enum images_bundle {
	IMAGES_BUNDLE_NOT_SEARCHED,
	IMAGES_BUNDLE_NONE,
	IMAGES_BUNDLE_IS,
	IMAGES_BUNDLE_UNKNOWN, /* the file cannot be found or read */
};

/* A file that was searched for a bundle. */
struct images_bundle_file {
	uint64_t dev, ino, changed_ns;
	uint64_t identity; /* valid with is_bundle */
	bool is_bundle;
};

/* The facts that find an image's source, and the source after the search for it. */
struct images_source {
	int32_t pid; /* a process that mapped the image, and its addresses */
	uint64_t start, end;
	uint64_t mapped_ns; /* time of that map; 0: not known, or before the recording */
	bool tried, unread;
	bool opened;              /* once */
	bool looked_up;           /* an address of it, in this run */
	enum jit_runtime runtime; /* that the file belongs to */
	struct image *elf;
	int fd; /* of the file, kept open for a while; -1: none */
	bool frames_tried;
	struct cfi_frames *frames; /* NULL: there are none; read from fd */
	bool lines_tried, lines_unread;
	struct line_source *lines;           /* NULL: there are none */
	struct symbol_provider *precompiled; /* .NET code in the file, also beside elf */
	bool precompiled_shared;             /* owned by another image of the same program */
	enum images_bundle bundle;
	uint64_t bundle_identity; /* with IMAGES_BUNDLE_IS */
	struct images_beside *beside;
	/*
	 * The next image that its process mapped from a file of the same name, and the last one of
	 * the first one's list. Each is an image id + 1.
	 */
	uint32_t next_of_name, last_of_name;
	struct images_pieces pieces; /* of files and the kernel */
	struct images_pieces precompiled_pieces;
	int32_t held_for;     /* the process that held_bytes count for */
	uint64_t held_bytes;  /* 0: not in held */
	uint64_t freed_bytes; /* that room was made with; 0: none, or read again */
	bool gone;            /* its file could not be found again */
};

struct images {
	struct lookup_cache *lookup_cache;
	struct kernel_map *kernel;
	struct opener *opener; /* borrowed, or NULL: use no process */
	struct opener *alone;  /* without that one: for debug files in our own root */
	/* by image id; may be shorter than lookup_cache->images */
	VEC(struct images_source) sources;
	struct jit_sources *jit;
	uint64_t began_ns; /* time of the first lookup; later lookups have later times */
	bool began;
	struct hashmap by_name; /* hash of PID and name of the file -> first such image */
	size_t beside_opens;    /* by images_open_beside */
	struct map_record_ids header_ids;
	VEC(struct images_pdb) pdbs; /* PDBs that lines need and that this machine lacks */
	struct pdb_budget_total pdb_budget_total;
	VEC(struct pdb_budget *) process_budgets;
	struct hashmap budget_of; /* PID -> index into process_budgets */
	VEC(struct images_bundle_file) bundle_files;
	/* hash of device, inode and change time -> index; collisions use key + 1 */
	struct hashmap bundle_file_ids;
	/*
	 * Image and PID: the process maps the same program as the image's first process, or that is
	 * not known.
	 */
	struct hashmap same_bundles;
	struct images_stats stats;
	struct images_options options;
	/*
	 * Image and piece -> symbol of lookup_cache + 1. A hash, because many images can share one
	 * perf map.
	 */
	struct hashmap jit_ids;
	struct hashmap bounds_ids;   /* likewise, by image and offset of the FDE */
	VEC(uint32_t) open_files;    /* images with fd */
	VEC(uint32_t) held;          /* images with a source that can be freed and read again */
	struct hashmap held_kib;     /* process -> KiB of these sources */
	uint64_t held_bytes;         /* of all */
	uint64_t memory_first;       /* that was left at first; 0: not known yet */
	size_t files_max, next_file; /* the most of them, and the next to be closed */
};

/* Makes an entry in sources for an image, if there is none. Returns 0 or -ENOMEM. */
int images_add_source(struct images *im, uint32_t image);

/* Opens the source of a file's names, once. Returns 0 or -ENOMEM. */
int images_open(struct images *im, uint32_t image);

/* Frees all of a source that can be read again. */
void images_source_close(struct images_source *s);

/* Notes a source that was opened, for the functions below. Returns 0 or -ENOMEM. */
int images_hold(struct images *im, uint32_t image);

/*
 * Whether a source may be opened. If it was freed, that is work of this thread's process
 * (elf_budget_work).
 */
bool images_may_reopen(struct images_source *s);

/*
 * Frees half of the sources of the process that takes the most, except that of one image. Sources
 * that cannot be read again come last, and only for another process. If memory is not short, it is
 * work of this thread's process. Returns false if nothing was freed.
 */
bool images_make_room(struct images *im, uint32_t except);

/* The same until half of the bytes are free. */
bool images_make_most_room(struct images *im, uint32_t except);

/* Makes room if little memory is left. */
void images_keep_room(struct images *im, uint32_t except);

/* The place to search for files of the process that mapped an image. */
struct image_file_place images_place(const struct images *im, const struct images_source *s);

/*
 * Finds the file of an image, if it is still the one that was mapped. Returns 0, -ENOENT, -ESTALE,
 * -ENOMEM.
 */
int images_find_file(const struct images *im, const struct image_key *key,
		     const struct images_source *s, int *ret_fd);

/*
 * The file of an image as images_find_file finds it, opened once for all uses. *ret_fd is borrowed
 * until the next call.
 */
int images_file(struct images *im, uint32_t image, int *ret_fd);

/*
 * Reads the headers of an image's file, which the caller closes. Do not keep them: a hostile file
 * has 2 MiB of them. The descriptor is borrowed until the next call of images_file. Errors: as for
 * images_file and elf_file_open.
 */
int images_headers(struct images *im, uint32_t image, struct elf_file *ret_file);

/*
 * Sets the PID in key if a process maps another single-file program than the image of that key has.
 * Such programs can share path and build id. Returns 0 or -ENOMEM.
 */
int images_separate_bundle(struct images *im, const struct perfdata_record *record,
			   struct image_key *key);

/*
 * Sets source->precompiled if fd, which has the build id of key, is a single-file program. Returns
 * 0, also if it is none; -ESTALE, -ENOENT, -EACCES: the mapped program itself cannot be opened;
 * -ENOMEM, -errno.
 */
int images_open_bundle(struct images *im, const struct image_key *key, struct images_source *s,
		       int fd);

/* r2r_assembly_opener: frees sources of other images. */
bool images_make_room_beside(void *ctx);

/*
 * r2r_assembly_opener: opens an assembly in the image's directory, or one of that name that the
 * process mapped from elsewhere.
 */
int images_open_beside(void *ctx, const char *name, struct pe_file *ret_file);

/*
 * Gets the roots to search for debug files of an image: the target's and ours. Returns their
 * number. The path is the target's choice, so rights are those of image_file_find. Our own rights
 * open a file only if a build id shows that it belongs to the image.
 */
size_t images_roots(struct images *im, const struct images_source *s, const struct elf_file *file,
		    struct opener_place roots[2]);

/*
 * Notes why an image's source gives no names. key is that of an image in lookup_cache. A reason
 * that was known first stays, because on another machine files are missing for other reasons.
 */
void images_note_why(struct images *im, const struct image_key *key, enum image_reason why);

#endif
