#include "symbols/jit/perfmap.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/ranges.h"
#include "container/holes.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)1 << 20)

/* One line of a map. */
struct perfmap_entry {
	uint64_t start;
	uint32_t bytes;   /* at least 1 */
	const char *name; /* in the line, NUL-terminated */
};

struct perfmap {
	struct symbol_provider provider;
	char *text;              /* the file's bytes, with a NUL at the end of each good line */
	VEC(struct range) lines; /* tag: offset of the name in text */
	struct range_pieces pieces;
};

static int perfmap_find(struct symbol_provider *p, uint64_t addr, uint64_t time_ns,
			struct symbol *ret_symbol)
{
	const struct perfmap *m = (const struct perfmap *)p;
	const struct range_piece *piece = ranges_find(&m->pieces, addr);

	(void)time_ns;
	if (!piece)
		return -ENOENT;
	const struct range *line = &m->lines.v[piece->id];

	*ret_symbol = (struct symbol){
		.name = m->text + line->tag,
		.name_len = (uint32_t)strlen(m->text + line->tag),
		.source = SYMBOL_PERFMAP,
		.start = piece->start,
		.end = piece->start + piece->bytes,
		.base = line->start,
		.piece = (uint32_t)(piece - m->pieces.pieces.v),
		.until_ns = UINT64_MAX,
	};
	return 0;
}

static uint32_t perfmap_piece(const struct symbol_provider *p, uint64_t addr, uint64_t time_ns)
{
	const struct perfmap *m = (const struct perfmap *)p;
	const struct range_piece *piece = ranges_find(&m->pieces, addr);

	(void)time_ns;
	return piece ? (uint32_t)(piece - m->pieces.pieces.v) : SYMBOL_NO_PIECE;
}

static void perfmap_free(struct symbol_provider *p)
{
	struct perfmap *m = (struct perfmap *)p;

	free(m->text);
	vec_free(&m->lines);
	ranges_free(&m->pieces);
	free(m);
}

static const struct symbol_provider_ops perfmap_ops = {
	.name = "perf-map",
	.find = perfmap_find,
	.piece = perfmap_piece,
	.free = perfmap_free,
};

