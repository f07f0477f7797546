/* Source lines of precompiled .NET code: from an image's tables to IL, and by its portable PDB to lines. */
#ifndef SYMBOLS_R2R_LINES_H
#define SYMBOLS_R2R_LINES_H

#include "symbols/line_source.h"
#include "symbols/pdb_find.h"
#include "symbols/pe.h"

/*
 * Lines of the methods of an image's own metadata; file is borrowed during the call, symbols (of the same image, an r2r_image) for
 * life. places: of the PDB, whose room is borrowed for life. 0; -ENOENT: the image has no PDB to be had, or no table of places in
 * IL; -EBADMSG, -ENOTSUP, -E2BIG, -ENOMEM, -errno.
 */
int r2r_lines_open(const struct pe_file *file, const struct symbol_provider *symbols,
		   const struct pdb_places *places, struct line_source **ret_source);

#endif
