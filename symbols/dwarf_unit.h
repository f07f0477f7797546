/*
 * Units and entries of DWARF 2 to 5 (https://dwarfstd.org, sections 7.5 and 2.17 of version 5), split DWARF and its GNU
 * forerunner of version 4 among them: as much as naming what was inlined at an address needs. Nothing here is believed
 * before it is checked; what does not fit ends the reading of its unit.
 */
#ifndef SYMBOLS_DWARF_UNIT_H
#define SYMBOLS_DWARF_UNIT_H

#include "base/vec.h"
#include "symbols/dwarf_abbrev.h"
#include "symbols/dwarf_data.h"
#include "symbols/dwarf_entry.h"

#define DWARF_UNITS_MAX ((size_t)1 << 18)
#define DWARF_UNIT_BYTES_MAX ((uint64_t)256 << 20) /* of one whose entries are all read */

/* One unit of .debug_info. */
struct dwarf_unit {
	struct dwarf_data *data;
	uint64_t off, dies, end; /* header, first entry, end */
	uint64_t abbrev_off, dwo_id;
	uint16_t version;
	uint8_t addr_bytes, off_bytes, type;
	bool is_split, in_package;
	/* Known once its first entry was read. */
	bool known;
	struct dwarf_data *addr_data; /* whose .debug_addr and, before version 5, .debug_ranges are meant */
	uint64_t addr_base, str_offsets_base, rnglists_base, ranges_base, low_pc;
	/* Of a package (.dwp): what this unit's offsets in these sections are counted from. */
	uint64_t bases[DWARF_SECTIONS];
	struct dwarf_abbrevs *abbrevs; /* NULL: not read yet */
};

typedef VEC(struct dwarf_unit) dwarf_units;

/* Reads the header of the unit at off, with version 0 where it is none of those known. 0; -ENOENT: there is none; -ENOMEM. */
int dwarf_unit_at(struct dwarf_data *d, bool split, uint64_t off, struct dwarf_unit *ret_unit);

/* Lists the units by their headers, in order; what is behind a damaged one, or behind DWARF_UNITS_MAX, is left out. May
 * drop d's data. 0 or -ENOMEM. */
int dwarf_units_list(struct dwarf_data *d, bool split, dwarf_units *units);
void dwarf_unit_forget(struct dwarf_unit *u); /* frees its abbreviations */

/* Reads the unit's own entry and what it says for the others. 0; -EBADMSG; -E2BIG; -ENOMEM. */
int dwarf_unit_begin(struct dwarf_unit *u, struct dwarf_entry *ret_entry);

/* Reads the abbreviations, so that entries can be read. The unit is begun. 0; -EBADMSG; -E2BIG; -ENOMEM. */
int dwarf_unit_open(struct dwarf_unit *u);

/* The bytes of the unit from the entry at off on. The unit is open. 0; -EBADMSG. */
int dwarf_unit_bytes(const struct dwarf_unit *u, uint64_t off, struct dwarf_bytes *ret_bytes);

#endif
