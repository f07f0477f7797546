#include "symbols/dwarf_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define INDIRECT_MAX 4 /* of DW_FORM_indirect that lead to another */
#define HEADER_BYTES_MAX 40

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

/* Units */

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

	for (uint64_t off = 0; off < bytes; off = u.end) {
		int r = dwarf_unit_at(d, split, off, &u);

		if (r)
			return r == -ENOENT ? 0 : r;
		if (units->len >= DWARF_UNITS_MAX)
			return -E2BIG;
		if (u.version && vec_push(units, u))
			return -ENOMEM;
	}
	return 0;
}

/* Abbreviations */

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

/* Bytes of a form, where it always has as many; UINT32_MAX: not. */
static uint32_t form_bytes(const struct dwarf_unit *u, uint16_t form)
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
static uint8_t kind_of(uint16_t form)
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

/* The attributes of one abbreviation. */
static int read_specs(const struct dwarf_unit *u, struct dwarf_bytes *b, struct dwarf_abbrevs *to, struct dwarf_abbrev *a)
{
	a->first = (uint32_t)to->specs.len;
	while (!b->bad) {
		uint64_t name = dwarf_uleb(b), form = dwarf_uleb(b);
		struct dwarf_spec spec = {.form = (uint16_t)form, .slot = slot_of(name)};
		uint32_t bytes = form_bytes(u, spec.form);

		spec.bytes = bytes == UINT32_MAX ? DWARF_BYTES_VARY : (uint8_t)bytes;
		spec.kind = kind_of(spec.form);
		if (form == DW_FORM_implicit_const)
			spec.constant = dwarf_sleb(b);
		if (!name && !form)
			break;
		if (form > UINT16_MAX)
			return -EBADMSG;
		a->fixed = bytes == UINT32_MAX || a->fixed == UINT32_MAX ? UINT32_MAX : a->fixed + bytes;
		a->has_slots |= spec.slot != DWARF_NO_SLOT;
		if (vec_push(&to->specs, spec))
			return -ENOMEM;
	}
	a->n = (uint32_t)(to->specs.len - a->first);
	return b->bad ? -EBADMSG : 0;
}

/* Reads a unit's abbreviations, or only up to that with the code `until`. 0; -EBADMSG; -ENOMEM. */
static int read_abbrevs(const struct dwarf_unit *u, struct dwarf_bytes *b, uint64_t until, struct dwarf_abbrevs *to)
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
		if (vec_push(&to->list, a))
			return -ENOMEM;
		if (a.code == until)
			return 0;
	}
	return -EBADMSG;
}

static int abbrev_bytes(const struct dwarf_unit *u, uint64_t max, struct dwarf_bytes *ret_bytes)
{
	const struct dwarf_section *s = &u->data->sections[DWARF_ABBREV];
	uint64_t off = u->abbrev_off + u->bases[DWARF_ABBREV];

	if (off >= s->bytes)
		return -EBADMSG;
	uint64_t len = s->bytes - off < max ? s->bytes - off : max;
	int r = dwarf_data_need(u->data, DWARF_ABBREV, off, len);

	if (!r)
		*ret_bytes = (struct dwarf_bytes){s->data + off, s->data + off + len, false};
	return r;
}

static void free_abbrevs(struct dwarf_abbrevs *a)
{
	if (!a)
		return;
	vec_free(&a->list);
	vec_free(&a->specs);
	hashmap_free(&a->by_code);
	free(a);
}

void dwarf_unit_forget(struct dwarf_unit *u)
{
	free_abbrevs(u->abbrevs);
	u->abbrevs = NULL;
}

/* Reads as much as is needed up to the code `until` (0: all), in growing steps: a table's end is only known when it is met. */
static int load_abbrevs(struct dwarf_unit *u, uint64_t until, struct dwarf_abbrevs **ret)
{
	uint64_t whole = u->data->sections[DWARF_ABBREV].bytes;
	struct dwarf_bytes b = {0};

	for (uint64_t max = until ? 256 : 8192;; max *= 8) {
		struct dwarf_abbrevs *a = calloc(1, sizeof(*a));
		int r = a ? abbrev_bytes(u, max, &b) : -ENOMEM;

		if (!r)
			r = read_abbrevs(u, &b, until, a);
		if (!r && a->sparse)
			for (size_t i = a->list.len; i-- > 0 && !r;)
				r = hashmap_put(&a->by_code, a->list.v[i].code, (uint32_t)i);
		if (!r) {
			*ret = a;
			return 0;
		}
		free_abbrevs(a);
		/* Only where the bytes did not suffice more of them may do. */
		if (r != -EBADMSG || b.p < b.end || max >= whole || max >= DWARF_ABBREV_BYTES_MAX)
			return r;
	}
}

