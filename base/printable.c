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

static bool printable_is_control(const unsigned char *p, size_t n)
{
	return (n == 1 && (*p < ' ' || *p == 0x7f)) || (n == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

void printable_message(char *text)
{
	unsigned char *to = (unsigned char *)text, *from = to, *end = to + strlen(text);

	while (from < end) {
		size_t n = utf8_len(from, (size_t)(end - from));

		if (!n || printable_is_control(from, n)) {
			*to++ = '?';
			from += n ? n : 1;
			continue;
		}
		memmove(to, from, n);
		to += n;
		from += n;
	}
	*to = 0;
}

void printable_ascii(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}
