/*
 * Source lines of JIT-compiled code: those of its jitdump, or of the portable PDBs of the assemblies that the code is of, by the maps to
 * IL that were captured.
 */
#ifndef SYMBOLS_JIT_LINES_H
#define SYMBOLS_JIT_LINES_H

#include "symbols/line_source.h"
#include "symbols/pdb_find.h"
#include "symbols/symbol.h"

#define JIT_LINES_METADATA_MAX ((uint32_t)256 << 20) /* of an assembly whose MVID is compared */

/* Opens a file by its path in the process's root. The caller closes *ret_fd. 0; -ENOENT; -ENOMEM; -errno. */
struct jit_lines_files {
	int (*open)(void *ctx, const char *path, int *ret_fd);
	int (*missing)(void *ctx, const struct portable_pdb_id *id); /* struct pdb_places */
	void *ctx;
	struct pdb_room *room; /* struct pdb_places */
};

/*
 * By addr. names (symbols/jit_names.h) is borrowed for life, files are asked as long. 0; -ENOENT: nothing is known of lines; -ENOMEM. An
 * assembly that is not the one whose code was compiled is not used.
 */
int jit_lines_open(struct symbol_provider *names, const struct jit_lines_files *files, struct line_source **ret_source);

#endif
