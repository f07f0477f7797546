/*
 * The code ranges of an entry (DWARF 5, section 2.17), and a search from an address to its owner.
 */
#ifndef ELF_DWARF_RANGES_H
#define ELF_DWARF_RANGES_H

#include "elf/dwarf_entry.h"

#define DWARF_RANGES_MAX ((size_t)1 << 20) /* of one entry */

struct dwarf_range {
	uint64_t start, end;
};
typedef VEC(struct dwarf_range) dwarf_ranges;

/*
 * A range and its owner. If several ranges cover an address, the one that starts last wins. If two
 * start together, the one that was added first wins.
 */
struct dwarf_span {
	uint64_t start, end, max_end; /* max_end: the largest end up to this one */
	uint32_t value, order;        /* value: the owner, the caller's number */
};
typedef VEC(struct dwarf_span) dwarf_spans;

void dwarf_spans_sort(dwarf_spans *spans);

/* The span of an address, or NULL. The spans are sorted. */
const struct dwarf_span *dwarf_spans_find(const dwarf_spans *spans, uint64_t addr);

/*
 * Appends the code ranges of an entry. Returns 0 (also for an entry without code), -EBADMSG, -E2BIG
 * or -ENOMEM.
 */
int dwarf_entry_ranges(const struct dwarf_unit *u, const struct dwarf_entry *e,
		       dwarf_ranges *ranges);

#endif
