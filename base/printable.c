#include "base/printable.h"

#include <stdbool.h>
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

bool printable_is_control(const unsigned char *p, size_t n)
{
	if (n == 1)
		return *p < ' ' || *p == 0x7f;
	if (n == 2)
		return p[0] == 0xc2 && p[1] < 0xa0; /* C1 */
	if (n != 3 || p[0] != 0xe2)
		return false;
	/* U+2028 to U+202E, U+2066 to U+2069: ends of lines, and the direction of writing. */
	return (p[1] == 0x80 && p[2] >= 0xa8 && p[2] <= 0xae) ||
	       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

/* A tab is harmless, and perf prints it. */
static bool printable_fits(const unsigned char *p, size_t n)
{
	return n && (*p == '\t' || !printable_is_control(p, n));
}

bool printable_is(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	while (p < end) {
		size_t n = *p >= ' ' && *p < 0x7f ? 1 : utf8_len(p, (size_t)(end - p));

		if (!printable_fits(p, n))
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

	while (p < end) {
		size_t n = utf8_len(p, (size_t)(end - p));
		bool fits = printable_fits(p, n);

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

void printable_ascii(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}
