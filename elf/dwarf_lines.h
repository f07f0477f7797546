/* The line table of one unit (DWARF 2 to 5, section 6.2), decoded into rows sorted by address. */
#ifndef ELF_DWARF_LINES_H
#define ELF_DWARF_LINES_H

#include "elf/dwarf_unit.h"

#define DWARF_ROWS_MAX ((size_t)8 << 20)            /* of one table */
#define DWARF_FILES_MAX ((size_t)1 << 20)           /* files, and folders */
#define DWARF_LINES_BYTES_MAX ((uint64_t)128 << 20) /* of one table */

struct dwarf_row {
	uint64_t addr;
	uint32_t line, file;
};

/* Rows without a gap between them. Each row reaches to the next one, the last to end. */
struct dwarf_sequence {
	uint64_t start, end;
	uint32_t first, n; /* rows */
};

/* A zeroed struct is empty. */
struct dwarf_lines {
	VEC(struct dwarf_row) rows;
	VEC(struct dwarf_sequence) sequences; /* sorted by start */
	/* By the table's numbers, with folders; NULL: unreadable. Valid as long as the data. */
	VEC(const char *) files;
};

/*
 * Reads the table at off. u gives the forms and sizes. only_files: skip the rows. Keeps the
 * readable part of a damaged table. Returns 0, -EBADMSG (nothing is readable), -E2BIG or -ENOMEM.
 */
int dwarf_lines_read(const struct dwarf_unit *u, struct dwarf_data *alt, uint64_t off,
		     bool only_files, struct dwarf_lines *lines);
void dwarf_lines_free(struct dwarf_lines *lines);

/* The row of an address, or NULL. */
const struct dwarf_row *dwarf_lines_find(const struct dwarf_lines *lines, uint64_t addr);

#endif