static const struct dwarf_abbrev *find_abbrev(const struct dwarf_abbrevs *a, uint64_t code)
{
	const uint32_t *at;

	if (!a->sparse)
		return code <= a->list.len ? &a->list.v[code - 1] : NULL;
	at = hashmap_get(&a->by_code, code);
	return at ? &a->list.v[*at] : NULL;
}

/* Forms */

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
	uint32_t bytes = form_bytes(u, form);

	if (bytes != UINT32_MAX) {
		fixed_form(u, b, bytes, kind_of(form), v);
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
	if (!code)
		return 0;
	a = find_abbrev(u->abbrevs, code);
	if (!a)
		return -EBADMSG;
	ret->tag = a->tag;
	ret->children = a->children;
	if (a->fixed != UINT32_MAX && (!a->has_slots || (wanted && !a->children && !wanted(a->tag))))
		dwarf_skip(b, a->fixed);
	else
		read_entry(u, b, a, u->abbrevs->specs.v, ret);
	return b->bad ? -EBADMSG : 0;
}

/* The defaults of what a unit that is split does not say itself: behind the headers of the tables. */
static void split_bases(struct dwarf_unit *u)
{
	uint64_t longer = u->off_bytes == 8 ? 8 : 0;

	u->str_offsets_base = u->bases[DWARF_STR_OFFSETS] + (u->version >= 5 ? 8 + longer : 0);
	u->rnglists_base = u->bases[DWARF_RNGLISTS] + 12 + longer;
}

static uint64_t number_or(const struct dwarf_entry *e, enum dwarf_slot slot, uint64_t otherwise)
{
	const struct dwarf_value *v = dwarf_attr_of(e, slot);

	return v && v->kind == DWARF_IS_NUMBER ? v->u : otherwise;
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
	int r = -EBADMSG;

	for (uint64_t len = 256, had_len = 0; r == -EBADMSG && had_len < u->end - u->dies; had_len = len, len *= 16) {
		uint64_t want = len < u->end - u->dies ? len : u->end - u->dies;

		r = dwarf_data_need(u->data, DWARF_INFO, u->dies, want);
		if (!r)
			r = dwarf_unit_bytes(u, u->dies, &b);
		if (r)
			return r;
		b.end = b.p + want;
		code = b;
		if (!had) {
			r = load_abbrevs(u, dwarf_uleb(&code), &few);
			u->abbrevs = few;
		}
		if (!r)
			r = dwarf_entry_next(u, &b, NULL, ret_entry);
		u->abbrevs = had;
		free_abbrevs(few);
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
	u->str_offsets_base = number_or(ret_entry, DWARF_STR_OFFSETS_BASE, u->str_offsets_base);
	u->rnglists_base = number_or(ret_entry, DWARF_RNGLISTS_BASE, u->rnglists_base);
	u->addr_base = number_or(ret_entry, DWARF_ADDR_BASE, u->addr_base);
	u->ranges_base = number_or(ret_entry, DWARF_GNU_RANGES_BASE, u->ranges_base);
	u->dwo_id = number_or(ret_entry, DWARF_DWO_ID, u->dwo_id);
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
	int r = dwarf_data_need(u->data, DWARF_INFO, u->off, u->end - u->off);

	if (!r && !u->abbrevs)
		r = load_abbrevs(u, 0, &u->abbrevs);
	return r;
}

/* Values */

uint64_t dwarf_number(const struct dwarf_entry *e, enum dwarf_slot slot)
{
	return number_or(e, slot, 0);
}

/* Reads one number of a table in a section. */
static bool table_at(struct dwarf_data *d, enum dwarf_section_id id, uint64_t base, uint64_t index, unsigned int bytes,
		     uint64_t *ret)
{
	uint64_t off = base + index * bytes;

	if (index > DWARF_SECTION_BYTES_MAX || base > DWARF_SECTION_BYTES_MAX || dwarf_data_need(d, id, off, bytes))
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
