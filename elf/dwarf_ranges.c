#include "elf/dwarf_ranges.h"

#include <dwarf.h>
#include <errno.h>

static int add(const struct dwarf_unit *u, dwarf_ranges *ranges, size_t had, uint64_t start,
	       uint64_t end)
{
	if (start >= end)
		return 0;
	if (ranges->len - had >= DWARF_RANGES_MAX)
		return -E2BIG;
	return dwarf_data_push(u->data, ranges, ((struct dwarf_range){start, end}));
}

/* Make len bytes of a section readable from an offset on, or fewer if the section ends. */
static int list_bytes(struct dwarf_data *d, enum dwarf_section_id id, uint64_t off, uint64_t len,
		      struct dwarf_bytes *b)
{
	const struct elf_pages *s = &d->sections[id];

	if (off >= s->bytes)
		return -EBADMSG;
	len = len < s->bytes - off ? len : s->bytes - off;
	int r = dwarf_data_need(d, id, off, len);

	if (!r)
		*b = (struct dwarf_bytes){s->data + off, s->data + off + len, false};
	return r;
}

/* Read a list of .debug_ranges, for versions 2 to 4. */
static int old_list(const struct dwarf_unit *u, struct dwarf_bytes *b, dwarf_ranges *ranges,
		    size_t had)
{
	uint64_t base = u->low_pc, all = u->addr_bytes == 8 ? UINT64_MAX : UINT32_MAX;

	for (;;) {
		uint64_t start = dwarf_uint(b, u->addr_bytes), end = dwarf_uint(b, u->addr_bytes);

		if (b->bad)
			return -EBADMSG;
		if (!start && !end)
			return 0;
		if (start == all) {
			base = end;
			continue;
		}
		int r = add(u, ranges, had, start + base, end + base);

		if (r)
			return r;
	}
}

static uint64_t indexed(const struct dwarf_unit *u, struct dwarf_bytes *b)
{
	struct dwarf_value v = {dwarf_uleb(b), DWARF_IS_ADDRESS_INDEX};
	uint64_t addr = 0;

	if (!dwarf_form_address(u, &v, &addr))
		b->bad = true;
	return addr;
}

/* Read a list of .debug_rnglists, for version 5. */
static int new_list(const struct dwarf_unit *u, struct dwarf_bytes *b, dwarf_ranges *ranges,
		    size_t had)
{
	uint64_t base = u->low_pc, start, end;

	for (;;) {
		uint64_t kind = dwarf_uint(b, 1);

		if (b->bad)
			return -EBADMSG;
		switch (kind) {
		case DW_RLE_end_of_list:
			return 0;
		case DW_RLE_base_addressx:
			base = indexed(u, b);
			continue;
		case DW_RLE_base_address:
			base = dwarf_uint(b, u->addr_bytes);
			continue;
		case DW_RLE_startx_endx:
			start = indexed(u, b);
			end = indexed(u, b);
			break;
		case DW_RLE_startx_length:
			start = indexed(u, b);
			end = start + dwarf_uleb(b);
			break;
		case DW_RLE_offset_pair:
			start = base + dwarf_uleb(b);
			end = base + dwarf_uleb(b);
			break;
		case DW_RLE_start_end:
			start = dwarf_uint(b, u->addr_bytes);
			end = dwarf_uint(b, u->addr_bytes);
			break;
		case DW_RLE_start_length:
			start = dwarf_uint(b, u->addr_bytes);
			end = start + dwarf_uleb(b);
			break;
		default:
			return -EBADMSG;
		}
		int r = b->bad ? -EBADMSG : add(u, ranges, had, start, end);

		if (r)
			return r;
	}
}

/* Find where the list of an entry begins. */
static int list_place(const struct dwarf_unit *u, const struct dwarf_value *v,
		      struct dwarf_data **ret_data, uint64_t *ret_off)
{
	struct dwarf_bytes b;

	*ret_data = u->data;
	*ret_off = v->u;
	if (u->version < 5) {
		/* The lists of a split unit stay in the file of the addresses. */
		*ret_data = u->addr_data;
		*ret_off += u->is_split ? u->ranges_base : 0;
		return 0;
	}
	if (v->kind == DWARF_IS_NUMBER)
		return 0;
	uint64_t at = u->rnglists_base + v->u * u->off_bytes;
	int r = v->kind != DWARF_IS_LIST_INDEX || v->u > ELF_PAGES_BYTES_MAX
			? -EBADMSG
			: list_bytes(u->data, DWARF_RNGLISTS, at, u->off_bytes, &b);

	if (!r)
		*ret_off = u->rnglists_base + dwarf_uint(&b, u->off_bytes);
	return r ? r : b.bad ? -EBADMSG : 0;
}

static int read_list(const struct dwarf_unit *u, const struct dwarf_value *v, dwarf_ranges *ranges)
{
	enum dwarf_section_id id = u->version < 5 ? DWARF_RANGES : DWARF_RNGLISTS;
	struct dwarf_bytes b;
	struct dwarf_data *data;
	uint64_t off;
	size_t had = ranges->len;
	int r = dwarf_data_over_limit(u->data) ? -E2BIG : list_place(u, v, &data, &off);

	/* Read in growing steps, because only reading finds the end of a list. */
	for (uint64_t len = 512; !r; len *= 16) {
		ranges->len = had;
		r = list_bytes(data, id, off, len, &b);
		if (r)
			break;
		r = id == DWARF_RANGES ? old_list(u, &b, ranges, had)
				       : new_list(u, &b, ranges, had);
		dwarf_data_count(u->data, (uint64_t)(b.p - (data->sections[id].data + off)));
		if (r != -EBADMSG || !b.bad || off + len >= data->sections[id].bytes)
			break;
		r = 0;
	}
	if (r)
		ranges->len = had;
	return r;
}

int dwarf_entry_ranges(const struct dwarf_unit *u, const struct dwarf_entry *e,
		       dwarf_ranges *ranges)
{
	const struct dwarf_value *low = dwarf_entry_attr(e, DWARF_LOW_PC),
				 *high = dwarf_entry_attr(e, DWARF_HIGH_PC);
	const struct dwarf_value *list = dwarf_entry_attr(e, DWARF_AT_RANGES);
	uint64_t start, end;

	if (low && high && dwarf_form_address(u, low, &start)) {
		if (high->kind == DWARF_IS_NUMBER)
			end = start + high->u;
		else if (!dwarf_form_address(u, high, &end))
			return -EBADMSG;
		return add(u, ranges, ranges->len, start, end);
	}
	return list ? read_list(u, list, ranges) : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct dwarf_span *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order < y->order) - (x->order > y->order);
}

void dwarf_spans_sort(dwarf_spans *spans)
{
	uint64_t max = 0;

	for (size_t i = 0; i < spans->len; i++)
		spans->v[i].order = (uint32_t)i;
	if (spans->len)
		qsort(spans->v, spans->len, sizeof(*spans->v), by_start);
	for (size_t i = 0; i < spans->len; i++) {
		max = spans->v[i].end > max ? spans->v[i].end : max;
		spans->v[i].max_end = max;
	}
}

#define SPANS_BACK 4096 /* overlapping spans that are checked at most */

const struct dwarf_span *dwarf_spans_find(const dwarf_spans *spans, uint64_t addr)
{
	size_t lo = 0, hi = spans->len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (spans->v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i-- > 0 && lo - i <= SPANS_BACK && spans->v[i].max_end > addr;)
		if (addr < spans->v[i].end)
			return &spans->v[i];
	return NULL;
}
