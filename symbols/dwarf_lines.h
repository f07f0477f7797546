/* The table of lines of one unit (DWARF 2 to 5, section 6.2), decoded into rows in the order of their addresses. */
#ifndef SYMBOLS_DWARF_LINES_H
#define SYMBOLS_DWARF_LINES_H

#include "symbols/dwarf_unit.h"

#define DWARF_ROWS_MAX ((size_t)8 << 20) /* of one table */
#define DWARF_FILES_MAX ((size_t)1 << 20) /* and of folders */
#define DWARF_LINES_BYTES_MAX ((uint64_t)128 << 20) /* of one table */

struct dwarf_row {
	uint64_t addr;
	uint32_t line, file;
};

/* Rows without a gap between them: each reaches to the next, the last to end. */
struct dwarf_sequence {
	uint64_t start, end;
	uint32_t first, n; /* rows */
};

/* A zeroed struct is empty. */
struct dwarf_lines {
	VEC(struct dwarf_row) rows;
	VEC(struct dwarf_sequence) sequences; /* by start */
	VEC(const char *) files; /* as the table numbers them, with their folders; NULL: cannot be read. Live as the data */
};

/*
 * Reads the table at off. u: whose forms and sizes hold. only_files: no rows. What can be read of a damaged one is kept. 0;
 * -EBADMSG: nothing can; -E2BIG; -ENOMEM.
 */
int dwarf_lines_read(const struct dwarf_unit *u, struct dwarf_data *alt, uint64_t off, bool only_files, struct dwarf_lines *lines);
void dwarf_lines_free(struct dwarf_lines *lines);

/* The row of an address, or NULL. */
const struct dwarf_row *dwarf_lines_find(const struct dwarf_lines *lines, uint64_t addr);

#endif
