#include "symbols/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>

#define HEADER_BYTES_MAX 40
#define LISTED_BYTES_MAX ((uint64_t)32 << 20)
#define FIRST_ENTRY_BYTES_MAX ((uint64_t)1 << 20)

int dwarf_unit_at(struct dwarf_data *d, bool split, uint64_t off, struct dwarf_unit *u)
{
	if (off >= d->sections[DWARF_INFO].bytes)
		return -ENOENT;
	uint64_t left = d->sections[DWARF_INFO].bytes - off, want = left < HEADER_BYTES_MAX ? left : HEADER_BYTES_MAX;
	int r = dwarf_data_need(d, DWARF_INFO, off, want);

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	const unsigned char *at = d->sections[DWARF_INFO].data + off;
	struct dwarf_bytes b = {at, at + want, false};
	uint64_t len = dwarf_uint(&b, 4);

	*u = (struct dwarf_unit){.data = d, .off = off, .off_bytes = 4, .type = DW_UT_compile, .is_split = split};
	if (len == 0xffffffff) {
		len = dwarf_uint(&b, 8);
		u->off_bytes = 8;
	}
	if (b.bad || len > left - (uint64_t)(b.p - at))
		return -ENOENT;
	u->end = off + (uint64_t)(b.p - at) + len;
	u->version = (uint16_t)dwarf_uint(&b, 2);
	if (u->version >= 5) {
		u->type = (uint8_t)dwarf_uint(&b, 1);
		u->addr_bytes = (uint8_t)dwarf_uint(&b, 1);
		u->abbrev_off = dwarf_uint(&b, u->off_bytes);
	} else {
		u->abbrev_off = dwarf_uint(&b, u->off_bytes);
		u->addr_bytes = (uint8_t)dwarf_uint(&b, 1);
	}
	if (u->type == DW_UT_skeleton || u->type == DW_UT_split_compile)
		u->dwo_id = dwarf_uint(&b, 8);
	else if (u->type == DW_UT_type || u->type == DW_UT_split_type)
		dwarf_skip(&b, 8 + (uint64_t)u->off_bytes);
	u->dies = off + (uint64_t)(b.p - at);
	bool sane = u->version >= 2 && u->version <= 5 && (u->addr_bytes == 4 || u->addr_bytes == 8) && u->dies <= u->end;

	/* One of another version is passed over. */
	if (b.bad || !sane)
		u->version = 0;
	return 0;
}

int dwarf_units_list(struct dwarf_data *d, bool split, dwarf_units *units)
{
	uint64_t bytes = d->sections[DWARF_INFO].bytes;
	struct dwarf_unit u;

	for (uint64_t off = 0; off < bytes && units->len < DWARF_UNITS_MAX; off = u.end) {
		/* A page for each header can be all of a large file. */
		if (d->resident > LISTED_BYTES_MAX)
			dwarf_data_drop(d);
		int r = dwarf_unit_at(d, split, off, &u);

		if (r)
			return r == -ENOENT ? 0 : r;
		if (u.version && vec_push(units, u))
			return -ENOMEM;
	}
	return 0;
}

void dwarf_unit_forget(struct dwarf_unit *u)
{
	dwarf_abbrevs_free(u->abbrevs);
	u->abbrevs = NULL;
}

/* The defaults of what a unit that is split does not say itself: behind the headers of the tables. */
static void split_bases(struct dwarf_unit *u)
{
	uint64_t longer = u->off_bytes == 8 ? 8 : 0;

	u->str_offsets_base = u->bases[DWARF_STR_OFFSETS] + (u->version >= 5 ? 8 + longer : 0);
	u->rnglists_base = u->bases[DWARF_RNGLISTS] + 12 + longer;
}

int dwarf_unit_bytes(const struct dwarf_unit *u, uint64_t off, struct dwarf_bytes *ret_bytes)
{
	const unsigned char *data = u->data->sections[DWARF_INFO].data;

	if (off < u->dies || off >= u->end)
		return -EBADMSG;
	*ret_bytes = (struct dwarf_bytes){data + off, data + u->end, false};
	return 0;
}

/* The unit's own entry, of which as much is read as there may be. */
static int first_entry(struct dwarf_unit *u, struct dwarf_entry *ret_entry)
{
	struct dwarf_bytes b, code;
	struct dwarf_abbrevs *had = u->abbrevs, *few = NULL;
	uint64_t all = u->end - u->dies < FIRST_ENTRY_BYTES_MAX ? u->end - u->dies : FIRST_ENTRY_BYTES_MAX;
	int r = -EBADMSG;

	for (uint64_t len = 256, had_len = 0; r == -EBADMSG && had_len < all; had_len = len, len *= 16) {
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
	u->str_offsets_base = dwarf_number_or(ret_entry, DWARF_STR_OFFSETS_BASE, u->str_offsets_base);
	u->rnglists_base = dwarf_number_or(ret_entry, DWARF_RNGLISTS_BASE, u->rnglists_base);
	u->addr_base = dwarf_number_or(ret_entry, DWARF_ADDR_BASE, u->addr_base);
	u->ranges_base = dwarf_number_or(ret_entry, DWARF_GNU_RANGES_BASE, u->ranges_base);
	u->dwo_id = dwarf_number_or(ret_entry, DWARF_DWO_ID, u->dwo_id);
	if (!u->addr_data)
		u->addr_data = u->data;
	low = dwarf_attr_of(ret_entry, DWARF_LOW_PC);
	if (low)
		dwarf_address(u, low, &u->low_pc);
	u->known = true;
	return 0;
}

int dwarf_unit_open(struct dwarf_unit *u)
{
	int r = u->end - u->off > DWARF_UNIT_BYTES_MAX ? -E2BIG : dwarf_data_need(u->data, DWARF_INFO, u->off, u->end - u->off);

	if (!r && !u->abbrevs)
		r = dwarf_abbrevs_load(u, 0, &u->abbrevs);
	return r;
}
