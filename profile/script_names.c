#include "profile/script_names.h"

#include <string.h>

#define SCRIPT_ANONYMOUS "(anonymous namespace)"

static bool script_is(struct script_part p, const char *text)
{
	return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

static bool script_has(const char *at, size_t len, const char *text)
{
	return memmem(at, len, text, strlen(text)) != NULL;
}

/* Removes the next name, up to "->", from *rest. rest->at becomes NULL at the end. */
static struct script_part script_next(struct script_part *rest)
{
	const char *arrow = memmem(rest->at, rest->len, "->", 2);
	struct script_part part = *rest;

	if (arrow) {
		part.len = (size_t)(arrow - part.at);
		rest->at = arrow + 2;
		rest->len -= part.len + 2;
	} else {
		*rest = (struct script_part){0};
	}
	return part;
}

/*
 * Returns the text to split, without offset and without empty names at the end; at is NULL if there
 * is no name.
 */
static struct script_part script_splittable(const struct script_frame *frame)
{
	struct script_part text = script_line_symbol(frame->symbol);

	if (text.len && *text.at == '(')
		return (struct script_part){0};
	while (text.len >= 2 && !memcmp(text.at + text.len - 2, "->", 2))
		text.len -= 2;
	return text.len ? text : (struct script_part){0};
}

static bool script_is_lost(struct script_part name, const struct script_frame *frame)
{
	return script_is(name, "[unknown]") && script_is(frame->module, "[unknown]");
}

size_t script_names_source_count(const struct script_frame *frame)
{
	struct script_part rest = script_splittable(frame);
	size_t n = 0;

	for (; rest.at && !script_is_lost(script_next(&rest), frame); n++)
		;
	return n;
}

static void script_put_unknown(const struct script_frame *frame,
			       const struct script_name_options *options, struct outbuf *out)
{
	struct script_part name = {"unknown", 7};

	if (!script_is(frame->module, "[unknown]")) {
		const char *slash = memrchr(frame->module.at, '/', frame->module.len);

		name = frame->module;
		if (slash) {
			name.len -= (size_t)(slash + 1 - name.at);
			name.at = slash + 1;
		}
	}
	outbuf_char(out, '[');
	outbuf_put(out, name.at, name.len);
	if (options->addrs) {
		outbuf_put(out, " <", 2);
		outbuf_put(out, frame->addr.at, frame->addr.len);
		outbuf_char(out, '>');
	}
	outbuf_char(out, ']');
}

/* Returns the length up to the first '(' that must be removed. */
static size_t script_tidy_len(const char *s, size_t len)
{
	const char *go = memmem(s, len, ".(", 2), *p = s, *end = s + len;

	if (go && script_has(go + 2, (size_t)(end - go - 2), ")."))
		return len;
	while ((p = memchr(p, '(', (size_t)(end - p)))) {
		if ((size_t)(end - p) < strlen(SCRIPT_ANONYMOUS) ||
		    memcmp(p, SCRIPT_ANONYMOUS, strlen(SCRIPT_ANONYMOUS)) != 0)
			return (size_t)(p - s);
		p++;
	}
	return len;
}

/* Cleans the part of out from `from` on, in place. */
static void script_tidy(struct outbuf *out, size_t from, bool java)
{
	size_t len = out->len - from, n = 0;
	char *s;

	if (out->error || !len)
		return;
	s = out->data + from;
	for (size_t i = 0; i < len; i++)
		if (s[i] == ';')
			s[i] = ':';
	len = script_tidy_len(s, len);
	for (size_t i = 0; i < len; i++)
		if (s[i] != '"' && s[i] != '\'')
			s[n++] = s[i];
	if (java && n && *s == 'L' && memchr(s, '/', n))
		memmove(s, s + 1, --n);
	out->len = from + n;
}

static bool script_is_kernel(struct script_part module)
{
	bool bracket = module.len && *module.at == '[';
	bool vmlinux = module.len >= 7 && !memcmp(module.at + module.len - 7, "vmlinux", 7);

	return (bracket || vmlinux) && !script_has(module.at, module.len, "unknown");
}

static bool script_is_jit(struct script_part module)
{
	static const char head[] = "/tmp/perf-";
	const char *p = module.at, *end = p + module.len;

	while ((p = memmem(p, (size_t)(end - p), head, sizeof(head) - 1))) {
		const char *digits = p += sizeof(head) - 1;

		while (p < end && *p >= '0' && *p <= '9')
			p++;
		if (p > digits && end - p >= 4 && !memcmp(p, ".map", 4))
			return true;
	}
	return false;
}

static void script_annotate(const struct script_frame *frame,
			    const struct script_name_options *options, bool inlined,
			    struct outbuf *out, size_t from)
{
	const char *mark = NULL;

	if (out->error)
		return;
	if (inlined)
		mark = "_[i]";
	else if (options->kernel && script_is_kernel(frame->module))
		outbuf_put(out, "_[k]", 4);
	else if (options->jit && script_is_jit(frame->module))
		mark = "_[j]";
	if (mark && out->len > from && script_has(out->data + from, out->len - from, mark))
		mark = NULL;
	if (mark)
		outbuf_put(out, mark, 4);
}

void script_names_put_source(struct script_part line, struct outbuf *out)
{
	size_t from = out->len;
	const char *p = line.at, *end = p + line.len;

	while (p < end) {
		const char *open = memchr(p, '[', (size_t)(end - p));
		const char *close = open ? memchr(open, ']', (size_t)(end - open)) : NULL;

		if (!close)
			break;
		outbuf_put(out, p, (size_t)(open - p));
		p = close + 1;
	}
	outbuf_put(out, p, (size_t)(end - p));
	if (out->error || out->len == from)
		return;
	size_t skip = from;

	while (out->len > from && script_line_is_space(out->data[out->len - 1]))
		out->len--;
	while (skip < out->len && script_line_is_space(out->data[skip]))
		skip++;
	if (skip > from)
		memmove(out->data + from, out->data + skip, out->len - skip);
	out->len -= skip - from;
}

/* Removes one source line from *sources and appends it to the name. */
static void script_put_next_source(struct script_part *sources, struct outbuf *out)
{
	const char *newline = memchr(sources->at, '\n', sources->len);
	struct script_part line = *sources;
	size_t at = out->len;

	if (newline) {
		line.len = (size_t)(newline - line.at);
		sources->at = newline + 1;
		sources->len -= line.len + 1;
	} else {
		*sources = (struct script_part){0};
	}
	outbuf_char(out, ':');
	script_names_put_source(line, out);
	if (!out->error && out->len == at + 1)
		out->len = at;
}

size_t script_names(const struct script_frame *frame, const struct script_name_options *options,
		    struct script_part sources, struct outbuf *out)
{
	struct script_part rest = script_splittable(frame);
	bool lost = false;
	size_t n = 0;

	for (; rest.at; n++) {
		struct script_part name = script_next(&rest);

		if (n)
			outbuf_char(out, ';');
		size_t from = out->len;

		lost = lost || script_is_lost(name, frame);
		if (script_is(name, "[unknown]"))
			script_put_unknown(frame, options, out);
		else
			outbuf_put(out, name.at, name.len);
		script_tidy(out, from, options->java);
		script_annotate(frame, options, n > 0, out, from);
		if (options->srcline && !lost && sources.at)
			script_put_next_source(&sources, out);
	}
	return n;
}
