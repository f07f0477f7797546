#include "elf/function_bounds.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/radix_sort.h"
#include "base/reader.h"
#include "elf/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

/*
 * Pointer encodings: the low half is the format, the high half is the base of a relative pointer.
 */
enum {
	DW_EH_PE_ABSPTR = 0x00,
	DW_EH_PE_UDATA2 = 0x02,
	DW_EH_PE_UDATA4 = 0x03,
	DW_EH_PE_UDATA8 = 0x04,
	DW_EH_PE_SDATA2 = 0x0a,
	DW_EH_PE_SDATA4 = 0x0b,
	DW_EH_PE_SDATA8 = 0x0c,
	DW_EH_PE_FORMAT = 0x0f,
	DW_EH_PE_PCREL = 0x10,
	DW_EH_PE_BASE = 0x70,
	DW_EH_PE_OMIT = 0xff,
};

#define FUNCTION_BOUNDS_AUGMENTATION_MAX 16

struct function_bounds_parser {
	const unsigned char *data;
	size_t len;
	uint64_t addr;
	bool is_64;
	size_t cie_at; /* offset of the last CIE; SIZE_MAX: none */
	int encoding;  /* that CIE's encoding of function addresses; -1: unknown */
};

static void skip_leb128(struct reader *r)
{
	while (reader_u8(r) & 0x80)
		;
}

/* Read a value. *ret_ok false: unknown format. */
static uint64_t read_format(struct reader *r, int encoding, bool is_64, bool *ret_ok)
{
	*ret_ok = true;
	switch (encoding & DW_EH_PE_FORMAT) {
	case DW_EH_PE_ABSPTR:
		return is_64 ? reader_u64(r) : reader_u32(r);
	case DW_EH_PE_UDATA2:
		return reader_u16(r);
	case DW_EH_PE_UDATA4:
		return reader_u32(r);
	case DW_EH_PE_UDATA8:
	case DW_EH_PE_SDATA8:
		return reader_u64(r);
	case DW_EH_PE_SDATA2:
		return (uint64_t)(int16_t)reader_u16(r);
	case DW_EH_PE_SDATA4:
		return (uint64_t)(int32_t)reader_u32(r);
	default:
		*ret_ok = false;
		return 0;
	}
}

/* The encoding of function addresses in an augmentation; -1: unknown. */
static int read_augmentation(struct reader *r, const char *augmentation, bool is_64)
{
	bool ok = true;

	if (augmentation[0] != 'z')
		return augmentation[0] ? -1 : DW_EH_PE_ABSPTR;
	skip_leb128(r);
	for (const char *p = augmentation + 1; *p && ok; p++) {
		if (*p == 'R')
			return reader_u8(r);
		if (*p == 'P')
			(void)read_format(r, reader_u8(r), is_64, &ok);
		else if (*p == 'L')
			(void)reader_u8(r);
		else if (*p != 'S' && *p != 'B')
			ok = false;
	}
	return ok ? DW_EH_PE_ABSPTR : -1;
}

/* The address encoding of the CIE at an offset of the table; -1: unknown. */
static int cie_encoding(struct function_bounds_parser *p, size_t at)
{
	struct reader r = reader_of(p->data, p->len);
	const char *augmentation;
	uint8_t version;
	int encoding;

	if (at == p->cie_at)
		return p->encoding;
	reader_seek(&r, at);
	if (reader_u32(&r) == UINT32_MAX)
		(void)reader_u64(&r);
	(void)reader_u32(&r);
	version = reader_u8(&r);
	augmentation = reader_cstr(&r, FUNCTION_BOUNDS_AUGMENTATION_MAX, NULL);
	if (!augmentation || (version != 1 && version != 3 && version != 4))
		return -1;
	if (version == 4)
		reader_skip(&r, 2);
	skip_leb128(&r);
	skip_leb128(&r);
	if (version == 1)
		(void)reader_u8(&r);
	else
		skip_leb128(&r);
	encoding = read_augmentation(&r, augmentation, p->is_64);
	p->cie_at = at;
	p->encoding = r.failed ? -1 : encoding;
	return p->encoding;
}

/*
 * Read a function's record. r is after the CIE pointer, which was at id_at. Returns 1 and fills
 * *ret_entry, or 0 if it is unreadable.
 */
