#include "elf/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>

#define HEADER_BYTES_MAX 40
#define LISTED_BYTES_MAX ((uint64_t)4 << 20)

int dwarf_unit_at(struct dwarf_data *d, bool split, uint64_t off, struct dwarf_unit *u)
{
	if (off >= d->sections[DWARF_INFO].bytes)
		return -ENOENT;
	uint64_t left = d->sections[DWARF_INFO].bytes - off,
		 want = left < HEADER_BYTES_MAX ? left : HEADER_BYTES_MAX;
	int r = dwarf_data_need(d, DWARF_INFO, off, want);

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	const unsigned char *at = d->sections[DWARF_INFO].data + off;
	struct dwarf_bytes b = {at, at + want, false};
	uint64_t len = dwarf_uint(&b, 4);

	*u = (struct dwarf_unit){
		.data = d, .off = off, .off_bytes = 4, .type = DW_UT_compile, .is_split = split};
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
	bool sane = u->version >= 2 && u->version <= 5 &&
		    (u->addr_bytes == 4 || u->addr_bytes == 8) && u->dies <= u->end;

	/* Version 0 makes callers skip the unit. */
	if (b.bad || !sane)
		u->version = 0;
	return 0;
}

int dwarf_units_list(struct dwarf_data *d, bool split, dwarf_units *units)
{
	uint64_t bytes = d->sections[DWARF_INFO].bytes;
	struct dwarf_unit u;

	for (uint64_t off = 0; off < bytes && units->len < DWARF_UNITS_MAX; off = u.end) {
		/* The pages of all headers can be a whole large file. */
		if (d->resident > LISTED_BYTES_MAX)
			dwarf_data_drop(d);
		int r = dwarf_unit_at(d, split, off, &u);

		if (r)
			return r == -ENOENT ? 0 : r;
		if (u.version)
			r = dwarf_data_push(d, units, u);
		if (r)
			return r == -ENOMEM ? r : 0;
	}
	return 0;
}

int dwarf_unit_bytes(const struct dwarf_unit *u, uint64_t off, struct dwarf_bytes *ret_bytes)
{
	const unsigned char *data = u->data->sections[DWARF_INFO].data;

	if (off < u->dies || off >= u->end)
		return -EBADMSG;
	*ret_bytes = (struct dwarf_bytes){data + off, data + u->end, false};
	return 0;
}
