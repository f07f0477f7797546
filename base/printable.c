#include "base/printable.h"

#include "base/hash.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t utf8_len(const unsigned char *p, size_t left)
{
	unsigned char c = *p;
	size_t n = c < 0x80                ? 1
		   : c >= 0xc2 && c < 0xe0 ? 2
		   : c >= 0xe0 && c < 0xf0 ? 3
		   : c >= 0xf0 && c < 0xf5 ? 4
					   : 0;

	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ||
	    (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

uint32_t utf8_char(const unsigned char *p, size_t n)
{
	uint32_t x = n == 1 ? *p : *p & (0xffu >> (n + 1));

	for (size_t i = 1; i < n; i++)
		x = x << 6 | (p[i] & 0x3f);
	return x;
}

/* Characters, both included. */
struct printable_range {
	uint32_t first, last;
};

static bool printable_has(const struct printable_range *sorted, size_t n, uint32_t x)
{
	for (size_t i = 0; i < n; i++)
		if (x <= sorted[i].last)
			return x >= sorted[i].first;
	return false;
}

bool printable_is_hidden(uint32_t x)
{
	static const struct printable_range hidden[] = {
		{0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},
		{0x61c, 0x61c},     {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},
		{0x200b, 0x200b},   {0x200e, 0x200f},   {0x2028, 0x202e},   {0x2060, 0x206f},
		{0x2800, 0x2800},   {0x3164, 0x3164},   {0xfdd0, 0xfdef},   {0xfe00, 0xfe0f},
		{0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},   {0x13430, 0x1343f},
		{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
	};

	if ((x & 0xfffe) == 0xfffe) /* the two noncharacters at the end of each plane */
		return true;
	return printable_has(hidden, sizeof(hidden) / sizeof(*hidden), x);
}

bool printable_is_selector(uint32_t before, uint32_t x)
{
	static const struct printable_range emoji[] = {
		{0xa9, 0xa9},     {0xae, 0xae},     {0x203c, 0x203c},   {0x2049, 0x2049},
		{0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x2199},   {0x21a9, 0x21aa},
		{0x231a, 0x231b}, {0x2328, 0x2328}, {0x23cf, 0x23cf},   {0x23e9, 0x23fa},
		{0x24c2, 0x24c2}, {0x25aa, 0x25ab}, {0x25b6, 0x25b6},   {0x25c0, 0x25c0},
		{0x25fb, 0x27bf}, {0x2934, 0x2935}, {0x2b05, 0x2b07},   {0x2b1b, 0x2b1c},
		{0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x3030, 0x3030},   {0x303d, 0x303d},
		{0x3297, 0x3297}, {0x3299, 0x3299}, {0x1f000, 0x1faff},
	};

	if (x == 0xfe0e || x == 0xfe0f)
		return printable_has(emoji, sizeof(emoji) / sizeof(*emoji), before);
	return x >= 0x180b && x <= 0x180d && before >= 0x1820 && before <= 0x18aa;
}

/* A tab is harmless, and perf prints it. *before: the last character, or 0. */
static bool printable_fits(const unsigned char *p, size_t n, uint32_t *before)
{
	uint32_t x = n ? utf8_char(p, n) : 0, last = *before;

	*before = x;
	return n && (x == '\t' || !printable_is_hidden(x) || printable_is_selector(last, x));
}

bool printable_is(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	uint32_t before = 0;

	while (p < end) {
		size_t n = *p >= ' ' && *p < 0x7f ? 1 : utf8_len(p, (size_t)(end - p));

		if (!printable_fits(p, n, &before))
			return false;
		p += n;
	}
	return true;
}

/* Writes the next character, at most 4 * n bytes. Returns their number. */
static size_t printable_put(const unsigned char *from, size_t n, bool fits, char *to)
{
	if (fits) {
		memcpy(to, from, n);
		return n;
	}
	for (size_t i = 0; i < n; i++) {
		to[4 * i] = '\\';
		to[4 * i + 1] = 'x';
		to[4 * i + 2] = "0123456789abcdef"[from[i] >> 4];
		to[4 * i + 3] = "0123456789abcdef"[from[i] & 15];
	}
	return 4 * n;
}

size_t printable_copy(const char *text, size_t len, size_t max, char *to, bool *ret_cut)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;
	size_t done = 0, kept = 0; /* kept: room for the dots remains after it */
	uint32_t before = 0;

	while (p < end) {
		size_t n = utf8_len(p, (size_t)(end - p));
		bool fits = printable_fits(p, n, &before);

		n = n ? n : 1;
		if (done + (fits ? n : 4 * n) > max) {
			*ret_cut = true;
			memcpy(to + kept, PRINTABLE_CUT, strlen(PRINTABLE_CUT));
			return kept + strlen(PRINTABLE_CUT);
		}
		done += printable_put(p, n, fits, to + done);
		p += n;
		if (done + strlen(PRINTABLE_CUT) <= max)
			kept = done;
	}
	*ret_cut = false;
	return done;
}

size_t printable_copy_distinct(const char *text, size_t len, size_t max, char *to, bool *ret_cut)
{
	char digits[PRINTABLE_DIGITS + 1];
	size_t n = printable_copy(text, len, max, to, ret_cut);
	bool ignored;

	if (!*ret_cut)
		return n;
	n = printable_copy(text, len, max - PRINTABLE_DIGITS, to, &ignored);
	snprintf(digits, sizeof(digits), "%08x", hash_stable(text, len));
	memcpy(to + n, digits, PRINTABLE_DIGITS);
	return n + PRINTABLE_DIGITS;
}

void printable_ascii(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}
