#include "elf/cfi_index.h"

#include "elf/budget.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#define ENTRIES_AT_ONCE (4096 * sizeof(struct cfi_index_entry)) /* bytes of budget to take */
#define HEADER_MAX 24 /* bytes of .eh_frame_hdr before its table */
#define HEADER_ROW 8
#define HEADER_VERSION 1

/* The only table encoding that linkers use. A table with another one is ignored. */
#define HEADER_TABLE_ENCODING (DW_EH_PE_datarel | DW_EH_PE_sdata4)

/* Whether the header describes this section and contains its whole table. */
static bool read_header(struct cfi_index *x, struct cfi_section *header)
{
	uint64_t have = header->pages.bytes < HEADER_MAX ? header->pages.bytes : HEADER_MAX, frame,
		 count;
	const unsigned char *at;

	if (have < 4 || cfi_section_need(header, 0, have, &at) || at[0] != HEADER_VERSION ||
	    at[3] != HEADER_TABLE_ENCODING)
		return false;
	struct dwarf_bytes b = {.p = at + 4, .end = at + have};

	if (cfi_pointer(&b, at[1], header->address_bytes, header->addr + 4, header->addr, &frame) ||
	    frame != x->section->addr)
		return false;
	if (cfi_pointer(&b, at[2], header->address_bytes, header->addr + (uint64_t)(b.p - at),
			header->addr, &count) ||
	    !count)
		return false;
	x->header_at = (uint64_t)(b.p - at);
	x->header_count = count;
	return count <= (header->pages.bytes - x->header_at) / HEADER_ROW;
}

void cfi_index_open(struct cfi_index *x, struct cfi_section *section, struct cfi_section *header,
		    bool eh)
{
	*x = (struct cfi_index){.section = section, .eh = eh};
	if (header && section->pages.bytes && read_header(x, header))
		x->header = header;
}

static void forget_rows(struct cfi_index *x)
{
	free(x->row_bytes);
	x->row_bytes = NULL;
	x->rows = NULL;
}

static void forget_entries(struct cfi_index *x)
{
	elf_budget_give(ELF_BUDGET_SECTIONS, x->entries_taken);
	x->entries_taken = 0;
	vec_free(&x->entries);
}

void cfi_index_close(struct cfi_index *x)
{
	forget_rows(x);
	forget_entries(x);
}

void cfi_index_drop(struct cfi_index *x)
{
	cfi_section_drop(x->section);
	if (x->header)
		cfi_section_drop(x->header);
	forget_rows(x);
	for (size_t i = 0; i < CFI_CIES; i++)
		x->cies[i].used = false;
}

static void bound_memory(struct cfi_index *x)
{
	uint64_t resident = x->section->resident + (x->header ? x->header->resident : 0);

	if (resident > CFI_RESIDENT_MAX ||
	    (resident > CFI_RESIDENT_MIN && !elf_budget_left(ELF_BUDGET_PAGES)))
		cfi_index_drop(x);
}

static int head_at(struct cfi_index *x, uint64_t off, struct cfi_head *ret_head)
{
	uint64_t bytes = x->section->pages.bytes, have = off < bytes ? bytes - off : 0;
	const unsigned char *at;

	have = have < CFI_HEAD_BYTES ? have : CFI_HEAD_BYTES;
	int r = have ? cfi_section_need(x->section, off, have, &at) : -EBADMSG;

	if (!r)
		r = cfi_head_read(at, (size_t)have, off, bytes, x->eh, ret_head);
	return r;
}

static int cie_at(struct cfi_index *x, uint64_t off, const struct cfi_cie **ret_cie)
{
	size_t slot = (size_t)(off / 8 % CFI_CIES);
	const unsigned char *at;
	struct cfi_head head;

	*ret_cie = &x->cies[slot].cie;
	if (x->cies[slot].used && x->cies[slot].off == off)
		return 0;
	int r = head_at(x, off, &head);

	if (r || !head.is_cie)
		return r && r != -ENOENT ? r : -EBADMSG;
	if (head.end - head.body > CFI_CIE_BYTES_MAX)
		return -E2BIG;
	x->cies[slot].used = false;
	x->cie_bytes += head.end - head.off;
	r = cfi_section_need(x->section, head.body, head.end - head.body, &at);
	if (!r)
		r = cfi_cie_read(at, (size_t)(head.end - head.body), x->section->address_bytes,
				 &x->cies[slot].cie);
	x->cies[slot].off = off;
	x->cies[slot].used = !r;
	return r;
}

