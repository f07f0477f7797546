#include "symbols/dwarf_entry.h"

#include "symbols/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define INDIRECT_MAX 4 /* of DW_FORM_indirect that lead to another */

uint64_t dwarf_uint(struct dwarf_bytes *b, unsigned int bytes)
{
	uint64_t x = 0;

	if ((size_t)(b->end - b->p) < bytes) {
		b->bad = true;
		b->p = b->end;
		return 0;
	}
	memcpy(&x, b->p, bytes);
	b->p += bytes;
	return x;
}

uint64_t dwarf_uleb(struct dwarf_bytes *b)
{
	uint64_t x = 0;

	for (unsigned int shift = 0; b->p < b->end; shift += 7) {
		unsigned char byte = *b->p++;

		if (shift < 64)
			x |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return x;
	}
	b->bad = true;
	return 0;
}

int64_t dwarf_sleb(struct dwarf_bytes *b)
{
	uint64_t x = 0;

	for (unsigned int shift = 0; b->p < b->end; shift += 7) {
		unsigned char byte = *b->p++;

		if (shift < 64)
			x |= (uint64_t)(byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift + 7 < 64)
			x |= ~UINT64_C(0) << (shift + 7);
		return (int64_t)x;
	}
	b->bad = true;
	return 0;
}

void dwarf_skip(struct dwarf_bytes *b, uint64_t n)
{
	if ((uint64_t)(b->end - b->p) < n) {
		b->bad = true;
		b->p = b->end;
		return;
	}
	b->p += n;
}

/* Forms */

/* Bytes of a form, where it always has as many; UINT32_MAX: not. */
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

/* What a form of a fixed number of bytes holds. */
uint8_t dwarf_form_kind(uint16_t form)
{
	static const struct {
		uint16_t form;
		uint8_t kind;
	} kinds[] = {
		{DW_FORM_ref1, DWARF_IS_REF_HERE},	 {DW_FORM_ref2, DWARF_IS_REF_HERE},
		{DW_FORM_ref4, DWARF_IS_REF_HERE},	 {DW_FORM_ref8, DWARF_IS_REF_HERE},
		{DW_FORM_addr, DWARF_IS_ADDRESS},	 {DW_FORM_strp, DWARF_IS_STR},
		{DW_FORM_line_strp, DWARF_IS_LINE_STR},	 {DW_FORM_ref_addr, DWARF_IS_REF},
		{DW_FORM_strp_sup, DWARF_IS_STR_ALT},	 {DW_FORM_GNU_strp_alt, DWARF_IS_STR_ALT},
		{DW_FORM_GNU_ref_alt, DWARF_IS_REF_ALT}, {DW_FORM_ref_sup4, DWARF_IS_REF_ALT},
		{DW_FORM_ref_sup8, DWARF_IS_REF_ALT},	 {DW_FORM_ref_sig8, DWARF_IS_OTHER},
		{DW_FORM_data16, DWARF_IS_OTHER},	 {DW_FORM_strx1, DWARF_IS_STR_INDEX},
		{DW_FORM_strx2, DWARF_IS_STR_INDEX},	 {DW_FORM_strx3, DWARF_IS_STR_INDEX},
		{DW_FORM_strx4, DWARF_IS_STR_INDEX},	 {DW_FORM_addrx1, DWARF_IS_ADDRESS_INDEX},
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

static void fixed_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint32_t bytes, uint8_t kind, struct dwarf_value *v)
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

void dwarf_form(const struct dwarf_unit *u, struct dwarf_bytes *b, uint16_t form, int64_t constant, struct dwarf_value *v)
{
	for (int i = 0; form == DW_FORM_indirect && i < INDIRECT_MAX; i++)
		form = (uint16_t)dwarf_uleb(b);
	if (form == DW_FORM_implicit_const) {
		*v = (struct dwarf_value){(uint64_t)constant, DWARF_IS_NUMBER};
		return;
	}
	uint32_t bytes = dwarf_form_bytes(u, form);

	if (bytes != UINT32_MAX) {
		fixed_form(u, b, bytes, dwarf_form_kind(form), v);
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
		block(b, dwarf_uint(b, form == DW_FORM_block1 ? 1 : form == DW_FORM_block2 ? 2 : 4), v);
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		block(b, dwarf_uleb(b), v);
		return;
	default:
		/* Of an unknown form nobody can say where it ends. */
		v->kind = DWARF_IS_OTHER;
		b->bad = true;
	}
}

/* Entries */

static void read_entry(const struct dwarf_unit *u, struct dwarf_bytes *b, const struct dwarf_abbrev *a,
		       const struct dwarf_spec *specs, struct dwarf_entry *e)
{
	struct dwarf_value passed;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct dwarf_spec *s = &specs[a->first + i];
		struct dwarf_value *v = s->slot == DWARF_NO_SLOT ? &passed : &e->v[s->slot];

		if (s->bytes != DWARF_BYTES_VARY && s->form != DW_FORM_implicit_const)
			fixed_form(u, b, s->bytes, s->kind, v);
		else
			dwarf_form(u, b, s->form, s->constant, v);
		if (s->slot != DWARF_NO_SLOT)
			e->has |= 1u << s->slot;
	}
}

