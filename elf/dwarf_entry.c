#include "elf/dwarf_entry.h"

#include "elf/dwarf_abbrev.h"

#include <dwarf.h>
#include <errno.h>

static void read_entry(const struct dwarf_unit *u, struct dwarf_bytes *b,
		       const struct dwarf_abbrev *a, const struct dwarf_spec *specs,
		       struct dwarf_entry *e)
{
	struct dwarf_value passed;

	for (uint32_t i = 0; i < a->n; i++) {
		const struct dwarf_spec *s = &specs[a->first + i];
		struct dwarf_value *v = s->slot == DWARF_NO_SLOT ? &passed : &e->v[s->slot];

		if (s->bytes != DWARF_BYTES_VARY && s->form != DW_FORM_implicit_const)
			dwarf_form_fixed(u, b, s->bytes, s->kind, v);
		else
			dwarf_form(u, b, s->form, s->constant, v);
		if (s->slot != DWARF_NO_SLOT)
			e->has |= 1u << s->slot;
	}
}

int dwarf_entry_next(const struct dwarf_unit *u, struct dwarf_bytes *b,
		     bool (*wanted)(uint16_t tag), struct dwarf_entry *ret)
{
	uint64_t off = (uint64_t)(b->p - u->data->sections[DWARF_INFO].data), code = dwarf_uleb(b);
	const struct dwarf_abbrev *a;

	ret->off = off;
	ret->has = 0;
	ret->tag = 0;
	ret->children = false;
	if (b->bad)
		return -EBADMSG;
	dwarf_data_count(u->data, 1);
	if (!code)
		return 0;
	a = dwarf_abbrevs_find(u->abbrevs, code);
	if (!a)
		return -EBADMSG;
	if (dwarf_data_over_limit(u->data))
		return -E2BIG;
	ret->tag = a->tag;
	ret->children = a->children;
	if (a->fixed != UINT32_MAX &&
	    (!a->has_slots || (wanted && !a->children && !wanted(a->tag)))) {
		dwarf_skip(b, a->fixed);
	} else {
		dwarf_data_count(u->data, a->n);
		read_entry(u, b, a, u->abbrevs->specs.v, ret);
	}
	return b->bad ? -EBADMSG : 0;
}

uint64_t dwarf_entry_number_or(const struct dwarf_entry *e, enum dwarf_slot slot,
			       uint64_t otherwise)
{
	const struct dwarf_value *v = dwarf_entry_attr(e, slot);

	return v && v->kind == DWARF_IS_NUMBER ? v->u : otherwise;
}

uint64_t dwarf_entry_number(const struct dwarf_entry *e, enum dwarf_slot slot)
{
	return dwarf_entry_number_or(e, slot, 0);
}
