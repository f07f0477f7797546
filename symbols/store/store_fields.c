#include "symbols/store/store_fields.h"

#include "base/printable.h"

#include <errno.h>
#include <string.h>

void store_text_put_name(struct outbuf *out, const char *name, size_t len)
{
	const char *end = name + len;

	while (name < end) {
		size_t n = 0;

		while (name + n < end && name[n] != '\\' && name[n] != '\t')
			n++;
		outbuf_printable(out, name, n, 4 * n);
		name += n;
		if (name < end)
			outbuf_printf(out, "\\x%02x", *name++);
	}
	outbuf_char(out, '\n');
}

void store_text_put_field(struct outbuf *out, const char *text)
{
	bool plain = text && printable_is(text, strlen(text));

	/* Keep it one word, whoever made the text. */
	for (size_t i = 0; text && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		outbuf_char(out, c > 0x20 && (plain || c < 0x7f) ? text[i] : '_');
	}
	if (!text || !*text)
		outbuf_char(out, '-');
	outbuf_char(out, ' ');
}

char *store_text_field(char **p)
{
	char *field = *p, *blank;

	if (!field || !*field)
		return NULL;
	blank = strchr(field, ' ');
	*p = blank ? blank + 1 : field + strlen(field);
	if (blank)
		*blank = '\0';
	return field;
}

int store_text_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int store_text_hex(char **p, uint64_t *ret_x)
{
	const char *field = store_text_field(p);
	uint64_t x = 0;
	size_t n = 0;

	for (; field && field[n]; n++) {
		int digit = store_text_digit(field[n]);

		if (digit < 0 || n >= 16)
			return -EBADMSG;
		x = x << 4 | (unsigned int)digit;
	}
	if (!n)
		return -EBADMSG;
	*ret_x = x;
	return 0;
}

int store_text_name(char *p, size_t *ret_len)
{
	size_t to = 0;

	for (size_t i = 0; p[i]; i++, to++) {
		int high, low;

		if (p[i] != '\\') {
			p[to] = p[i];
			continue;
		}
		if (p[i + 1] != 'x' || (high = store_text_digit(p[i + 2])) < 0 ||
		    (low = store_text_digit(p[i + 3])) < 0)
			return -EBADMSG;
		p[to] = (char)(high << 4 | low);
		if (!p[to])
			return -EBADMSG;
		i += 3;
	}
	p[to] = '\0';
	*ret_len = to;
	return 0;
}

enum symbol_source store_text_source(const char *field)
{
	for (int i = 0; field && i < SYMBOL_SOURCES; i++)
		if (!strcmp(field, symbol_source_name((enum symbol_source)i)))
			return (enum symbol_source)i;
	return SYMBOL_NONE;
}
