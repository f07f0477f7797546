/*
 * Source lines of precompiled .NET code: the image's tables map code to IL, and its portable PDB
 * maps IL to lines.
 */
#ifndef SYMBOLS_R2R_LINES_H
#define SYMBOLS_R2R_LINES_H

#include "dotnet/pe.h"
#include "symbols/core/line_source.h"
#include "symbols/core/pdb_find.h"
#include "symbols/core/symbol.h"

/*
 * Opens the lines of the methods in an image's own metadata. file is borrowed during the call. The
 * provider symbols, an r2r_image of the same file, and the budget in places are borrowed for life.
 * places says where to search for the PDB.
 *
 * Returns 0; -ENOENT: no PDB is found, or the image has no table of places in IL; -EBADMSG,
 * -ENOTSUP, -E2BIG, -ENOMEM, -errno.
 */
int r2r_lines_open(const struct pe_file *file, const struct symbol_provider *symbols,
		   const struct pdb_places *places, struct line_source **ret_source);

#endif