/* Reads an FDE, at most its first `most` bytes. -ENOENT: the linker has removed it. */
static int fde_of(struct cfi_index *x, const struct cfi_head *head, uint64_t most,
		  const struct cfi_cie **ret_cie, struct cfi_fde *ret_fde)
{
	uint64_t len = head->end - head->body < most ? head->end - head->body : most;
	const unsigned char *at;
	int r = head->is_cie ? -EBADMSG : cie_at(x, head->cie, ret_cie);

	if (!r)
		r = cfi_section_need(x->section, head->body, len, &at);
	return r ? r
		 : cfi_fde_read(*ret_cie, at, (size_t)len, x->section->addr + head->body, ret_fde);
}

int cfi_index_fde(struct cfi_index *x, uint64_t off, const struct cfi_cie **ret_cie,
		  struct cfi_fde *ret_fde)
{
	struct cfi_head head;

	bound_memory(x);
	int r = head_at(x, off, &head);

	if (!r && head.end - head.body > CFI_FDE_BYTES_MAX)
		return -E2BIG;
	if (!r)
		r = fde_of(x, &head, CFI_FDE_BYTES_MAX, ret_cie, ret_fde);
	return r == -ENOENT ? -EBADMSG : r;
}

static int compare(const void *a, const void *b)
{
	const struct cfi_index_entry *x = a, *y = b;

	return x->start != y->start ? (x->start > y->start) - (x->start < y->start)
				    : (x->off > y->off) - (x->off < y->off);
}

/*
 * Adds the FDE of a head. Remembers its error, because it may cover addresses that no other FDE
 * covers.
 */
static int add_entry(struct cfi_index *x, const struct cfi_head *head)
{
	const struct cfi_cie *cie;
	struct cfi_fde fde;
	int r = fde_of(x, head, CFI_FDE_HEAD_MAX, &cie, &fde);

	if (!r && fde.end - fde.start > UINT32_MAX)
		r = -E2BIG;
	if (r == -ENOMEM)
		return r;
	if (r && r != -ENOENT && !x->error)
		x->error = r;
	if (r || fde.start == fde.end)
		return 0;
	if (x->entries.len * sizeof(*x->entries.v) == x->entries_taken) {
		r = elf_budget_take(ELF_BUDGET_SECTIONS, ENTRIES_AT_ONCE);
		if (r)
			return r;
		x->entries_taken += ENTRIES_AT_ONCE;
	}
	return vec_push(&x->entries,
			((struct cfi_index_entry){fde.start, (uint32_t)(fde.end - fde.start),
						  (uint32_t)head->off}));
}

static int scan(struct cfi_index *x)
{
	struct cfi_head head = {.end = 0};
	int r = elf_budget_work(x->section->pages.bytes) ? 0 : -E2BIG;

	x->cie_bytes = 0;
	while (!r && head.end < x->section->pages.bytes) {
		bound_memory(x);
		r = head_at(x, head.end, &head);
		if (!r &&
		    (head.end > CFI_INDEX_BYTES_MAX || x->entries.len == CFI_INDEX_ENTRIES_MAX ||
		     x->cie_bytes > CFI_INDEX_CIE_BYTES_MAX))
			r = -E2BIG;
		if (!r && !head.is_cie)
			r = add_entry(x, &head);
	}
	if (r == -ENOMEM) {
		forget_entries(x);
		x->error = 0;
		return r;
	}
	/* Bytes after the section in its segment are not damage. */
	if (r && r != -ENOENT && !(r == -EBADMSG && x->section->open_end) && !x->error)
		x->error = r;
	if (x->entries.len)
		qsort(x->entries.v, x->entries.len, sizeof(*x->entries.v), compare);
	x->walked = true;
	return 0;
}

/*
 * The start of the function of a table row, and the offset of its FDE. An offset that wraps around
 * is rejected later, because it lies outside the section.
 */
static int row_at(struct cfi_index *x, uint64_t row, uint64_t *ret_start, uint64_t *ret_off)
{
	const unsigned char *at = x->rows ? x->rows + row * HEADER_ROW : NULL;
	int32_t v[2];

	if (!x->header) {
		*ret_start = x->entries.v[row].start;
		*ret_off = x->entries.v[row].off;
		return 0;
	}
	int r = x->rows ? 0
			: cfi_section_need(x->header, x->header_at + row * HEADER_ROW, HEADER_ROW,
					   &at);

	if (r)
		return r;
	memcpy(v, at, sizeof(v));
	*ret_start = x->header->addr + (uint64_t)(int64_t)v[0];
	*ret_off = x->header->addr + (uint64_t)(int64_t)v[1] - x->section->addr;
	return 0;
}

