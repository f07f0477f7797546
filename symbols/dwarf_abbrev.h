/* Tables of abbreviations: which attributes in which forms the entries of a unit have (DWARF 5, section 7.5.3). */
#ifndef SYMBOLS_DWARF_ABBREV_H
#define SYMBOLS_DWARF_ABBREV_H

#include "base/hashmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stdint.h>

#define DWARF_ABBREVS_MAX ((size_t)1 << 20) /* of one table */
#define DWARF_ABBREV_BYTES_MAX ((uint64_t)16 << 20)

struct dwarf_unit;

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

/* Reads the table of a unit as far as up to the code `until` (0: all). The caller frees it. 0; -EBADMSG; -E2BIG: over
 * DWARF_STEPS_MAX; -ENOMEM. */
int dwarf_abbrevs_load(const struct dwarf_unit *u, uint64_t until, struct dwarf_abbrevs **ret_abbrevs);
void dwarf_abbrevs_free(struct dwarf_abbrevs *a);

/* The abbreviation of a code, which is not 0; NULL: there is none. */
static inline const struct dwarf_abbrev *dwarf_abbrevs_find(const struct dwarf_abbrevs *a, uint64_t code)
{
	const uint32_t *at;

	if (!a->sparse)
		return code <= a->list.len ? &a->list.v[code - 1] : NULL;
	at = hashmap_get(&a->by_code, code);
	return at ? &a->list.v[*at] : NULL;
}

#endif
