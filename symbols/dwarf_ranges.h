/* Which code an entry is of (DWARF 5, section 2.17), and what an address belongs to. */
#ifndef SYMBOLS_DWARF_RANGES_H
#define SYMBOLS_DWARF_RANGES_H

#include "symbols/dwarf_unit.h"

#define DWARF_RANGES_MAX ((size_t)1 << 20) /* of one entry */

struct dwarf_range {
	uint64_t start, end;
};
typedef VEC(struct dwarf_range) dwarf_ranges;

/* Ranges that belong to something, and what an address belongs to: that which begins last, and of equal ones the first added. */
struct dwarf_span {
	uint64_t start, end, max_end; /* max_end: of all up to this one */
	uint32_t value, order;
};
typedef VEC(struct dwarf_span) dwarf_spans;

void dwarf_spans_sort(dwarf_spans *spans);
const struct dwarf_span *dwarf_spans_find(const dwarf_spans *spans, uint64_t addr); /* NULL: nothing; sorted before */

/* Appends the code that an entry says is its. 0 (also: it says nothing), -EBADMSG, -E2BIG, -ENOMEM. */
int dwarf_entry_ranges(const struct dwarf_unit *u, const struct dwarf_entry *e, dwarf_ranges *ranges);

#endif
