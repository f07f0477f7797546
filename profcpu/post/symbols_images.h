/*
 * The images that `profcpu symbols` handles, from a recording, a process or files, each with its
 * symbols and its debug file.
 */
#ifndef PROFCPU_POST_SYMBOLS_IMAGES_H
#define PROFCPU_POST_SYMBOLS_IMAGES_H

#include "base/vec.h"
#include "elf/debug_file.h"
#include "symbols/core/symbol.h"
#include "symbols/symbolizer.h"

#include <stdbool.h>

struct symbols_image {
	char *path;
	struct build_id build_id; /* len 0: none */
	/* Best table of the image itself: SYMBOL_SYMTAB, SYMBOL_R2R, SYMBOL_DYNSYM, SYMBOL_NONE. */
	enum symbol_source own;
	enum debug_file_place place;     /* of its debug file on this machine */
	char *debug_path;                /* of its debug file, inside its root; NULL: none */
	pid_t pid;                       /* has it mapped; 0: no process was given */
	bool elsewhere;                  /* path is in another root than ours */
	bool foreign;                    /* a file of another user, named on the command line */
	bool stripped;                   /* a debug file would add names */
	bool recorded;                   /* sampled in a recording; then the next three are set */
	uint64_t named, placed, unknown; /* addresses */
};

struct symbols_images {
	VEC(struct symbols_image) list;
	VEC(struct symbolizer_pdb) pdbs; /* missing PDBs; only with lines */
	struct opener *opener;           /* NULL: not needed yet */
};

/*
 * Adds the images of `what`: a PID, a recording (DIR, perf.data, prof.tar.gz), or an ELF file. A
 * recording gives only sampled images. Files of other formats are left out. lines: add the missing
 * PDBs for the lines of a recording too. 0; -errno after one log_error line.
 */
int post_symbols_images_add(struct symbols_images *images, const char *what, bool lines,
			    bool *ret_is_recording);
/*
 * Opens a file of our root at a path that was made from the image's. If a recording or a process
 * chose it, the file is opened with its rights or those of nobody. 0 or -errno.
 */
int post_symbols_images_open(struct symbols_images *images, const struct symbols_image *image,
			     const char *path, int *ret_fd);
void post_symbols_images_free(struct symbols_images *images);

#endif
