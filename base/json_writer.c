#include "base/json_writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool json_has_lines(const struct json_writer *w)
{
	return w->depth <= w->lines;
}

/* Begins a value: the comma, the line and the key. */
static void json_next(struct json_writer *w, const char *key)
{
	if (!w->is_first)
		outbuf_char(w->out, ',');
	w->is_first = false;
	if (json_has_lines(w))
		outbuf_printf(w->out, "\n%*s", 2 * w->depth, "");
	if (!key)
		return;
	outbuf_char(w->out, '"');
	outbuf_json(w->out, key, strlen(key));
	outbuf_str(w->out, json_has_lines(w) ? "\": " : "\":");
}

static struct json_writer json_begin(const struct json_writer *w, char begin, char end)
{
	outbuf_char(w->out, begin);
	return (struct json_writer){w->out, w->depth + 1, w->lines, end, true};
}

struct json_writer json_put_document(struct outbuf *out, int lines)
{
	return json_begin(&(struct json_writer){.out = out, .lines = lines}, '{', '}');
}

struct json_writer json_put_object(struct json_writer *w, const char *key)
{
	json_next(w, key);
	return json_begin(w, '{', '}');
}

struct json_writer json_put_array(struct json_writer *w, const char *key)
{
	json_next(w, key);
	return json_begin(w, '[', ']');
}

void json_put_end(const struct json_writer *w)
{
	if (!w->is_first && json_has_lines(w))
		outbuf_printf(w->out, "\n%*s", 2 * w->depth - 2, "");
	outbuf_char(w->out, w->end);
	if (w->depth == 1)
		outbuf_char(w->out, '\n');
}

void json_put_u64(struct json_writer *w, const char *key, uint64_t x)
{
	json_next(w, key);
	outbuf_u64(w->out, x);
}

void json_put_i64(struct json_writer *w, const char *key, int64_t x)
{
	json_next(w, key);
	if (x < 0)
		outbuf_char(w->out, '-');
	outbuf_u64(w->out, x < 0 ? -(uint64_t)x : (uint64_t)x);
}

void json_put_f64(struct json_writer *w, const char *key, double x, int digits)
{
	char text[32];

	if (!isfinite(x)) {
		json_put_text(w, key, isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
		return;
	}
	/* Two digits less are enough for most numbers, and read better. */
	for (int n = digits - 2; n <= digits; n++) {
		snprintf(text, sizeof(text), "%.*g", n, x);
		if (strtod(text, NULL) == x)
			break;
	}
	json_next(w, key);
	outbuf_str(w->out, text);
}

void json_put_bool(struct json_writer *w, const char *key, bool x)
{
	json_next(w, key);
	outbuf_str(w->out, x ? "true" : "false");
}

void json_put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text) {
		json_put_chars(w, key, text, strlen(text));
		return;
	}
	json_next(w, key);
	outbuf_str(w->out, "null");
}

void json_put_chars(struct json_writer *w, const char *key, const char *text, size_t len)
{
	json_next(w, key);
	outbuf_char(w->out, '"');
	outbuf_json(w->out, text, len);
	outbuf_char(w->out, '"');
}

void json_put_hex(struct json_writer *w, const char *key, const void *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = bytes;

	json_next(w, key);
	outbuf_str(w->out, "\"0x");
	for (size_t i = 0; i < len; i++) {
		outbuf_char(w->out, digits[p[i] >> 4]);
		outbuf_char(w->out, digits[p[i] & 15]);
	}
	outbuf_char(w->out, '"');
}
