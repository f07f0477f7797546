#include "elf/dwarf_abbrev.h"

#include "elf/dwarf_form.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

/* Steps of an abbreviation, which may need its own hash entry, and of one of its attributes */
#define ABBREV_STEPS 16
#define SPEC_STEPS 8

static uint8_t slot_of(uint64_t name)
{
	static const struct {
		uint16_t name;
		uint8_t slot;
	} table[] = {
		{DW_AT_sibling, DWARF_SIBLING},
		{DW_AT_name, DWARF_NAME},
		{DW_AT_linkage_name, DWARF_LINKAGE_NAME},
		{DW_AT_MIPS_linkage_name, DWARF_LINKAGE_NAME},
		{DW_AT_low_pc, DWARF_LOW_PC},
		{DW_AT_high_pc, DWARF_HIGH_PC},
		{DW_AT_ranges, DWARF_AT_RANGES},
		{DW_AT_abstract_origin, DWARF_ORIGIN},
		{DW_AT_specification, DWARF_SPECIFICATION},
		{DW_AT_call_file, DWARF_CALL_FILE},
		{DW_AT_call_line, DWARF_CALL_LINE},
		{DW_AT_stmt_list, DWARF_STMT_LIST},
		{DW_AT_comp_dir, DWARF_COMP_DIR},
		{DW_AT_language, DWARF_LANGUAGE},
		{DW_AT_str_offsets_base, DWARF_STR_OFFSETS_BASE},
		{DW_AT_addr_base, DWARF_ADDR_BASE},
		{DW_AT_GNU_addr_base, DWARF_ADDR_BASE},
		{DW_AT_rnglists_base, DWARF_RNGLISTS_BASE},
		{DW_AT_dwo_name, DWARF_DWO_NAME},
		{DW_AT_GNU_dwo_name, DWARF_DWO_NAME},
		{DW_AT_GNU_dwo_id, DWARF_DWO_ID},
		{DW_AT_GNU_ranges_base, DWARF_GNU_RANGES_BASE},
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		if (table[i].name == name)
			return table[i].slot;
	return DWARF_NO_SLOT;
}

/* Read the attributes of one abbreviation. */
static int read_specs(const struct dwarf_unit *u, struct dwarf_bytes *b, struct dwarf_abbrevs *to,
		      struct dwarf_abbrev *a)
{
	a->first = (uint32_t)to->specs.len;
	while (!b->bad) {
		uint64_t name = dwarf_uleb(b), form = dwarf_uleb(b);
		struct dwarf_spec spec = {.form = (uint16_t)form, .slot = slot_of(name)};
		uint32_t bytes = dwarf_form_bytes(u, spec.form);

		spec.bytes = bytes == UINT32_MAX ? DWARF_BYTES_VARY : (uint8_t)bytes;
		spec.kind = dwarf_form_kind(spec.form);
		if (form == DW_FORM_implicit_const)
			spec.constant = dwarf_sleb(b);
		if (!name && !form)
			break;
		if (form > UINT16_MAX)
			return -EBADMSG;
		a->fixed = bytes == UINT32_MAX || a->fixed == UINT32_MAX ? UINT32_MAX
									 : a->fixed + bytes;
		a->has_slots |= spec.slot != DWARF_NO_SLOT;
		int r = dwarf_data_push(u->data, &to->specs, spec);

		if (r)
			return r;
	}
	a->n = (uint32_t)(to->specs.len - a->first);
	return b->bad ? -EBADMSG : 0;
}

/* Read a unit's abbreviations up to the code `until`. Returns 0, -EBADMSG, -E2BIG or -ENOMEM. */
static int read_abbrevs(const struct dwarf_unit *u, struct dwarf_bytes *b, uint64_t until,
			struct dwarf_abbrevs *to)
{
	while (to->list.len < DWARF_ABBREVS_MAX) {
		struct dwarf_abbrev a = {.code = dwarf_uleb(b)};

		if (!a.code || b->bad)
			return b->bad ? -EBADMSG : 0;
		a.tag = (uint16_t)dwarf_uleb(b);
		a.children = dwarf_uint(b, 1);
		int r = read_specs(u, b, to, &a);

		if (r)
			return r;
		to->sparse |= a.code != to->list.len + 1;
		r = dwarf_data_push(u->data, &to->list, a);
		if (r)
			return r;
		if (a.code == until)
			return 0;
	}
	return -EBADMSG;
}

static int abbrev_bytes(const struct dwarf_unit *u, uint64_t max, struct dwarf_bytes *ret_bytes)
{
	const struct elf_pages *s = &u->data->sections[DWARF_ABBREV];
	uint64_t off = u->abbrev_off + u->bases[DWARF_ABBREV];

	if (off >= s->bytes)
		return -EBADMSG;
	uint64_t len = s->bytes - off < max ? s->bytes - off : max;
	int r = dwarf_data_need(u->data, DWARF_ABBREV, off, len);

	if (!r)
		*ret_bytes = (struct dwarf_bytes){s->data + off, s->data + off + len, false};
	return r;
}

void dwarf_abbrevs_free(struct dwarf_abbrevs *a)
{
	if (!a)
		return;
	vec_free(&a->list);
	vec_free(&a->specs);
	hashmap_free(&a->by_code);
	free(a);
}

size_t dwarf_abbrevs_bytes(const struct dwarf_abbrevs *a)
{
	return a ? a->list.cap * sizeof(*a->list.v) + a->specs.cap * sizeof(*a->specs.v) +
			       a->by_code.nslots * sizeof(*a->by_code.slots)
		 : 0;
}

/* Read in growing steps, because only reading finds the end of a table. */
int dwarf_abbrevs_load(const struct dwarf_unit *u, uint64_t until, struct dwarf_abbrevs **ret)
{
	uint64_t whole = u->data->sections[DWARF_ABBREV].bytes;
	struct dwarf_bytes b = {0};

	for (uint64_t max = until ? 256 : 8192;; max *= 8) {
		struct dwarf_abbrevs *a =
			dwarf_data_over_limit(u->data) ? NULL : calloc(1, sizeof(*a));
		int r = dwarf_data_over_limit(u->data) ? -E2BIG
			: a                            ? abbrev_bytes(u, max, &b)
						       : -ENOMEM;

		if (!r) {
			r = read_abbrevs(u, &b, until, a);
			dwarf_data_count(u->data,
					 a->list.len * ABBREV_STEPS + a->specs.len * SPEC_STEPS);
		}
		if (!r && a->sparse)
			r = dwarf_data_room(u->data, 2 * a->list.len * sizeof(*a->by_code.slots));
		if (!r && a->sparse)
			for (size_t i = a->list.len; i-- > 0 && !r;)
				r = hashmap_put(&a->by_code, a->list.v[i].code, (uint32_t)i);
		if (!r) {
			*ret = a;
			return 0;
		}
		dwarf_abbrevs_free(a);
		/* More bytes help only if the bytes ran out. */
		if (r != -EBADMSG || b.p < b.end || max >= whole || max >= DWARF_ABBREV_BYTES_MAX)
			return r;
	}
}
