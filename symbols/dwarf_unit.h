/*
 * Units and entries of DWARF 2 to 5 (https://dwarfstd.org, sections 7.5 and 2.17 of version 5), split DWARF and its GNU
 * forerunner of version 4 among them: as much as naming what was inlined at an address needs. Nothing here is believed
 * before it is checked; what does not fit ends the reading of its unit.
 */
#ifndef SYMBOLS_DWARF_UNIT_H
#define SYMBOLS_DWARF_UNIT_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/dwarf_data.h"

#define DWARF_UNITS_MAX ((size_t)1 << 18)
#define DWARF_ABBREVS_MAX ((size_t)1 << 20) /* of one table */
#define DWARF_ABBREV_BYTES_MAX ((uint64_t)16 << 20)
#define DWARF_RANGES_MAX ((size_t)1 << 20) /* of one entry */

/* Bytes while they are read: what lies outside is 0 and sets bad. */
struct dwarf_bytes {
	const unsigned char *p, *end;
	bool bad;
};

uint64_t dwarf_uint(struct dwarf_bytes *b, unsigned int bytes); /* little-endian, at most 8 */
uint64_t dwarf_uleb(struct dwarf_bytes *b);
int64_t dwarf_sleb(struct dwarf_bytes *b);
void dwarf_skip(struct dwarf_bytes *b, uint64_t n);

/* The attributes that are looked at. */
enum dwarf_slot {
	DWARF_SIBLING,
	DWARF_NAME,
	DWARF_LINKAGE_NAME,
	DWARF_LOW_PC,
	DWARF_HIGH_PC,
	DWARF_AT_RANGES,
	DWARF_ORIGIN,
	DWARF_SPECIFICATION,
	DWARF_CALL_FILE,
	DWARF_CALL_LINE,
	DWARF_STMT_LIST,
	DWARF_COMP_DIR,
	DWARF_LANGUAGE,
	DWARF_STR_OFFSETS_BASE,
	DWARF_ADDR_BASE,
	DWARF_RNGLISTS_BASE,
	DWARF_DWO_NAME,
	DWARF_DWO_ID,
	DWARF_GNU_RANGES_BASE,
	DWARF_SLOTS,
	DWARF_NO_SLOT = 255,
};

enum dwarf_kind {
	DWARF_IS_NUMBER, /* also offsets in sections */
	DWARF_IS_ADDRESS,
	DWARF_IS_ADDRESS_INDEX,
	DWARF_IS_TEXT, /* in .debug_info */
	DWARF_IS_STR,
	DWARF_IS_LINE_STR,
	DWARF_IS_STR_INDEX,
	DWARF_IS_STR_ALT, /* in .debug_str of the file of .gnu_debugaltlink */
	DWARF_IS_REF, /* an offset in .debug_info */
	DWARF_IS_REF_ALT,
	DWARF_IS_REF_HERE, /* counted from the unit; becomes DWARF_IS_REF when it is read */
	DWARF_IS_LIST_INDEX,
	DWARF_IS_OTHER,
};

struct dwarf_value {
	uint64_t u;
	uint8_t kind; /* enum dwarf_kind */
};

#define DWARF_BYTES_VARY 255

struct dwarf_spec {
	uint16_t form;
	uint8_t slot;
	uint8_t bytes, kind; /* of the form; DWARF_BYTES_VARY */
	int64_t constant; /* of DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first, n; /* specs */
	uint32_t fixed; /* bytes of the attributes, where they are always as many; UINT32_MAX: not */
	uint16_t tag;
	bool children, has_slots;
};

struct dwarf_abbrevs {
	VEC(struct dwarf_abbrev) list;
	VEC(struct dwarf_spec) specs;
	struct hashmap by_code; /* used where codes do not count up from 1 */
	bool sparse;
};

/* One unit of .debug_info. */
struct dwarf_unit {
	struct dwarf_data *data;
	uint64_t off, dies, end; /* header, first entry, end */
	uint64_t abbrev_off, dwo_id;
	uint16_t version;
	uint8_t addr_bytes, off_bytes, type;
	bool is_split, in_package;
	/* Known once its first entry was read. */
	bool known, has_ranges_base;
	struct dwarf_data *addr_data; /* whose .debug_addr and, before version 5, .debug_ranges are meant */
	uint64_t addr_base, str_offsets_base, rnglists_base, ranges_base, low_pc;
	/* Of a package (.dwp): what this unit's offsets in these sections are counted from. */
	uint64_t bases[DWARF_SECTIONS];
	struct dwarf_abbrevs *abbrevs; /* NULL: not read yet */
};

struct dwarf_entry {
	uint64_t off; /* in .debug_info */
	uint32_t has; /* bits by enum dwarf_slot */
	uint16_t tag; /* 0: the end of a list of siblings */
	bool children;
	struct dwarf_value v[DWARF_SLOTS];
};

static inline const struct dwarf_value *dwarf_attr_of(const struct dwarf_entry *e, enum dwarf_slot slot)
{
	return e->has >> slot & 1 ? &e->v[slot] : NULL;
}

typedef VEC(struct dwarf_unit) dwarf_units;

/* Reads the header of the unit at off, with version 0 where it is none of those known. 0; -ENOENT: there is none; -ENOMEM. */
int dwarf_unit_at(struct dwarf_data *d, bool split, uint64_t off, struct dwarf_unit *ret_unit);

/* Lists the units by their headers, in order; what is behind a damaged one is left out. 0, -ENOMEM, -E2BIG. */
int dwarf_units_list(struct dwarf_data *d, bool split, dwarf_units *units);
void dwarf_unit_forget(struct dwarf_unit *u); /* frees its abbreviations */

/* Reads the unit's own entry and what it says for the others. 0; -EBADMSG; -ENOMEM. */
int dwarf_unit_begin(struct dwarf_unit *u, struct dwarf_entry *ret_entry);

/* Reads the abbreviations, so that entries can be read. The unit is begun. 0; -EBADMSG; -ENOMEM. */
int dwarf_unit_open(struct dwarf_unit *u);

/* The bytes of the unit from the entry at off on. The unit is open. 0; -EBADMSG. */
int dwarf_unit_bytes(const struct dwarf_unit *u, uint64_t off, struct dwarf_bytes *ret_bytes);

/* The next entry. wanted NULL: all; else of entries of other tags only has_slots' DWARF_SIBLING counts. 0; -EBADMSG. */
int dwarf_entry_next(const struct dwarf_unit *u, struct dwarf_bytes *b, bool (*wanted)(uint16_t tag), struct dwarf_entry *ret);

/* What a value stands for. */
bool dwarf_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret_addr);
const char *dwarf_text(const struct dwarf_unit *u, struct dwarf_data *alt, const struct dwarf_value *v); /* NULL: none */
uint64_t dwarf_number(const struct dwarf_entry *e, enum dwarf_slot slot); /* 0: none */

/* Reads one form: of entries, and of the tables of lines of version 5. */
void dwarf_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint16_t form, int64_t constant, struct dwarf_value *ret);

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
