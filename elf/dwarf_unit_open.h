/*
 * Prepares a unit in two steps, so that its entries can be read: begin reads the unit's own entry,
 * open reads the abbreviations.
 */
#ifndef ELF_DWARF_UNIT_OPEN_H
#define ELF_DWARF_UNIT_OPEN_H

#include "elf/dwarf_entry.h"

/*
 * Reads the unit's own entry and its settings for all other entries. Returns 0, -EBADMSG, -E2BIG or
 * -ENOMEM.
 */
int dwarf_unit_begin(struct dwarf_unit *u, struct dwarf_entry *ret_entry);

/* Reads the abbreviations. dwarf_unit_begin comes first. Returns 0, -EBADMSG, -E2BIG or -ENOMEM. */
int dwarf_unit_open(struct dwarf_unit *u);

/* Frees the abbreviations. */
void dwarf_unit_forget(struct dwarf_unit *u);

#endif