/* The function of a row. -ENOENT: the linker has removed it; -ESTALE: the header is wrong. */
static int row_range(struct cfi_index *x, uint64_t row, struct cfi_place *place)
{
	const struct cfi_cie *cie;
	struct cfi_head head;
	struct cfi_fde fde;
	int r = row_at(x, row, &place->start, &place->off);

	if (r)
		return r;
	if (!x->header) {
		place->end = place->start + x->entries.v[row].bytes;
		return 0;
	}
	if (x->row_bytes && x->row_bytes[row]) {
		place->end = place->start + x->row_bytes[row];
		return 0;
	}
	r = head_at(x, place->off, &head);
	if (!r)
		r = fde_of(x, &head, CFI_FDE_HEAD_MAX, &cie, &fde);
	if (r)
		return r == -EBADMSG ? -ESTALE : r;
	if (fde.end - fde.start > UINT32_MAX)
		return -E2BIG;
	place->end = fde.end;
	if (fde.start != place->start)
		return -ESTALE;
	if (x->row_bytes)
		x->row_bytes[row] = (uint32_t)(fde.end - fde.start);
	return 0;
}

/* The number of rows that start at or before an address. */
static int rows_before(struct cfi_index *x, uint64_t vaddr, uint64_t *ret_rows)
{
	uint64_t low = 0, high = x->header ? x->header_count : x->entries.len, start, off;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		int r = row_at(x, mid, &start, &off);

		if (r)
			return r;
		if (start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	*ret_rows = low;
	return 0;
}

/* Reads the whole table of the header after many lookups. Without memory it is read in parts. */
static void read_whole(struct cfi_index *x)
{
	uint64_t bytes = x->header_count * HEADER_ROW;
	const unsigned char *at;

	if (x->rows || bytes > CFI_WHOLE_BYTES_MAX || x->lookups++ < CFI_WHOLE_AFTER ||
	    bytes > elf_budget_left(ELF_BUDGET_PAGES))
		return;
	x->lookups = 0;
	if (cfi_section_need(x->header, x->header_at, bytes, &at))
		return;
	x->rows = at;
	x->row_bytes = calloc((size_t)x->header_count, sizeof(*x->row_bytes));
}

/* Finds the FDE of vaddr, which is not UINT64_MAX. -ESTALE: the header is wrong. */
static int find(struct cfi_index *x, uint64_t vaddr, struct cfi_place *place)
{
	uint64_t rows = 0, off;
	int r = rows_before(x, vaddr, &rows);

	*place = (struct cfi_place){.hi = UINT64_MAX, .error = x->error ? x->error : -ENOENT};
	if (!r && rows < (x->header ? x->header_count : x->entries.len))
		r = row_at(x, rows, &place->hi, &off);
	if (!r && rows)
		r = row_at(x, rows - 1, &place->lo, &off);
	/* An unsorted table cannot be searched. */
	if (!r && (place->lo > vaddr || place->hi <= vaddr))
		r = -ESTALE;
	for (int back = 0; !r && rows && back < CFI_OVERLAP_MAX; back++) {
		r = row_range(x, --rows, place);
		if (!r && place->start > place->lo)
			r = -ESTALE;
		if (r == -ENOENT || (!r && place->start == place->end)) {
			r = 0;
			continue;
		}
		if (r == -ENOTSUP || r == -E2BIG) {
			place->error = r;
			return 0;
		}
		if (!r && vaddr - place->start < place->end - place->start) {
			place->error = 0;
			place->hi = place->end < place->hi ? place->end : place->hi;
			return 0;
		}
		if (!r && place->end > place->lo)
			place->lo = place->end;
	}
	return (r == -EBADMSG || r == -E2BIG) && x->header ? -ESTALE : r;
}

int cfi_index_find(struct cfi_index *x, uint64_t vaddr, struct cfi_place *ret_place)
{
	struct cfi_place place;
	int r = 0;

	bound_memory(x);
	if (x->header) {
		read_whole(x);
		r = find(x, vaddr, &place);
		if (r == -ESTALE) {
			x->header = NULL;
			forget_rows(x);
			x->header_wrong = true;
		}
	}
	if (!x->header) {
		r = x->walked ? 0 : scan(x);
		if (!r)
			r = find(x, vaddr, &place);
	}
	if (!r)
		*ret_place = place;
	return r;
}
