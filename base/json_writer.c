#include "base/json_writer.h"

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
	if (key)
		outbuf_printf(w->out, json_has_lines(w) ? "\"%s\": " : "\"%s\":", key);
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

void json_put_i32(struct json_writer *w, const char *key, int32_t x)
{
	json_next(w, key);
	outbuf_printf(w->out, "%d", x);
}

void json_put_bool(struct json_writer *w, const char *key, bool x)
{
	json_next(w, key);
	outbuf_str(w->out, x ? "true" : "false");
}

void json_put_text(struct json_writer *w, const char *key, const char *text)
{
	json_next(w, key);
	if (!text) {
		outbuf_str(w->out, "null");
		return;
	}
	outbuf_char(w->out, '"');
	outbuf_json(w->out, text, strlen(text));
	outbuf_char(w->out, '"');
}
