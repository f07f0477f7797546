/* The images that `profcpu symbols` is about: of a recording, a process, or files, with what symbols there are of each. */
#ifndef PROFCPU_SYMBOLS_IMAGES_H
#define PROFCPU_SYMBOLS_IMAGES_H

#include "base/vec.h"
#include "symbols/debug_file.h"
#include "symbols/symbol.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

struct symbols_image {
	char *path;
	struct image_build_id build_id; /* len 0: it has none */
	enum symbol_source own; /* the best table of its own: SYMBOL_SYMTAB, SYMBOL_R2R, SYMBOL_DYNSYM, SYMBOL_NONE */
	enum debug_file_place place; /* of its debug file on this machine */
	char *debug_path; /* of that, inside the root it was found in; NULL */
	bool elsewhere; /* its path is one of another root than ours */
	bool recorded; /* it is of a recording, and these count its addresses */
	bool stripped; /* names are missing that a debug file has */
	uint64_t named, placed, unknown;
};

struct symbols_images {
	VEC(struct symbols_image) list;
	VEC(struct symbolizer_pdb) pdbs; /* with lines: that are nowhere here */
};

/*
 * Adds the images of what: a process by its PID, a recording (DIR, perf.data, prof.tar.gz) by what was sampled, or an ELF file.
 * Files of other formats are left out. lines: also the PDBs that the
 * lines of a recording need. 0; -errno after one line by log_error.
 */
int symbols_images_add(struct symbols_images *images, const char *what, bool lines, bool *ret_is_recording);
void symbols_images_free(struct symbols_images *images);

#endif
