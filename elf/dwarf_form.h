/*
 * Forms: how DWARF encodes the values of attributes (DWARF 5, section 7.5), and the meaning of a
 * value.
 */
#ifndef ELF_DWARF_FORM_H
#define ELF_DWARF_FORM_H

#include "elf/dwarf_unit.h"

#include <stdbool.h>
#include <stdint.h>

enum dwarf_kind {
	DWARF_IS_NUMBER, /* also an offset in another section */
	DWARF_IS_ADDRESS,
	DWARF_IS_ADDRESS_INDEX,
	DWARF_IS_TEXT, /* in .debug_info */
	DWARF_IS_STR,
	DWARF_IS_LINE_STR,
	DWARF_IS_STR_INDEX,
	DWARF_IS_STR_ALT, /* in .debug_str of the file of .gnu_debugaltlink */
	DWARF_IS_REF,     /* an offset in .debug_info */
	DWARF_IS_REF_ALT,
	DWARF_IS_REF_HERE, /* an offset from the unit; reading turns it into DWARF_IS_REF */
	DWARF_IS_LIST_INDEX,
	DWARF_IS_OTHER,
};

struct dwarf_value {
	uint64_t u;
	uint8_t kind; /* enum dwarf_kind */
};

/* Reads one value of an entry, or of a line table of version 5. */
void dwarf_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint16_t form, int64_t constant,
		struct dwarf_value *ret);

/* Reads one value of a form with a fixed size and of a kind from dwarf_form_kind. */
void dwarf_form_fixed(const struct dwarf_unit *u, struct dwarf_bytes *b, uint32_t bytes,
		      uint8_t kind, struct dwarf_value *ret);

/* The fixed size of a form in bytes; UINT32_MAX: its size varies. */
uint32_t dwarf_form_bytes(const struct dwarf_unit *u, uint16_t form);

/* The kind of value of a form with a fixed size: enum dwarf_kind. */
uint8_t dwarf_form_kind(uint16_t form);

/* Gives the address that a value stands for. False: none. */
bool dwarf_form_address(const struct dwarf_unit *u, const struct dwarf_value *v,
			uint64_t *ret_addr);

/* The text that a value stands for, or NULL. alt may be NULL. */
const char *dwarf_form_text(const struct dwarf_unit *u, struct dwarf_data *alt,
			    const struct dwarf_value *v);

#endif
