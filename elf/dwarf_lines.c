#include "elf/dwarf_lines.h"

#include "elf/dwarf_form.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#define ROW_STEPS 3     /* mostly for memory */
#define FORMATS_MAX 255 /* fields of a file entry in version 5; one byte counts them */

/* The header of a table. */
struct line_header {
	unsigned int version, off_bytes, addr_bytes;
	unsigned int min_bytes, max_ops, line_range, opcode_base;
	int line_base;
	unsigned char operands[256]; /* operand counts of the standard opcodes */
};

struct line_reader {
	const struct dwarf_unit *u;
	struct dwarf_data *alt;
	struct line_header h;
	struct dwarf_bytes b;
	struct dwarf_lines *to;
};

/* The state machine that makes rows. */
struct line_state {
	uint64_t addr;
	uint32_t file, line, op;
	size_t first; /* first row of the sequence */
	bool open, full;
};

/* Files */

static int add_file(struct line_reader *r, const char *name)
{
	return r->to->files.len < DWARF_FILES_MAX ? dwarf_data_push(r->u->data, &r->to->files, name)
						  : -EBADMSG;
}

/* Read a text from the table itself. */
static const char *inline_text(struct dwarf_bytes *b)
{
	const unsigned char *nul = memchr(b->p, 0, (size_t)(b->end - b->p)), *at = b->p;

	if (!nul) {
		b->bad = true;
		return NULL;
	}
	b->p = nul + 1;
	return (const char *)at;
}

/* Read the files of versions 2 to 4. The first file has number 1. */
static int old_files(struct line_reader *r)
{
	const char *name;
	int error = add_file(r, NULL);

	while ((name = inline_text(&r->b)) && *name)
		; /* folders */
	while (!error && (name = inline_text(&r->b)) && *name) {
		for (int i = 0; i < 3; i++)
			dwarf_uleb(&r->b);
		error = add_file(r, name);
	}
	return error ? error : r->b.bad ? -EBADMSG : 0;
}

/* Read one field of an entry of version 5. If it is the path, set *ret_name. */
static void new_field(struct line_reader *r, uint64_t type, uint64_t form, const char **ret_name)
{
	struct dwarf_value v;

	if (form == DW_FORM_string) {
		const char *text = inline_text(&r->b);

		if (type == DW_LNCT_path)
			*ret_name = text;
		return;
	}
	dwarf_form(r->u, &r->b, (uint16_t)form, 0, &v);
	if (type == DW_LNCT_path && !r->b.bad)
		*ret_name = dwarf_form_text(r->u, r->alt, &v);
}

