#include "symbols/jit/perfmap.h"

#include "base/bigmem.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/ranges.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAMPLE_BYTES ((size_t)64 << 10)
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

static int read_lines(struct perfmap *m, size_t len, struct perfmap_stats *stats)
{
	char *end = m->text + len, *eol;

	for (char *p = m->text; p < end; p = eol + 1) {
		struct perfmap_entry line;

		eol = memchr(p, '\n', (size_t)(end - p));
		stats->lines++;
		if (!eol) {
			stats->bad_lines++;
			break;
		}
		if (m->lines.len >= PERFMAP_ENTRIES_MAX) {
			stats->bad_lines++;
			continue;
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

/*
 * Reserves room for all lines, if they are about as long as the first ones: growing means copying.
 */
static int reserve_lines(struct perfmap *m, size_t len)
{
	size_t sample = len < SAMPLE_BYTES ? len : SAMPLE_BYTES, lines = 1;

	for (size_t i = 0; i < sample; i++)
		lines += m->text[i] == '\n';
	double expected = (double)lines * (double)len / (double)(sample ? sample : 1) * 1.1;
	size_t n =
		expected < (double)PERFMAP_ENTRIES_MAX ? (size_t)expected + 1 : PERFMAP_ENTRIES_MAX;

	m->lines.v = bigmem_alloc(n, sizeof(*m->lines.v));
	m->lines.cap = m->lines.v ? n : 0;
	return m->lines.v ? 0 : -ENOMEM;
}

/*
 * Makes the provider and takes text, of len bytes and a NUL, from which skipped bad lines were left
 * out.
 */
static int perfmap_new(char *text, size_t len, uint64_t skipped, struct symbol_provider **ret_map,
		       struct perfmap_stats *ret_stats, struct parse_error *err)
{
	struct perfmap_stats stats = {.lines = skipped, .bad_lines = skipped};
	struct perfmap *m = calloc(1, sizeof(*m));

	if (!m) {
		free(text);
		return -ENOMEM;
	}
	m->provider.ops = &perfmap_ops;
	m->text = text;
	int error = reserve_lines(m, len);

	if (!error)
		error = read_lines(m, len, &stats);
	if (!error && !m->lines.len)
		error = parse_fail(err, -EBADMSG, "no line of a perf map", 0);
	if (!error)
		error = ranges_split(m->lines.v, m->lines.len, &m->pieces);
	stats.overwritten = m->pieces.covered;
	if (ret_stats && (!error || error == -EBADMSG))
		*ret_stats = stats;
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
	return perfmap_new(copy, len, 0, ret_map, ret_stats, err);
}

/*
 * Reads up to max bytes, and leaves out lines that are too long. Such a line can be a hole in the
 * file, which costs its writer nothing, so it must cost nothing here either. *ret_skipped: the
 * number of lines left out.
 */
static int read_text(int fd, char *text, size_t max, size_t *ret_len, uint64_t *ret_skipped)
{
	size_t at = 0, len = 0, line = 0; /* line: start of the last line */
	bool skipping = false;
	uint64_t skipped = 0;

	while (at < max) {
		off_t data = skipping ? lseek(fd, (off_t)at, SEEK_DATA) : -1;

		/* No line ends in a hole. */
		if (skipping && data < 0 && errno == ENXIO)
			break;
		if (data > (off_t)at)
			at = (size_t)data < max ? (size_t)data : max;
		size_t want = max - at < READ_BYTES ? max - at : READ_BYTES;
		ssize_t n = pread(fd, text + len, want, (off_t)at);
		const char *end;

		if (n < 0 && errno != EINTR)
			return -errno;
		if (!n)
			break; /* the file was truncated meanwhile */
		if (n < 0)
			continue;
		at += (size_t)n;
		if (skipping) {
			end = memchr(text + len, '\n', (size_t)n);
			if (!end)
				continue;
			n -= end + 1 - (text + len);
			memmove(text + len, end + 1, (size_t)n);
			skipping = false;
		}
		end = memrchr(text + len, '\n', (size_t)n);
		len += (size_t)n;
		line = end ? (size_t)(end + 1 - text) : line;
		if (len - line > PERFMAP_LINE_MAX) {
			len = line;
			skipping = true;
			skipped++;
		}
	}
	*ret_len = len;
	*ret_skipped = skipped;
	return 0;
}

int perfmap_load(int fd, struct symbol_provider **ret_map, struct perfmap_stats *ret_stats,
		 struct parse_error *err)
{
	struct stat st;
	uint64_t skipped = 0;
	size_t len = 0;

	if (fstat(fd, &st))
		return parse_fail(err, -errno, "cannot read the perf map", 0);
	if (!S_ISREG(st.st_mode))
		return parse_fail(err, -EBADMSG, "not a regular file", 0);
	if ((uint64_t)st.st_size > PERFMAP_BYTES_MAX)
		return parse_fail(err, -E2BIG, "perf map too large", 0);
	AUTO_FREE char *text = bigmem_alloc((size_t)st.st_size + 1, 1);

	if (!text)
		return -ENOMEM;
	int r = read_text(fd, text, (size_t)st.st_size, &len, &skipped);

	if (r)
		return parse_fail(err, r, "cannot read the perf map", 0);
	text[len] = 0;
	return perfmap_new(TAKE_PTR(text), len, skipped, ret_map, ret_stats, err);
}
