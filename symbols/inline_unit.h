/* One unit of DWARF, indexed as far as it was asked for: its functions, what was inlined into those that were hit, its lines. */
#ifndef SYMBOLS_INLINE_UNIT_H
#define SYMBOLS_INLINE_UNIT_H

#include "symbols/dwarf_lines.h"
#include "symbols/dwarf_ranges.h"
#include "symbols/dwarf_split.h"
#include "symbols/dwarf_unit.h"

#define INLINE_UNIT_SPANS_MAX ((size_t)1 << 20) /* of all its functions; those of one are left out that lead beyond */
#define INLINE_UNIT_NODES_MAX ((size_t)1 << 20) /* and their ranges */
#define INLINE_NO_FILE UINT32_MAX /* 0 is one, from DWARF 5 on */

/* A body that was inlined. Those inlined into it follow, up to end. */
struct inline_node {
	uint64_t origin; /* offset of the entry that it is a copy of */
	uint32_t first, n; /* ranges */
	uint32_t end; /* the next node that is not inside of this one */
	uint32_t call_file, call_line;
	bool has_origin, in_alt;
};

/* A function's code and what was inlined into it. */
struct inline_body {
	uint64_t off; /* its entry */
	uint32_t first, n; /* nodes, once known */
	bool known;
};

struct inline_unit {
	struct dwarf_unit *skeleton; /* of the file itself, borrowed; has the lines */
	struct dwarf_unit *unit; /* has the functions: skeleton, or split */
	struct dwarf_unit split;
	struct dwarf_data *split_data; /* of split, where it is in a file of its own */
	bool unmangled; /* in a language whose names the linker sees as they are written */
	bool deep; /* functions inside of others were looked for too */
	dwarf_spans functions; /* value: body */
	VEC(struct inline_body) bodies;
	VEC(struct inline_node) nodes;
	dwarf_ranges ranges;
	struct dwarf_lines lines, split_files;
};

/* Reads the unit's functions. place, package: for split DWARF; alt may be NULL. 0; -EBADMSG; -E2BIG; -ENOMEM. */
int inline_unit_new(struct dwarf_unit *skeleton, const struct dwarf_split_place *place, struct dwarf_package *package,
		    struct dwarf_data *alt, struct inline_unit **ret_unit);
void inline_unit_free(struct inline_unit *u);

/* The function at an address, and the nodes it is in, the outermost first, at most max. 0; -ENOENT: no function; -EBADMSG;
 * -ENOMEM. */
int inline_unit_find(struct inline_unit *u, uint64_t addr, const struct inline_body **ret_body,
		     const struct inline_node **ret_nodes, size_t max, size_t *ret_n);

/* The name of a file as functions of the unit number them; NULL: not known. */
const char *inline_unit_file(const struct inline_unit *u, uint32_t file);

size_t inline_unit_bytes(const struct inline_unit *u);

#endif
