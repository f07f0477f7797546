#include "base/outbuf.h"

#include "base/file.h"
#include "base/printable.h"
#include "base/reader.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct outbuf outbuf_to(int fd)
{
	return (struct outbuf){.fd = fd};
}

static void outbuf_code_point(struct outbuf *o, uint32_t x)
{
	if (x < 0x80) {
		outbuf_char(o, (char)x);
		return;
	}
	int more = x < 0x800 ? 1 : x < 0x10000 ? 2 : 3;

	outbuf_char(o, (char)((0xff00u >> (more + 1) & 0xff) | x >> (6 * more)));
	while (more--)
		outbuf_char(o, (char)(0x80 | (x >> (6 * more) & 0x3f)));
}

void outbuf_utf16(struct outbuf *o, const void *units, size_t count)
{
	struct reader r = reader_of(units, count * 2);

	while (reader_left(&r)) {
		uint32_t x = reader_u16(&r);

		if (x >= 0xd800 && x < 0xe000) {
			size_t back = r.pos;
			uint32_t low = x < 0xdc00 && reader_left(&r) ? reader_u16(&r) : 0;

			if (low >= 0xdc00 && low < 0xe000) {
				x = 0x10000 + ((x & 0x3ff) << 10 | (low & 0x3ff));
			} else {
				r.pos = back;
				x = 0xfffd;
			}
		}
		outbuf_code_point(o, x);
	}
}

/* Reads the next code point of a text that does not end here; invalid UTF-8 gives U+FFFD. */
static uint32_t utf8_code_point(const unsigned char **cursor, const unsigned char *end)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = *cursor;
	int n = *p < 0x80                 ? 1
		: *p >= 0xc2 && *p < 0xe0 ? 2
		: (*p & 0xf0) == 0xe0     ? 3
		: (*p & 0xf8) == 0xf0     ? 4
					  : 0;
	uint32_t x = n == 1 ? *p : n ? *p & (0x7fu >> n) : 0xfffd;

	for (int i = 1; i < n; i++) {
		if (p + i == end || (p[i] & 0xc0) != 0x80) {
			*cursor += i;
			return 0xfffd;
		}
		x = x << 6 | (p[i] & 0x3f);
	}
	*cursor += n ? n : 1;
	if (n && (x < least[n] || x > 0x10ffff || (x >= 0xd800 && x < 0xe000)))
		return 0xfffd;
	return x;
}

static void outbuf_unit(struct outbuf *o, uint32_t unit)
{
	outbuf_char(o, (char)unit);
	outbuf_char(o, (char)(unit >> 8));
}

void outbuf_utf8_units(struct outbuf *o, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	while (p < end) {
		uint32_t x = utf8_code_point(&p, end);

		if (x >= 0x10000) {
			outbuf_unit(o, 0xd7c0 + (x >> 10));
			x = 0xdc00 + (x & 0x3ff);
		}
		outbuf_unit(o, x);
	}
}

int outbuf_flush(struct outbuf *o)
{
	if (o->fd < 0 || !o->len || o->error)
		return o->error;
	o->error = file_write_all(o->fd, o->data, o->len);
	o->written += o->len;
	o->len = 0;
	return o->error;
}

/* Returns room for n more bytes; NULL after an error. */
static char *outbuf_room(struct outbuf *o, size_t n)
{
	if (o->error)
		return NULL;
	if (o->fd >= 0 && o->len && n > OUTBUF_BYTES - o->len && outbuf_flush(o))
		return NULL;
	if (n > o->cap - o->len) {
		size_t need = o->fd >= 0 && n < OUTBUF_BYTES ? OUTBUF_BYTES : o->len + n;

		o->error = vec_grow((void **)&o->data, &o->cap, 1, need);
		if (o->error)
			return NULL;
	}
	return o->data + o->len;
}

void outbuf_put(struct outbuf *o, const void *data, size_t len)
{
	if (!len)
		return;
	if (o->fd >= 0 && len >= OUTBUF_BYTES) {
		if (outbuf_flush(o))
			return;
		o->error = file_write_all(o->fd, data, len);
		o->written += len;
		return;
	}
	char *p = len ? outbuf_room(o, len) : NULL;

	if (p) {
		memcpy(p, data, len);
		o->len += len;
	}
}

void outbuf_str(struct outbuf *o, const char *text)
{
	outbuf_put(o, text, strlen(text));
}

void outbuf_char(struct outbuf *o, char c)
{
	char *p = outbuf_room(o, 1);

	if (p) {
		*p = c;
		o->len++;
	}
}

static void outbuf_digits(struct outbuf *o, uint64_t x, unsigned base)
{
	char buf[24];
	size_t at = sizeof(buf);

	do
		buf[--at] = "0123456789abcdef"[x % base];
	while (x /= base);
	outbuf_put(o, buf + at, sizeof(buf) - at);
}

void outbuf_printable(struct outbuf *o, const char *text, size_t len, size_t max)
{
	size_t need = len <= max / 4 ? 4 * len : max;
	char *p = outbuf_room(o, need);
	bool cut;

	if (p)
		o->len += printable_copy(text, len, max, p, &cut);
}

void outbuf_u64(struct outbuf *o, uint64_t x)
{
	outbuf_digits(o, x, 10);
}

void outbuf_hex(struct outbuf *o, uint64_t x)
{
	outbuf_digits(o, x, 16);
}

void outbuf_printf(struct outbuf *o, const char *format, ...)
{
	va_list args, again;
	char small[512];

	va_start(args, format);
	va_copy(again, args);
	int n = vsnprintf(small, sizeof(small), format, args);

	if (n >= 0 && (size_t)n < sizeof(small)) {
		outbuf_put(o, small, (size_t)n);
	} else if (n >= 0) {
		char *p = outbuf_room(o, (size_t)n + 1);

		if (p) {
			vsnprintf(p, (size_t)n + 1, format, again);
			o->len += (size_t)n;
		}
	}
	va_end(again);
	va_end(args);
}

/* A character as an escape of JSON: one or two UTF-16 units. */
static void outbuf_json_escape(struct outbuf *o, uint32_t x)
{
	if (x < 0x10000)
		outbuf_printf(o, "\\u%04x", x);
	else
		outbuf_printf(o, "\\u%04x\\u%04x", 0xd7c0 + (x >> 10), 0xdc00 + (x & 0x3ff));
}

/* Characters that stay as they are; most texts have no others. */
static bool json_is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

void outbuf_json(struct outbuf *o, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;

	for (size_t i = 0; i < len;) {
		size_t plain = i;

		while (plain < len && json_is_plain(p[plain]))
			plain++;
		outbuf_put(o, p + i, plain - i);
		i = plain;
		if (i == len)
			break;
		size_t n = utf8_len(p + i, len - i);

		if (!n)
			outbuf_str(o, "\\ufffd");
		else if (p[i] == '"' || p[i] == '\\')
			outbuf_printf(o, "\\%c", p[i]);
		else if (printable_is_hidden(utf8_char(p + i, n)))
			outbuf_json_escape(o, utf8_char(p + i, n));
		else
			outbuf_put(o, p + i, n);
		i += n ? n : 1;
	}
}

int outbuf_close(struct outbuf *o)
{
	int r = outbuf_flush(o);

	free(o->data);
	o->data = NULL;
	o->len = o->cap = 0;
	return r;
}