/* Read a table of folders or files of version 5. */
static int new_table(struct line_reader *r, bool files)
{
	uint64_t formats[FORMATS_MAX][2];
	uint64_t n = dwarf_uint(&r->b, 1), count;

	for (uint64_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			formats[i][k] = dwarf_uleb(&r->b);
	count = dwarf_uleb(&r->b);
	/* Entries without bytes could claim any count. */
	if (count > (uint64_t)(r->b.end - r->b.p) || count > DWARF_FILES_MAX || (!n && count))
		return -EBADMSG;
	dwarf_data_count(r->u->data, n * count);
	for (uint64_t i = 0; i < count && !r->b.bad; i++) {
		const char *name = NULL;

		for (uint64_t k = 0; k < n; k++)
			new_field(r, formats[k][0], formats[k][1], &name);
		int error = files ? add_file(r, name) : 0;

		if (error)
			return error;
	}
	return r->b.bad ? -EBADMSG : 0;
}

static int read_files(struct line_reader *r)
{
	if (r->h.version < 5)
		return old_files(r);
	int error = new_table(r, false);

	return error ? error : new_table(r, true);
}

/* Rows */

static int end_sequence(struct line_reader *r, struct line_state *s)
{
	struct dwarf_lines *to = r->to;
	size_t n = to->rows.len - s->first;
	int error = 0;

	if (n && to->rows.v[s->first].addr < s->addr)
		error = dwarf_data_push(r->u->data, &to->sequences,
					((struct dwarf_sequence){to->rows.v[s->first].addr, s->addr,
								 (uint32_t)s->first, (uint32_t)n}));
	else
		to->rows.len = s->first;
	*s = (struct line_state){.file = 1, .line = 1, .first = to->rows.len};
	return error;
}

static int add_row(struct line_reader *r, struct line_state *s)
{
	struct dwarf_lines *to = r->to;
	struct dwarf_row row = {s->addr, s->line, s->file};

	/* If several rows have one address, the last one counts. */
	if (to->rows.len > s->first && to->rows.v[to->rows.len - 1].addr == s->addr) {
		to->rows.v[to->rows.len - 1] = row;
		return 0;
	}
	/* Ignore a row that goes back: addresses rise within a sequence. */
	if (to->rows.len > s->first && to->rows.v[to->rows.len - 1].addr > s->addr)
		return 0;
	if (to->rows.len >= DWARF_ROWS_MAX)
		return -EBADMSG;
	return dwarf_data_push(r->u->data, &to->rows, row);
}

static void advance(const struct line_reader *r, struct line_state *s, uint64_t ops)
{
	const struct line_header *h = &r->h;

	if (h->max_ops <= 1) {
		s->addr += h->min_bytes * ops;
		return;
	}
	s->addr += h->min_bytes * ((s->op + ops) / h->max_ops);
	s->op = (uint32_t)((s->op + ops) % h->max_ops);
}

static int extended(struct line_reader *r, struct line_state *s)
{
	uint64_t len = dwarf_uleb(&r->b);
	const unsigned char *end = r->b.p;

	if (r->b.bad || !len || len > (uint64_t)(r->b.end - r->b.p))
		return -EBADMSG;
	end += len;
	int error = 0;

	switch (dwarf_uint(&r->b, 1)) {
	case DW_LNE_end_sequence:
		error = end_sequence(r, s);
		break;
	case DW_LNE_set_address:
		s->addr = dwarf_uint(&r->b, len - 1 > 8 ? 8 : (unsigned int)(len - 1));
		s->op = 0;
		break;
	default:
		break; /* late file names, discriminators */
	}
	r->b.p = end;
	return error;
}

static int standard(struct line_reader *r, struct line_state *s, unsigned int op)
{
	switch (op) {
	case DW_LNS_copy:
		return add_row(r, s);
	case DW_LNS_advance_pc:
		advance(r, s, dwarf_uleb(&r->b));
		return 0;
	case DW_LNS_advance_line:
		s->line += (uint32_t)dwarf_sleb(&r->b);
		return 0;
	case DW_LNS_set_file:
		s->file = (uint32_t)dwarf_uleb(&r->b);
		return 0;
	case DW_LNS_const_add_pc:
		advance(r, s, (255 - r->h.opcode_base) / r->h.line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		s->addr += dwarf_uint(&r->b, 2);
		s->op = 0;
		return 0;
	default:
		for (unsigned int i = 0; i < r->h.operands[op]; i++)
			dwarf_uleb(&r->b);
		return 0;
	}
}

static int read_rows(struct line_reader *r)
{
	struct line_state s = {.file = 1, .line = 1, .first = r->to->rows.len};
	int error = 0;

	while (r->b.p < r->b.end && !error && !r->b.bad) {
		unsigned int op = *r->b.p++;

		if (op >= r->h.opcode_base) {
			unsigned int special = op - r->h.opcode_base;

			s.line += (uint32_t)(r->h.line_base + (int)(special % r->h.line_range));
			advance(r, &s, special / r->h.line_range);
			error = add_row(r, &s);
		} else {
			error = op ? standard(r, &s, op) : extended(r, &s);
		}
	}
	/* Drop a sequence without an end, because its last row has no end. */
	r->to->rows.len = s.first;
	return error == -ENOMEM ? error : 0;
}

static int by_start(const void *a, const void *b)
{
	const struct dwarf_sequence *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->first > y->first) - (x->first < y->first);
}

/* Read the header up to the files. *ret_rows: where the rows begin. */
static int read_header(struct line_reader *r, const unsigned char **ret_rows)
{
	struct line_header *h = &r->h;
	struct dwarf_bytes *b = &r->b;

	h->version = (unsigned int)dwarf_uint(b, 2);
	if (h->version < 2 || h->version > 5)
		return -EBADMSG;
	if (h->version >= 5) {
		h->addr_bytes = (unsigned int)dwarf_uint(b, 1);
		dwarf_uint(b, 1);
	}
	uint64_t len = dwarf_uint(b, h->off_bytes);

	if (b->bad || len > (uint64_t)(b->end - b->p))
		return -EBADMSG;
	*ret_rows = b->p + len;
	h->min_bytes = (unsigned int)dwarf_uint(b, 1);
	h->max_ops = h->version >= 4 ? (unsigned int)dwarf_uint(b, 1) : 1;
	dwarf_uint(b, 1); /* default_is_stmt */
	h->line_base = (int8_t)dwarf_uint(b, 1);
	h->line_range = (unsigned int)dwarf_uint(b, 1);
	h->opcode_base = (unsigned int)dwarf_uint(b, 1);
	if (b->bad || !h->line_range || !h->opcode_base)
		return -EBADMSG;
	for (unsigned int i = 1; i < h->opcode_base; i++)
		h->operands[i] = (unsigned char)dwarf_uint(b, 1);
	return b->bad ? -EBADMSG : 0;
}

/* Find the bytes of the table at off, after its length field. */
static int table_bytes(const struct dwarf_unit *u, uint64_t off, struct line_reader *r)
{
	const struct elf_pages *s = &u->data->sections[DWARF_LINE];

	if (off >= s->bytes || s->bytes - off < 12)
		return -EBADMSG;
	int error = dwarf_data_need(u->data, DWARF_LINE, off, 12);

	if (error)
		return error;
	r->b = (struct dwarf_bytes){s->data + off, s->data + off + 12, false};
	uint64_t len = dwarf_uint(&r->b, 4), head = 4;

	r->h.off_bytes = 4;
	if (len == 0xffffffff) {
		len = dwarf_uint(&r->b, 8);
		head = 12;
		r->h.off_bytes = 8;
	}
	if (len > s->bytes - off - head)
		return -EBADMSG;
	if (len > DWARF_LINES_BYTES_MAX || dwarf_data_over_limit(u->data))
		return -E2BIG;
	dwarf_data_count(u->data, len);
	error = dwarf_data_need(u->data, DWARF_LINE, off + head, len);
	r->b.end = s->data + off + head + len;
	return error;
}

int dwarf_lines_read(const struct dwarf_unit *u, struct dwarf_data *alt, uint64_t off,
		     bool only_files, struct dwarf_lines *lines)
{
	struct line_reader r = {.u = u, .alt = alt, .to = lines};
	const unsigned char *rows = NULL;
	int error = table_bytes(u, off, &r);

	if (!error)
		error = read_header(&r, &rows);
	if (!error)
		error = read_files(&r);
	if (error || only_files)
		return error;
	r.b.p = rows;
	error = read_rows(&r);
	dwarf_data_count(u->data, lines->rows.len * ROW_STEPS);
	if (!error && lines->sequences.len)
		qsort(lines->sequences.v, lines->sequences.len, sizeof(*lines->sequences.v),
		      by_start);
	return error;
}

void dwarf_lines_free(struct dwarf_lines *lines)
{
	vec_free(&lines->rows);
	vec_free(&lines->sequences);
	vec_free(&lines->files);
}

/*
 * Sequences of code that the linker dropped overlap others at address 0. So check this many
 * sequences before the last one that starts early enough.
 */
#define SEQUENCES_BACK 64

static const struct dwarf_sequence *find_sequence(const struct dwarf_lines *lines, uint64_t addr)
{
	size_t lo = 0, hi = lines->sequences.len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->sequences.v[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = lo; i-- > 0 && lo - i <= SEQUENCES_BACK;)
		if (addr < lines->sequences.v[i].end)
			return &lines->sequences.v[i];
	return NULL;
}

const struct dwarf_row *dwarf_lines_find(const struct dwarf_lines *lines, uint64_t addr)
{
	const struct dwarf_sequence *s = find_sequence(lines, addr);

	if (!s)
		return NULL;
	size_t lo = 1, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (lines->rows.v[s->first + mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return &lines->rows.v[s->first + lo - 1];
}
