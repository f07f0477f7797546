/* Entries of DWARF's .debug_info and the forms of their attributes (DWARF 5, section 7.5), as far as they are looked at. */
#ifndef SYMBOLS_DWARF_ENTRY_H
#define SYMBOLS_DWARF_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_data;
struct dwarf_unit;

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

/* The next entry. wanted NULL: all; else of entries of other tags only has_slots' DWARF_SIBLING counts. 0; -EBADMSG; -E2BIG: over
 * DWARF_STEPS_MAX. */
int dwarf_entry_next(const struct dwarf_unit *u, struct dwarf_bytes *b, bool (*wanted)(uint16_t tag), struct dwarf_entry *ret);

/* What a value stands for. */
bool dwarf_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret_addr);
const char *dwarf_text(const struct dwarf_unit *u, struct dwarf_data *alt, const struct dwarf_value *v); /* NULL: none */
uint64_t dwarf_number(const struct dwarf_entry *e, enum dwarf_slot slot); /* 0: none */
uint64_t dwarf_number_or(const struct dwarf_entry *e, enum dwarf_slot slot, uint64_t otherwise);

/* Reads one form: of entries, and of the tables of lines of version 5. */
void dwarf_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint16_t form, int64_t constant, struct dwarf_value *ret);

/* Bytes of a form, where it always has as many; UINT32_MAX: not. */
uint32_t dwarf_form_bytes(const struct dwarf_unit *u, uint16_t form);

/* What a form of a fixed number of bytes holds: enum dwarf_kind. */
uint8_t dwarf_form_kind(uint16_t form);

#endif