static int read_fde(struct function_bounds_parser *p, struct reader *r, size_t id_at,
		    uint32_t cie_delta, struct function_bounds_entry *ret_entry)
{
	uint64_t field = p->addr + r->pos, start, bytes;
	bool ok, bytes_ok;
	int encoding = cie_delta <= id_at ? cie_encoding(p, id_at - cie_delta) : -1;

	if (encoding < 0 || encoding == DW_EH_PE_OMIT ||
	    ((encoding & DW_EH_PE_BASE) && (encoding & DW_EH_PE_BASE) != DW_EH_PE_PCREL))
		return 0;
	start = read_format(r, encoding, p->is_64, &ok);
	bytes = read_format(r, encoding, p->is_64, &bytes_ok);
	if (!ok || !bytes_ok || r->failed || !bytes || bytes > UINT32_MAX)
		return 0;
	if (encoding & DW_EH_PE_PCREL)
		start += field;
	*ret_entry = (struct function_bounds_entry){start, (uint32_t)bytes};
	return 1;
}

/* Sort the entries by start. Linkers write nearly all of them in order. */
static int function_bounds_sort(struct function_bounds *b)
{
	size_t n = b->entries.len;
	AUTO_FREE uint64_t *starts = bigmem_alloc(n, sizeof(*starts));
	AUTO_FREE uint32_t *order = bigmem_alloc(n, sizeof(*order));
	struct function_bounds_entry *sorted = bigmem_alloc(n, sizeof(*sorted));
	int r = starts && order && sorted ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++)
		starts[i] = b->entries.v[i].start;
	if (!r)
		r = radix_sort(starts, (uint32_t)n, order);
	if (r) {
		free(sorted);
		return r;
	}
	for (size_t i = 0; i < n; i++)
		sorted[i] = b->entries.v[order[i]];
	free(b->entries.v);
	b->entries.v = sorted;
	b->entries.cap = n;
	return 0;
}

int function_bounds_parse(const void *data, size_t len, uint64_t addr, bool is_64,
			  struct function_bounds *ret_bounds)
{
	struct function_bounds_parser p = {.data = data,
					   .len = len,
					   .addr = addr,
					   .is_64 = is_64,
					   .cie_at = SIZE_MAX,
					   .encoding = -1};
	struct reader r = reader_of(data, len);
	struct function_bounds b = {0};
	struct function_bounds_entry entry;

	while (reader_left(&r) >= 4 && !r.failed) {
		uint64_t bytes = reader_u32(&r);
		size_t id_at, next;
		uint32_t id;

		if (!bytes)
			break;
		if (bytes == UINT32_MAX)
			bytes = reader_u64(&r);
		id_at = r.pos;
		if (r.failed || bytes > reader_left(&r) || bytes < 4)
			break;
		next = id_at + (size_t)bytes;
		id = reader_u32(&r);
		if (id && !read_fde(&p, &r, id_at, id, &entry))
			b.bad++;
		else if (id && vec_push(&b.entries, entry)) {
			function_bounds_free(&b);
			return -ENOMEM;
		}
		r.failed = false;
		r.pos = next;
	}
	bool sorted = true;

	for (size_t i = 1; i < b.entries.len && sorted; i++)
		sorted = b.entries.v[i - 1].start <= b.entries.v[i].start;
	if (!sorted && function_bounds_sort(&b)) {
		function_bounds_free(&b);
		return -ENOMEM;
	}
	*ret_bounds = b;
	return 0;
}

int function_bounds_open(int fd, struct function_bounds *ret_bounds)
{
	AUTO_FREE unsigned char *data = NULL;
	const struct elf_section *section;
	struct elf_file f;
	int r = elf_file_open(&f, fd, NULL, 0, NULL);

	if (r)
		return r;
	section = elf_file_section(&f, ".eh_frame", 0);
	r = section && section->type != SHT_NOBITS
		    ? elf_file_read(&f, section->file_off, section->bytes,
				    FUNCTION_BOUNDS_BYTES_MAX, &data)
		    : -ENOENT;
	if (!r)
		r = function_bounds_parse(data, (size_t)section->bytes, section->addr, f.is_64,
					  ret_bounds);
	elf_file_close(&f);
	return r;
}

void function_bounds_free(struct function_bounds *b)
{
	vec_free(&b->entries);
	*b = (struct function_bounds){0};
}

const struct function_bounds_entry *function_bounds_find(const struct function_bounds *b,
							 uint64_t vaddr)
{
	const struct function_bounds_entry *v = b->entries.v;
	size_t low = 0, high = b->entries.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (v[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && vaddr - v[low - 1].start < v[low - 1].bytes ? &v[low - 1] : NULL;
}
