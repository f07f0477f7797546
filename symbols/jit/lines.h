/*
 * Source lines of JIT-compiled code. They come from the process's jitdump, or from portable PDBs of
 * the assemblies, through the captured maps to IL.
 */
#ifndef SYMBOLS_JIT_LINES_H
#define SYMBOLS_JIT_LINES_H

#include "symbols/core/line_source.h"
#include "symbols/core/pdb_find.h"
#include "symbols/core/symbol.h"

#define JIT_LINES_METADATA_MAX ((uint32_t)256 << 20) /* of an assembly whose MVID is compared */

/*
 * Access to the files of a process. open: opens a file by its path in the process's root; the
 * caller closes *ret_fd. Returns 0; -ENOENT; -ENOMEM; -errno.
 */
struct jit_lines_files {
	int (*open)(void *ctx, const char *path, int *ret_fd);
	int (*missing)(void *ctx, const struct portable_pdb_id *id); /* struct pdb_places */
	void *ctx;
	struct pdb_budget *budget; /* struct pdb_places */
};

/*
 * Opens the lines by addr. names (symbols/jit/names.h) and files are borrowed for life. An assembly
 * other than the one whose code was compiled is not used. Returns 0; -ENOENT: no lines are known;
 * -ENOMEM.
 */
int jit_lines_open(struct symbol_provider *names, const struct jit_lines_files *files,
		   struct line_source **ret_source);

#endif
