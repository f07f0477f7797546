/*
 * Units of .debug_info and their headers: DWARF 2 to 5 (https://dwarfstd.org, section 7.5 of
 * version 5), split DWARF and its GNU forerunner of version 4. The readers of DWARF cover only what
 * inlined functions and lines need. All input is checked; damage ends the reading of its unit.
 */
#ifndef ELF_DWARF_UNIT_H
#define ELF_DWARF_UNIT_H

#include "base/vec.h"
#include "elf/dwarf_bytes.h"
#include "elf/dwarf_data.h"

#define DWARF_UNITS_MAX ((size_t)1 << 18)
#define DWARF_UNIT_BYTES_MAX ((uint64_t)256 << 20) /* of a unit whose entries are all read */

struct dwarf_abbrevs;

/* One unit of .debug_info. */
struct dwarf_unit {
	struct dwarf_data *data;
	uint64_t off, dies, end; /* header, first entry, end */
	uint64_t abbrev_off, dwo_id;
	uint16_t version;
	uint8_t addr_bytes, off_bytes, type;
	bool is_split, in_package;
	/* True after dwarf_unit_begin, which sets the members below. */
	bool known;
	/* Holds .debug_addr and, before version 5, .debug_ranges. */
	struct dwarf_data *addr_data;
	uint64_t addr_base, str_offsets_base, rnglists_base, ranges_base, low_pc;
	/* In a package (.dwp): where this unit's part of each section begins. */
	uint64_t bases[DWARF_SECTIONS];
	struct dwarf_abbrevs *abbrevs; /* NULL: not read yet */
};

typedef VEC(struct dwarf_unit) dwarf_units;

/*
 * Reads the header of the unit at off. An unknown version becomes 0. Returns 0, -ENOENT (no unit)
 * or -ENOMEM.
 */
int dwarf_unit_at(struct dwarf_data *d, bool split, uint64_t off, struct dwarf_unit *ret_unit);

/*
 * Lists the units in order by their headers. Ends at a damaged header, at DWARF_UNITS_MAX or
 * without room. May drop d's pages. Returns 0 or -ENOMEM.
 */
int dwarf_units_list(struct dwarf_data *d, bool split, dwarf_units *units);

/*
 * Gives the bytes of the unit from the entry at off to its end. The unit is open. Returns 0 or
 * -EBADMSG.
 */
int dwarf_unit_bytes(const struct dwarf_unit *u, uint64_t off, struct dwarf_bytes *ret_bytes);

#endif
