/*
 * Decides which functions of one DWARF unit cover an address, inlined ones included. Reads and
 * keeps only what lookups need: functions, lines, and the inlined bodies of functions that a lookup
 * has found.
 */
#ifndef ELF_INLINE_UNIT_H
#define ELF_INLINE_UNIT_H

#include "elf/dwarf_lines.h"
#include "elf/dwarf_ranges.h"
#include "elf/dwarf_split.h"
#include "elf/dwarf_unit.h"

/* Ranges of all functions; functions whose ranges exceed it are left out. */
#define INLINE_UNIT_SPANS_MAX ((size_t)1 << 20)
#define INLINE_UNIT_NODES_MAX ((size_t)1 << 20) /* nodes, and their ranges */
#define INLINE_NO_FILE UINT32_MAX               /* file 0 exists since DWARF 5 */

/* An inlined body. The bodies that were inlined into it follow, up to end. */
struct inline_node {
	uint64_t origin;   /* offset of the entry of the inlined function */
	uint32_t first, n; /* ranges */
	uint32_t end;      /* the next node outside this one */
	uint32_t call_file, call_line;
	bool has_origin, in_alt;
};

/* A function and its inlined bodies. */
struct inline_body {
	uint64_t off;      /* its entry */
	uint32_t first, n; /* nodes, once known */
	bool known;
};

struct inline_unit {
	struct dwarf_unit *skeleton; /* the unit in the file itself, borrowed; has the lines */
	struct dwarf_unit *unit;     /* has the functions: skeleton, or split */
	struct dwarf_unit split;
	struct dwarf_data *split_data; /* of split, if it is in a .dwo file */
	bool unmangled;                /* the language does not mangle names */
	bool deep;                     /* nested functions were indexed too */
	dwarf_spans functions;         /* value: body */
	VEC(struct inline_body) bodies;
	VEC(struct inline_node) nodes;
	dwarf_ranges ranges;
	struct dwarf_lines lines, split_files;
};

/*
 * Reads the unit's functions. place and package are for split DWARF. alt may be NULL. Returns 0,
 * -EBADMSG, -E2BIG or -ENOMEM.
 */
int inline_unit_new(struct dwarf_unit *skeleton, const struct dwarf_split_place *place,
		    struct dwarf_package *package, struct dwarf_data *alt,
		    struct inline_unit **ret_unit);
void inline_unit_free(struct inline_unit *u);

/*
 * Finds the function at an address and the nodes that cover it: at most max, the outermost first.
 * Returns 0, -ENOENT (no function), -EBADMSG or -ENOMEM.
 */
int inline_unit_find(struct inline_unit *u, uint64_t addr, const struct inline_body **ret_body,
		     const struct inline_node **ret_nodes, size_t max, size_t *ret_n);

/* The name of a file by the unit's number; NULL: unknown. */
const char *inline_unit_file(const struct inline_unit *u, uint32_t file);

size_t inline_unit_bytes(const struct inline_unit *u);

#endif
