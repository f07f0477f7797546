#include "flamegraph/svg_text.h"

#include "base/printable.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define SVG_TEXT_REPLACEMENT 0xfffdu
#define SVG_TEXT_MANAGED_CELLS 8 /* fewer columns have no room for ".." on both sides */

/* The character at p. *ret_len: its bytes. Invalid: U+FFFD and one byte. */
static uint32_t svg_text_decode(const unsigned char *p, size_t left, size_t *ret_len)
{
	size_t n = utf8_len(p, left);

	*ret_len = n ? n : 1;
	return n ? utf8_char(p, n) : SVG_TEXT_REPLACEMENT;
}

/* The character to show for a character, after another one. */
static uint32_t svg_text_visible(uint32_t before, uint32_t x)
{
	if (x < 0x20)
		return 0x2400 + x;
	if (x < 0x7f)
		return x;
	if (x == 0x7f)
		return 0x2421;
	if (printable_is_hidden(x) && !printable_is_selector(before, x))
		return SVG_TEXT_REPLACEMENT;
	return x;
}

/* East Asian wide characters and emoji, in blocks. */
static bool svg_text_is_wide(uint32_t x)
{
	return x >= 0x1100 && (x <= 0x115f || (x >= 0x2e80 && x <= 0xa4cf) ||
			       (x >= 0xac00 && x <= 0xd7a3) || (x >= 0xf900 && x <= 0xfaff) ||
			       (x >= 0xfe30 && x <= 0xfe6f) || (x >= 0xff00 && x <= 0xff60) ||
			       (x >= 0xffe0 && x <= 0xffe6) || (x >= 0x1f300 && x <= 0x1f64f) ||
			       (x >= 0x1f900 && x <= 0x1f9ff) || (x >= 0x20000 && x <= 0x3fffd));
}

static void svg_text_char(struct outbuf *out, uint32_t x, bool ascii)
{
	char utf8[4];

	switch (x) {
	case '&':
		outbuf_put(out, "&amp;", 5);
		return;
	case '<':
		outbuf_put(out, "&lt;", 4);
		return;
	case '>':
		outbuf_put(out, "&gt;", 4);
		return;
	case '"':
		outbuf_put(out, "&quot;", 6);
		return;
	case '\'':
		outbuf_put(out, "&#39;", 5);
		return;
	}
	if (x < 0x80) {
		outbuf_char(out, (char)x);
	} else if (ascii) {
		outbuf_printf(out, "&#x%x;", x);
	} else if (x < 0x800) {
		utf8[0] = (char)(0xc0 | x >> 6);
		utf8[1] = (char)(0x80 | (x & 0x3f));
		outbuf_put(out, utf8, 2);
	} else if (x < 0x10000) {
		utf8[0] = (char)(0xe0 | x >> 12);
		utf8[1] = (char)(0x80 | (x >> 6 & 0x3f));
		utf8[2] = (char)(0x80 | (x & 0x3f));
		outbuf_put(out, utf8, 3);
	} else {
		utf8[0] = (char)(0xf0 | x >> 18);
		utf8[1] = (char)(0x80 | (x >> 12 & 0x3f));
		utf8[2] = (char)(0x80 | (x >> 6 & 0x3f));
		utf8[3] = (char)(0x80 | (x & 0x3f));
		outbuf_put(out, utf8, 4);
	}
}

/* Whether the text needs more columns than `cells`. */
static bool svg_text_is_longer(const char *text, size_t len, size_t cells)
{
	size_t used = 0, n;

	for (size_t i = 0; i < len && used <= cells; i += n)
		used += svg_text_is_wide(
				svg_text_decode((const unsigned char *)text + i, len - i, &n))
				? 2
				: 1;
	return used > cells;
}

/* The number of bytes from the start that need no change. */
static size_t svg_text_plain(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && text[n] >= ' ' && text[n] <= '~' && text[n] != '&' && text[n] != '<' &&
	       text[n] != '>' && text[n] != '"' && text[n] != '\'')
		n++;
	return n;
}

void svg_text_put(struct outbuf *out, const char *text, size_t len, size_t cells, bool ascii)
{
	uint32_t x = 0;
	size_t used = 0, n;

	if (cells < 3)
		return;
	bool cut = cells != SIZE_MAX && svg_text_is_longer(text, len, cells);

	if (cut)
		cells -= 2;
	for (size_t i = 0; i < len; i += n) {
		n = svg_text_plain(text + i, len - i);
		if (n > cells - used)
			n = cells - used;
		if (n) {
			outbuf_put(out, text + i, n);
			used += n;
			x = 0;
			continue;
		}
		uint32_t before = x;

		x = svg_text_decode((const unsigned char *)text + i, len - i, &n);
		size_t width = svg_text_is_wide(x) ? 2 : 1;

		if (width > cells - used)
			break;
		svg_text_char(out, svg_text_visible(before, x), ascii);
		used += width;
	}
	if (cut)
		outbuf_put(out, "..", 2);
}

size_t svg_text_managed_start(const char *name, size_t len, size_t cells)
{
	const char *arguments = memchr(name, '(', len);
	size_t stop = arguments ? (size_t)(arguments - name) : len, at = 0;
	size_t rest = stop < len ? 2 : 0; /* ".." for the arguments */
	int depth = 0;                    /* in type arguments */

	if (len <= cells || cells < SVG_TEXT_MANAGED_CELLS || stop + rest <= cells)
		return 0;
	for (size_t i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return 0;
	for (size_t i = 0; i + 1 < stop; i++) {
		depth += (name[i] == '<' || name[i] == '[') - (name[i] == '>' || name[i] == ']');
		if (name[i] != '.' || depth)
			continue;
		at = i + 1;
		if (2 + stop - at + rest <= cells)
			break;
	}
	return at;
}

void svg_text_number(struct outbuf *out, double x)
{
	if (!(x >= 0 && x < 1e15)) {
		outbuf_printf(out, "%.2f", x);
		return;
	}
	uint64_t hundredths = (uint64_t)(x * 100 + 0.5);
	unsigned rest = (unsigned)(hundredths % 100);

	outbuf_u64(out, hundredths / 100);
	if (!rest)
		return;
	outbuf_char(out, '.');
	outbuf_char(out, (char)('0' + rest / 10));
	if (rest % 10)
		outbuf_char(out, (char)('0' + rest % 10));
}

void svg_text_count(struct outbuf *out, double x)
{
	char digits[400];
	int n = snprintf(digits, sizeof(digits), "%.0f", fabs(x));

	if (x < 0 && strcmp(digits, "0") != 0)
		outbuf_char(out, '-');
	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			outbuf_char(out, ',');
		outbuf_char(out, digits[i]);
	}
}

void svg_text_time(struct outbuf *out, double ns)
{
	double a = fabs(ns);

	if (a >= 1e9)
		outbuf_printf(out, "%.3f s", ns / 1e9);
	else if (a >= 1e6)
		outbuf_printf(out, "%.1f ms", ns / 1e6);
	else if (a >= 1e3)
		outbuf_printf(out, "%.1f us", ns / 1e3);
	else
		outbuf_printf(out, "%.0f ns", ns);
}
