/* What the files of symbols/images.h share. */
#ifndef SYMBOLS_IMAGES_IMPL_H
#define SYMBOLS_IMAGES_IMPL_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/function_bounds.h"
#include "symbols/image_file.h"
#include "symbols/images.h"
#include "symbols/line_source.h"
#include "symbols/pe.h"

/* Where an image with precompiled code looks for other assemblies. */
struct images_beside {
	struct images *images;
	uint32_t image;
};

/* Symbol of answers + 1 by symbol.piece; 0: was not asked for. */
struct images_pieces {
	VEC(uint32_t) symbols;
};

/* Whether the file of an image is a single-file program. */
enum images_bundle {
	IMAGES_BUNDLE_UNASKED,
	IMAGES_BUNDLE_NONE,
	IMAGES_BUNDLE_IS,
	IMAGES_BUNDLE_UNKNOWN, /* it cannot be found or read */
};

/* A file that was looked into for a bundle. */
struct images_bundle_file {
	uint64_t identity; /* where it has one */
	bool is_bundle;
};

/* What is needed to find an image's source, and the source once it was looked for. */
struct images_source {
	int32_t pid; /* a process that mapped it, and where */
	uint64_t start, end;
	uint64_t mapped_ns; /* and when; 0: not known, as before the recording */
	bool tried, unread;
	struct image *elf;
	bool bounds_tried;
	struct function_bounds bounds;
	bool lines_tried, lines_unread;
	struct line_source *lines; /* NULL: there are none */
	struct symbol_provider *precompiled; /* .NET code in it, also beside elf */
	bool precompiled_shared; /* it is another image's, of the same program */
	enum images_bundle bundle;
	uint64_t bundle_identity; /* where it is one */
	struct images_beside *beside;
	struct images_pieces pieces; /* of files and the kernel */
	struct images_pieces precompiled_pieces;
};

struct images_header_id {
	uint32_t path; /* in answers->texts */
	struct image_build_id id;
};

struct images {
	struct answers *answers;
	struct kernel_map *kernel;
	struct opener *opener;
	VEC(struct images_source) sources; /* by image id; may be shorter than answers->images */
	struct jit_sources *jit;
	uint64_t began_ns; /* of the first question; later ones are of later times */
	bool began;
	struct hashmap header_ids; /* path text id -> index into ids */
	VEC(struct images_header_id) ids;
	VEC(struct images_pdb) pdbs; /* that lines need, and that are nowhere here */
	struct pdb_rooms pdb_rooms;
	VEC(struct pdb_room *) process_rooms;
	struct hashmap room_of; /* PID -> index into process_rooms */
	VEC(struct images_bundle_file) bundle_files;
	struct hashmap bundle_file_ids; /* of device, inode and time -> index into bundle_files */
	struct hashmap bundles_told; /* image and PID: it maps the same program as the image's first process, or nobody knows */
	struct images_stats stats;
	struct images_options options;
	struct hashmap jit_ids; /* image and piece -> symbol of answers + 1: many images can share a perf map */
	struct hashmap bounds_ids; /* image and function without a name -> symbol of answers */
};

/* Makes the source of an image, not looked for yet, if there is none. 0 or -ENOMEM. */
int images_reach(struct images *im, uint32_t image);

/* Looks for the source of a file's names, once. 0 or -ENOMEM. */
int images_open(struct images *im, uint32_t image);

/* Where files of the process that an image is of are looked for. */
struct image_file_place images_place(const struct images *im, const struct images_source *s);

/* The file of an image, if it is still the one that was mapped. 0, -ENOENT, -ESTALE, -ENOMEM. */
int images_find_file(const struct images *im, const struct answers_image *key, const struct images_source *s, int *ret_fd);

/* The image of a process that maps another single-file program than the others that have its path and build id is one of its own: key gets
 * its PID. 0 or -ENOMEM. */
int images_tell_bundle(struct images *im, const struct perfdata_record *record, struct answers_image *key);

/* Gives source its precompiled where fd, of that build id, is a single-file program. 0, also where it is none; -ESTALE, -ENOENT, -EACCES:
 * the very program cannot be had; -ENOMEM, -errno. */
int images_open_bundle(struct images *im, const struct answers_image *key, struct images_source *s, int fd);

/* r2r_beside: an assembly in the image's directory, or one of that name that the process mapped from elsewhere. */
int images_open_beside(void *ctx, const char *name, struct pe_file *ret_file);

/* Where debug files are looked for: the target's root, and ours, which is opened and the caller's. */
size_t images_roots(const struct images *im, const struct images_source *s, int roots[2], int *ret_own);

#endif
