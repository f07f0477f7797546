#include "elf/dwarf_form.h"

#include <dwarf.h>
#include <string.h>

#define INDIRECT_MAX 4 /* DW_FORM_indirect forms that may follow one another */

uint32_t dwarf_form_bytes(const struct dwarf_unit *u, uint16_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->addr_bytes;
	case DW_FORM_ref_addr:
		return u->version == 2 ? u->addr_bytes : u->off_bytes;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->off_bytes;
	default:
		return UINT32_MAX;
	}
}

uint8_t dwarf_form_kind(uint16_t form)
{
	static const struct {
		uint16_t form;
		uint8_t kind;
	} kinds[] = {
		{DW_FORM_ref1, DWARF_IS_REF_HERE},        {DW_FORM_ref2, DWARF_IS_REF_HERE},
		{DW_FORM_ref4, DWARF_IS_REF_HERE},        {DW_FORM_ref8, DWARF_IS_REF_HERE},
		{DW_FORM_addr, DWARF_IS_ADDRESS},         {DW_FORM_strp, DWARF_IS_STR},
		{DW_FORM_line_strp, DWARF_IS_LINE_STR},   {DW_FORM_ref_addr, DWARF_IS_REF},
		{DW_FORM_strp_sup, DWARF_IS_STR_ALT},     {DW_FORM_GNU_strp_alt, DWARF_IS_STR_ALT},
		{DW_FORM_GNU_ref_alt, DWARF_IS_REF_ALT},  {DW_FORM_ref_sup4, DWARF_IS_REF_ALT},
		{DW_FORM_ref_sup8, DWARF_IS_REF_ALT},     {DW_FORM_ref_sig8, DWARF_IS_OTHER},
		{DW_FORM_data16, DWARF_IS_OTHER},         {DW_FORM_strx1, DWARF_IS_STR_INDEX},
		{DW_FORM_strx2, DWARF_IS_STR_INDEX},      {DW_FORM_strx3, DWARF_IS_STR_INDEX},
		{DW_FORM_strx4, DWARF_IS_STR_INDEX},      {DW_FORM_addrx1, DWARF_IS_ADDRESS_INDEX},
		{DW_FORM_addrx2, DWARF_IS_ADDRESS_INDEX}, {DW_FORM_addrx3, DWARF_IS_ADDRESS_INDEX},
		{DW_FORM_addrx4, DWARF_IS_ADDRESS_INDEX},
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (kinds[i].form == form)
			return kinds[i].kind;
	return DWARF_IS_NUMBER;
}

static void block(struct dwarf_bytes *b, uint64_t len, struct dwarf_value *v)
{
	v->kind = DWARF_IS_OTHER;
	dwarf_skip(b, len);
}

void dwarf_form_fixed(const struct dwarf_unit *u, struct dwarf_bytes *b, uint32_t bytes,
		      uint8_t kind, struct dwarf_value *v)
{
	v->kind = kind;
	v->u = 0;
	if (bytes > 8)
		dwarf_skip(b, bytes);
	else if (bytes)
		v->u = dwarf_uint(b, bytes);
	else
		v->u = 1; /* DW_FORM_flag_present */
	if (kind == DWARF_IS_REF_HERE) {
		v->kind = DWARF_IS_REF;
		v->u += u->off;
	}
}

static void text_form(const struct dwarf_unit *u, struct dwarf_bytes *b, struct dwarf_value *v)
{
	const unsigned char *base = u->data->sections[DWARF_INFO].data;
	const unsigned char *nul = memchr(b->p, 0, (size_t)(b->end - b->p));

	v->kind = DWARF_IS_TEXT;
	v->u = base && b->p >= base ? (uint64_t)(b->p - base) : 0;
	if (!nul)
		b->bad = true;
	b->p = nul ? nul + 1 : b->end;
}

void dwarf_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint16_t form, int64_t constant,
		struct dwarf_value *v)
{
	for (int i = 0; form == DW_FORM_indirect && i < INDIRECT_MAX; i++)
		form = (uint16_t)dwarf_uleb(b);
	if (form == DW_FORM_implicit_const) {
		*v = (struct dwarf_value){(uint64_t)constant, DWARF_IS_NUMBER};
		return;
	}
	uint32_t bytes = dwarf_form_bytes(u, form);

	if (bytes != UINT32_MAX) {
		dwarf_form_fixed(u, b, bytes, dwarf_form_kind(form), v);
		return;
	}
	v->kind = DWARF_IS_NUMBER;
	switch (form) {
	case DW_FORM_udata:
		v->u = dwarf_uleb(b);
		return;
	case DW_FORM_sdata:
		v->u = (uint64_t)dwarf_sleb(b);
		return;
	case DW_FORM_ref_udata:
		*v = (struct dwarf_value){u->off + dwarf_uleb(b), DWARF_IS_REF};
		return;
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		*v = (struct dwarf_value){dwarf_uleb(b), DWARF_IS_STR_INDEX};
		return;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		*v = (struct dwarf_value){dwarf_uleb(b), DWARF_IS_ADDRESS_INDEX};
		return;
	case DW_FORM_rnglistx:
	case DW_FORM_loclistx:
		*v = (struct dwarf_value){dwarf_uleb(b), DWARF_IS_LIST_INDEX};
		return;
	case DW_FORM_string:
		text_form(u, b, v);
		return;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		block(b,
		      dwarf_uint(b, form == DW_FORM_block1   ? 1
				    : form == DW_FORM_block2 ? 2
							     : 4),
		      v);
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		block(b, dwarf_uleb(b), v);
		return;
	default:
		/*
		 * The length of an unknown form is unknown, so the rest of the entry is unreadable.
		 */
		v->kind = DWARF_IS_OTHER;
		b->bad = true;
	}
}

/* Read one number of a table in a section. */
static bool table_at(struct dwarf_data *d, enum dwarf_section_id id, uint64_t base, uint64_t index,
		     unsigned int bytes, uint64_t *ret)
{
	uint64_t off = base + index * bytes;

	if (index > ELF_PAGES_BYTES_MAX || base > ELF_PAGES_BYTES_MAX ||
	    dwarf_data_need(d, id, off, bytes))
		return false;
	*ret = 0;
	memcpy(ret, d->sections[id].data + off, bytes);
	return true;
}

bool dwarf_form_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret_addr)
{
	if (v->kind == DWARF_IS_ADDRESS) {
		*ret_addr = v->u;
		return true;
	}
	return v->kind == DWARF_IS_ADDRESS_INDEX && u->addr_data &&
	       table_at(u->addr_data, DWARF_ADDR, u->addr_base, v->u, u->addr_bytes, ret_addr);
}

const char *dwarf_form_text(const struct dwarf_unit *u, struct dwarf_data *alt,
			    const struct dwarf_value *v)
{
	uint64_t off;

	switch ((enum dwarf_kind)v->kind) {
	case DWARF_IS_TEXT:
		return dwarf_data_text(u->data, DWARF_INFO, v->u);
	case DWARF_IS_STR:
		return dwarf_data_text(u->data, DWARF_STR, v->u);
	case DWARF_IS_LINE_STR:
		return dwarf_data_text(u->data, DWARF_LINE_STR, v->u);
	case DWARF_IS_STR_ALT:
		return alt ? dwarf_data_text(alt, DWARF_STR, v->u) : NULL;
	case DWARF_IS_STR_INDEX:
		return table_at(u->data, DWARF_STR_OFFSETS, u->str_offsets_base, v->u, u->off_bytes,
				&off)
			       ? dwarf_data_text(u->data, DWARF_STR, off)
			       : NULL;
	default:
		return NULL;
	}
}
