/*
 * Tables of abbreviations: the attributes of a unit's entries and their forms (DWARF 5, section
 * 7.5.3).
 */
#ifndef ELF_DWARF_ABBREV_H
#define ELF_DWARF_ABBREV_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "elf/dwarf_unit.h"

#include <stdbool.h>
#include <stdint.h>

#define DWARF_ABBREVS_MAX ((size_t)1 << 20) /* of one table */
#define DWARF_ABBREV_BYTES_MAX ((uint64_t)16 << 20)

/* The attributes that profcpu reads. Others are skipped. */
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

#define DWARF_BYTES_VARY 255

struct dwarf_spec {
	uint16_t form;
	uint8_t slot;        /* enum dwarf_slot */
	uint8_t bytes, kind; /* of the form; DWARF_BYTES_VARY: no fixed size */
	int64_t constant;    /* of DW_FORM_implicit_const */
};

struct dwarf_abbrev {
	uint64_t code;
	uint32_t first, n; /* specs */
	uint32_t fixed;    /* bytes of all attributes; UINT32_MAX: no fixed size */
	uint16_t tag;
	bool children, has_slots;
};

struct dwarf_abbrevs {
	VEC(struct dwarf_abbrev) list;
	VEC(struct dwarf_spec) specs;
	struct hashmap by_code; /* used if codes do not count up from 1 */
	bool sparse;
};

/*
 * Reads the table of a unit up to the code `until` (0: all). The caller frees it. Returns 0,
 * -EBADMSG, -E2BIG (over DWARF_STEPS_MAX) or -ENOMEM.
 */
int dwarf_abbrevs_load(const struct dwarf_unit *u, uint64_t until,
		       struct dwarf_abbrevs **ret_abbrevs);
void dwarf_abbrevs_free(struct dwarf_abbrevs *a);

/* Bytes in memory. a may be NULL. */
size_t dwarf_abbrevs_bytes(const struct dwarf_abbrevs *a);

/* The abbreviation of a code other than 0, or NULL. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *a,
							    uint64_t code)
{
	const uint32_t *at;

	if (!a->sparse)
		return code <= a->list.len ? &a->list.v[code - 1] : NULL;
	at = hashmap_get(&a->by_code, code);
	return at ? &a->list.v[*at] : NULL;
}

#endif