int dwarf_entry_next(const struct dwarf_unit *u, struct dwarf_bytes *b, bool (*wanted)(uint16_t tag), struct dwarf_entry *ret)
{
	uint64_t off = (uint64_t)(b->p - u->data->sections[DWARF_INFO].data), code = dwarf_uleb(b);
	const struct dwarf_abbrev *a;

	ret->off = off;
	ret->has = 0;
	ret->tag = 0;
	ret->children = false;
	if (b->bad)
		return -EBADMSG;
	u->data->steps++;
	if (!code)
		return 0;
	a = dwarf_abbrevs_find(u->abbrevs, code);
	if (!a)
		return -EBADMSG;
	if (dwarf_data_is_tired(u->data))
		return -E2BIG;
	ret->tag = a->tag;
	ret->children = a->children;
	if (a->fixed != UINT32_MAX && (!a->has_slots || (wanted && !a->children && !wanted(a->tag)))) {
		dwarf_skip(b, a->fixed);
	} else {
		u->data->steps += a->n;
		read_entry(u, b, a, u->abbrevs->specs.v, ret);
	}
	return b->bad ? -EBADMSG : 0;
}

/* Values */

uint64_t dwarf_number_or(const struct dwarf_entry *e, enum dwarf_slot slot, uint64_t otherwise)
{
	const struct dwarf_value *v = dwarf_attr_of(e, slot);

	return v && v->kind == DWARF_IS_NUMBER ? v->u : otherwise;
}

uint64_t dwarf_number(const struct dwarf_entry *e, enum dwarf_slot slot)
{
	return dwarf_number_or(e, slot, 0);
}

/* Reads one number of a table in a section. */
static bool table_at(struct dwarf_data *d, enum dwarf_section_id id, uint64_t base, uint64_t index, unsigned int bytes,
		     uint64_t *ret)
{
	uint64_t off = base + index * bytes;

	if (index > ELF_PAGES_BYTES_MAX || base > ELF_PAGES_BYTES_MAX || dwarf_data_need(d, id, off, bytes))
		return false;
	*ret = 0;
	memcpy(ret, d->sections[id].data + off, bytes);
	return true;
}

bool dwarf_address(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret_addr)
{
	if (v->kind == DWARF_IS_ADDRESS) {
		*ret_addr = v->u;
		return true;
	}
	return v->kind == DWARF_IS_ADDRESS_INDEX && u->addr_data &&
	       table_at(u->addr_data, DWARF_ADDR, u->addr_base, v->u, u->addr_bytes, ret_addr);
}

const char *dwarf_text(const struct dwarf_unit *u, struct dwarf_data *alt, const struct dwarf_value *v)
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
		return table_at(u->data, DWARF_STR_OFFSETS, u->str_offsets_base, v->u, u->off_bytes, &off)
			       ? dwarf_data_text(u->data, DWARF_STR, off)
			       : NULL;
	default:
		return NULL;
	}
}