/* One more than the value of a hexadecimal digit, 0 for other characters. */
static const uint8_t digit_value[256] = {
	['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/*
 * Reads a number and the blanks after it. NULL: no number, over 64 bits, or nothing after it.
 * *end is a newline.
 */
static const char *read_number(const char *p, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;
	uint8_t digit;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	const char *digits = p;

	while (p < end && *p == '0')
		p++;
	const char *significant = p;

	while ((digit = digit_value[(unsigned char)*p])) {
		value = value << 4 | (digit - 1u);
		p++;
	}
	if (p == digits || p - significant > 16 || (*p != ' ' && *p != '\t'))
		return NULL;
	while (*p == ' ' || *p == '\t')
		p++;
	*ret_value = value;
	return p;
}

/* Parses the line [p, eol). *eol is its newline, which is overwritten. False: the line is bad. */
static bool perfmap_parse_line(const char *p, char *eol, struct perfmap_entry *ret_entry)
{
	uint64_t start, size;

	if ((size_t)(eol - p) > PERFMAP_LINE_MAX)
		return false;
	p = read_number(p, eol, &start);
	if (!p)
		return false;
	p = read_number(p, eol, &size);
	if (!p || size > PERFMAP_SIZE_MAX)
		return false;
	if (eol > p && eol[-1] == '\r')
		eol--;
	size += !size;
	if (eol <= p || !*p || size > UINT64_MAX - start)
		return false;
	*eol = 0;
	*ret_entry = (struct perfmap_entry){start, (uint32_t)size, p};
	return true;
}

/*
 * Finds a good line at the end of a bad one. CoreCLR counts characters instead of bytes. So a line
 * whose name is not all ASCII lacks its last bytes and the newline, and in .NET 10 its first bytes
 * too. The next line then follows in the same line, complete.
 */
static bool perfmap_parse_damaged_line(const char *p, char *eol, struct perfmap_entry *ret_line)
{
	for (const char *x = eol; (x = memrchr(p, 'x', (size_t)(x - p)));) {
		if (x > p && x[-1] == '0' && perfmap_parse_line(x - 1, eol, ret_line))
			return true;
	}
	return false;
}

static int read_lines(struct perfmap *m, char *begin, char *end, struct perfmap_stats *stats)
{
	char *eol;

	for (char *p = begin; p < end; p = eol + 1) {
		struct perfmap_entry line;

		eol = memchr(p, '\n', (size_t)(end - p));
		stats->lines++;
		if (!eol) {
			stats->bad_lines++;
			break;
		}
		if (!perfmap_parse_line(p, eol, &line)) {
			stats->bad_lines++;
			if (!perfmap_parse_damaged_line(p, eol, &line))
				continue;
			stats->lines++;
		}
		if (vec_push(&m->lines, ((struct range){line.start, line.bytes,
							(uint32_t)(line.name - m->text)})))
			return -ENOMEM;
	}
	return 0;
}

/* Reserves room for all lines but those before *begin, which it moves on for the limit. */
static int reserve_lines(struct perfmap *m, const char *end, uint64_t lines_max, char **begin)
{
	size_t n = 0, most = lines_max < PERFMAP_ENTRIES_MAX ? lines_max : PERFMAP_ENTRIES_MAX;

	for (const char *p = *begin; (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n++;
	for (; n > most; n--)
		*begin = (char *)memchr(*begin, '\n', (size_t)(end - *begin)) + 1;
	m->lines.v = bigmem_alloc(n, sizeof(*m->lines.v));
	m->lines.cap = m->lines.v ? n : 0;
	return m->lines.v ? 0 : -ENOMEM;
}

/*
 * Makes the provider and takes text, of len bytes and a NUL. *stats holds what was left out of the
 * text so far. If that is its beginning, the first line may be a part of one.
 */
static int perfmap_new(char *text, size_t len, uint64_t lines_max, struct perfmap_stats *stats,
		       struct symbol_provider **ret_map, struct parse_error *err)
{
	struct perfmap *m = calloc(1, sizeof(*m));
	char *begin = text;

	if (!m) {
		free(text);
		return -ENOMEM;
	}
	m->provider.ops = &perfmap_ops;
	m->text = text;
	if (stats->cut_bytes)
		begin = memchr(text, '\n', len) ? (char *)memchr(text, '\n', len) + 1 : text + len;
	int error = reserve_lines(m, text + len, lines_max, &begin);

	stats->cut_bytes += (uint64_t)(begin - text);
	stats->memory_bytes = len + m->lines.cap * PERFMAP_LINE_MEMORY;
	if (!error)
		error = read_lines(m, begin, text + len, stats);
	if (!error && !m->lines.len)
		error = parse_fail(err, -EBADMSG, "no line of a perf map", 0);
	if (!error)
		error = ranges_split(m->lines.v, m->lines.len, &m->pieces);
	stats->overwritten = m->pieces.covered;
	if (error) {
		perfmap_free(&m->provider);
		return error;
	}
	*ret_map = &m->provider;
	return 0;
}

int perfmap_parse(const char *text, size_t len, struct symbol_provider **ret_map,
		  struct perfmap_stats *ret_stats, struct parse_error *err)
{
	if (len > PERFMAP_BYTES_MAX)
		return parse_fail(err, -E2BIG, "perf map too large", 0);
	char *copy = bigmem_alloc(len + 1, 1);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, len);
	copy[len] = 0;
	struct perfmap_stats stats = {0};
	int r = perfmap_new(copy, len, UINT64_MAX, &stats, ret_map, err);

	if (ret_stats && (!r || r == -EBADMSG))
		*ret_stats = stats;
	return r;
}

/* A text that is being read from a file, up to `end` of the file. */
struct reading {
	char *text;
	size_t len, cap;
	size_t line; /* start of the last line in text */
	uint64_t at, end;
	bool skipping; /* the rest of a line is left out */
};

/* Takes n more bytes of the text. True: its last line is too long, and is left out. */
static bool take_bytes(struct reading *r, size_t n)
{
	char *fresh = r->text + r->len;
	const char *eol;

	r->at += n;
	if (r->skipping) {
		eol = memchr(fresh, '\n', n);
		if (!eol)
			return false;
		n -= (size_t)(eol + 1 - fresh);
		memmove(fresh, eol + 1, n);
		r->skipping = false;
	}
	eol = memrchr(fresh, '\n', n);
	r->len += n;
	r->line = eol ? (size_t)(eol + 1 - r->text) : r->line;
	r->skipping = r->len - r->line > PERFMAP_LINE_MAX;
	if (r->skipping)
		r->len = r->line;
	return r->skipping;
}

/*
 * Reads the text, and leaves out lines that are too long. Such a line can be a hole in the file,
 * which costs its writer nothing, so it must cost nothing here either. stats->lines: the number of
 * lines left out.
 */
static int read_text(int fd, struct reading *r, struct perfmap_stats *stats)
{
	while (r->at < r->end && r->len < r->cap) {
		/* No line ends in a hole. */
		uint64_t data = r->skipping ? holes_next_data(fd, r->at) : r->at;

		stats->no_answer = data == UINT64_MAX;
		if (stats->no_answer)
			break;
		r->at = data < r->end ? data : r->end;
		size_t want = r->end - r->at < READ_BYTES ? r->end - r->at : READ_BYTES;

		want = want < r->cap - r->len ? want : r->cap - r->len;
		ssize_t n = pread(fd, r->text + r->len, want, (off_t)r->at);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			r->end = r->at; /* the file was truncated meanwhile */
		if (n > 0)
			stats->lines += take_bytes(r, (size_t)n);
	}
	return 0;
}

/* One half of the memory is for the text, one for its lines. */
int perfmap_load(int fd, uint64_t memory_max, struct symbol_provider **ret_map,
		 struct perfmap_stats *ret_stats, struct parse_error *err)
{
	struct perfmap_stats stats = {0};
	struct stat st;

	if (fstat(fd, &st))
		return parse_fail(err, -errno, "cannot read the perf map", 0);
	if (!S_ISREG(st.st_mode))
		return parse_fail(err, -EBADMSG, "not a regular file", 0);
	uint64_t bytes = (uint64_t)st.st_size;

	if (bytes > PERFMAP_BYTES_MAX)
		return parse_fail(err, -E2BIG, "perf map too large", 0);
	struct reading text = {.end = bytes, .cap = bytes};

	if (bytes > memory_max / 2) {
		text.cap = memory_max / 2;
		/* The end of a file may be one hole. If there is no answer, it counts as text. */
		uint64_t data = holes_data_bytes(fd, bytes);

		if (!data || data > text.cap)
			text.at = bytes - text.cap;
	}
	stats.cut_bytes = text.at;
	text.text = bigmem_alloc(text.cap + 1, 1);
	if (!text.text)
		return -ENOMEM;
	int r = read_text(fd, &text, &stats);

	if (r) {
		free(text.text);
		return parse_fail(err, r, "cannot read the perf map", 0);
	}
	stats.bad_lines = stats.lines;
	text.text[text.len] = 0;
	r = perfmap_new(text.text, text.len, memory_max / 2 / PERFMAP_LINE_MEMORY, &stats, ret_map,
			err);
	stats.cut_bytes += text.end - text.at;
	if (ret_stats && (!r || r == -EBADMSG))
		*ret_stats = stats;
	return r;
}
