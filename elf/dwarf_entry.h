/* Entries of .debug_info with the attributes that profcpu reads (DWARF 5, section 7.5). */
#ifndef ELF_DWARF_ENTRY_H
#define ELF_DWARF_ENTRY_H

#include "elf/dwarf_abbrev.h"
#include "elf/dwarf_form.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_entry {
	uint64_t off; /* in .debug_info */
	uint32_t has; /* bits by enum dwarf_slot */
	uint16_t tag; /* 0: the end of a list of siblings */
	bool children;
	struct dwarf_value v[DWARF_SLOTS];
};

/* The value of an attribute, or NULL. */
static inline const struct dwarf_value *dwarf_entry_attr(const struct dwarf_entry *e,
							 enum dwarf_slot slot)
{
	return e->has >> slot & 1 ? &e->v[slot] : NULL;
}

/*
 * Reads the next entry. wanted (may be NULL) selects tags. An entry with another tag may come
 * without its attributes, except DWARF_SIBLING. Returns 0, -EBADMSG or -E2BIG (over
 * DWARF_STEPS_MAX).
 */
int dwarf_entry_next(const struct dwarf_unit *u, struct dwarf_bytes *b,
		     bool (*wanted)(uint16_t tag), struct dwarf_entry *ret);

/* The number of an attribute; 0 or `otherwise`: it has none. */
uint64_t dwarf_entry_number(const struct dwarf_entry *e, enum dwarf_slot slot);
uint64_t dwarf_entry_number_or(const struct dwarf_entry *e, enum dwarf_slot slot,
			       uint64_t otherwise);

#endif
