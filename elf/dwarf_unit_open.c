#include "elf/dwarf_unit_open.h"

#include "elf/dwarf_abbrev.h"

#include <errno.h>

#define FIRST_ENTRY_BYTES_MAX ((uint64_t)1 << 20)

void dwarf_unit_forget(struct dwarf_unit *u)
{
	dwarf_abbrevs_free(u->abbrevs);
	u->abbrevs = NULL;
}

/* Set the defaults of a split unit: each base lies after the header of its table. */
static void split_bases(struct dwarf_unit *u)
{
	uint64_t longer = u->off_bytes == 8 ? 8 : 0;

	u->str_offsets_base = u->bases[DWARF_STR_OFFSETS] + (u->version >= 5 ? 8 + longer : 0);
	u->rnglists_base = u->bases[DWARF_RNGLISTS] + 12 + longer;
}

/* Read the unit's own entry. Its length is unknown, so read more and more bytes. */
static int first_entry(struct dwarf_unit *u, struct dwarf_entry *ret_entry)
{
	struct dwarf_bytes b, code;
	struct dwarf_abbrevs *had = u->abbrevs, *few = NULL;
	uint64_t all =
		u->end - u->dies < FIRST_ENTRY_BYTES_MAX ? u->end - u->dies : FIRST_ENTRY_BYTES_MAX;
	int r = -EBADMSG;

	for (uint64_t len = 256, had_len = 0; r == -EBADMSG && had_len < all;
	     had_len = len, len *= 16) {
		uint64_t want = len < all ? len : all;

		r = dwarf_data_need(u->data, DWARF_INFO, u->dies, want);
		if (!r)
			r = dwarf_unit_bytes(u, u->dies, &b);
		if (r)
			return r;
		b.end = b.p + want;
		code = b;
		if (!had) {
			r = dwarf_abbrevs_load(u, dwarf_uleb(&code), &few);
			u->abbrevs = few;
		}
		if (!r)
			r = dwarf_entry_next(u, &b, NULL, ret_entry);
		u->abbrevs = had;
		dwarf_abbrevs_free(few);
		few = NULL;
	}
	return r;
}

int dwarf_unit_begin(struct dwarf_unit *u, struct dwarf_entry *ret_entry)
{
	int r = first_entry(u, ret_entry);
	const struct dwarf_value *low;

	if (r || u->known)
		return r;
	if (u->is_split)
		split_bases(u);
	u->str_offsets_base =
		dwarf_entry_number_or(ret_entry, DWARF_STR_OFFSETS_BASE, u->str_offsets_base);
	u->rnglists_base = dwarf_entry_number_or(ret_entry, DWARF_RNGLISTS_BASE, u->rnglists_base);
	u->addr_base = dwarf_entry_number_or(ret_entry, DWARF_ADDR_BASE, u->addr_base);
	u->ranges_base = dwarf_entry_number_or(ret_entry, DWARF_GNU_RANGES_BASE, u->ranges_base);
	u->dwo_id = dwarf_entry_number_or(ret_entry, DWARF_DWO_ID, u->dwo_id);
	if (!u->addr_data)
		u->addr_data = u->data;
	low = dwarf_entry_attr(ret_entry, DWARF_LOW_PC);
	if (low)
		dwarf_form_address(u, low, &u->low_pc);
	u->known = true;
	return 0;
}

int dwarf_unit_open(struct dwarf_unit *u)
{
	int r = u->end - u->off > DWARF_UNIT_BYTES_MAX
			? -E2BIG
			: dwarf_data_need(u->data, DWARF_INFO, u->off, u->end - u->off);

	if (!r && !u->abbrevs)
		r = dwarf_abbrevs_load(u, 0, &u->abbrevs);
	return r;
}
