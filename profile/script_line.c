#include "profile/script_line.h"

#include <string.h>

static bool script_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool script_is_word(char c)
{
	return script_is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool script_is_lower_hex(char c)
{
	return script_is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool script_part_is(struct script_part p, const char *text)
{
	return p.len == strlen(text) && !memcmp(p.at, text, p.len);
}

/* Parses white space, digits, slashes, digits and white space from `at` on. */
static bool script_header_ids(const char *at, const char *end, struct script_header *h)
{
	const char *first, *slash, *second;

	while (at < end && script_line_is_space(*at))
		at++;
	for (first = at; at < end && script_is_digit(*at); at++)
		;
	for (slash = at; at < end && *at == '/'; at++)
		;
	for (second = at; at < end && script_is_digit(*at); at++)
		;
	if (slash == first || at == end || !script_line_is_space(*at))
		return false;
	h->pid = (struct script_part){first, (size_t)(slash - first)};
	h->tid = (struct script_part){second, (size_t)(at - second)};
	h->ids = (struct script_part){first, (size_t)(at - first)};
	if (!h->tid.len || script_part_is(h->tid, "0")) {
		h->ids = h->tid = h->pid;
		h->pid = (struct script_part){"?", 1};
	}
	while (at < end && script_line_is_space(*at))
		at++;
	h->rest = at;
	return true;
}

bool script_line_header(const char *line, size_t len, struct script_header *ret)
{
	const char *end = line + len;
	struct script_header h;

	if (len < 2 || script_line_is_space(*line))
		return false;
	for (const char *p = line + 2; p < end; p++) {
		if (!script_line_is_space(*p))
			continue;
		if (script_header_ids(p, end, &h)) {
			h.comm = (struct script_part){line, (size_t)(p - line)};
			*ret = h;
			return true;
		}
		/* Starting later in this white space would give the same result. */
		while (p + 1 < end && script_line_is_space(p[1]))
			p++;
	}
	return false;
}

bool script_line_event(const char *line, size_t len, struct script_event *ret)
{
	const char *end = line + len, *name, *p, *period;

	while (end > line && script_line_is_space(end[-1]))
		end--;
	for (name = end; name > line && !script_line_is_space(name[-1]); name--)
		;
	if (end - name < 2 || end[-1] != ':')
		return false;
	for (p = name; p > line && script_line_is_space(p[-1]); p--)
		;
	if (p == name)
		return false;
	const char *period_end = p;

	while (p > line && script_is_digit(p[-1]))
		p--;
	period = p;
	while (p > line && script_line_is_space(p[-1]))
		p--;
	if (p == line || p[-1] != ':')
		return false;
	ret->name = (struct script_part){name, (size_t)(end - 1 - name)};
	ret->period = (struct script_part){period, (size_t)(period_end - period)};
	return true;
}

/* Returns the space of the last " (" before `close`; NULL: none. */
static const char *script_last_open(const char *line, const char *close)
{
	const char *p = close;

	while ((p = memrchr(line, '(', (size_t)(p - line))))
		if (p > line && p[-1] == ' ')
			return p - 1;
	return NULL;
}

bool script_line_frame(const char *line, size_t len, struct script_frame *ret)
{
	const char *end = line + len, *addr, *addr_end, *symbol;
	const char *close = memrchr(line, ')', len);
	const char *open = close ? script_last_open(line, close) : NULL;

	if (!open)
		return false;
	for (addr = line; addr < end && script_line_is_space(*addr); addr++)
		;
	for (addr_end = addr; addr_end < end && script_is_word(*addr_end); addr_end++)
		;
	if (addr_end == addr || open < addr_end)
		return false;
	for (symbol = addr_end; symbol < open && script_line_is_space(*symbol); symbol++)
		;
	/*
	 * The symbol has at least one byte. Take it from the white space, or else from the address.
	 */
	if (symbol == open)
		symbol = open - 1;
	if (symbol < addr_end)
		addr_end = symbol;
	if (addr_end == addr)
		return false;
	ret->addr = (struct script_part){addr, (size_t)(addr_end - addr)};
	ret->symbol = (struct script_part){symbol, (size_t)(open - symbol)};
	ret->module = (struct script_part){open + 2, (size_t)(close - open - 2)};
	return true;
}

uint64_t script_line_weight(struct script_part period)
{
	uint64_t weight = 0;

	if (!period.len || script_part_is(period, "0"))
		return 1;
	for (size_t i = 0; i < period.len; i++)
		if (__builtin_mul_overflow(weight, 10, &weight) ||
		    __builtin_add_overflow(weight, (uint64_t)(period.at[i] - '0'), &weight))
			return UINT64_MAX;
	return weight;
}

struct script_part script_line_symbol(struct script_part symbol)
{
	size_t n = symbol.len;

	while (n && script_is_lower_hex(symbol.at[n - 1]))
		n--;
	if (n < symbol.len && n >= 3 && !memcmp(symbol.at + n - 3, "+0x", 3))
		symbol.len = n - 3;
	return symbol;
}

bool script_line_hex(struct script_part text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text.len || text.len > 16 || (text.len > 1 && *text.at == '0'))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.at[i];

		if (!script_is_lower_hex(c))
			return false;
		value = value << 4 | (uint64_t)(script_is_digit(c) ? c - '0' : c - 'a' + 10);
	}
	*ret_value = value;
	return true;
}

static void script_put_text(struct outbuf *out, const struct profile *profile, uint32_t text)
{
	uint32_t len;
	const char *s = profile_text_of(profile, text, &len);

	outbuf_put(out, s, len);
}

static void script_put_addr(struct outbuf *out, uint64_t addr)
{
	char buf[17];
	size_t at = sizeof(buf) - 1;

	buf[at] = ' ';
	do
		buf[--at] = "0123456789abcdef"[addr & 15];
	while ((addr >>= 4));
	while (at)
		buf[--at] = ' ';
	outbuf_put(out, buf, sizeof(buf));
}

void script_line_put_frame(struct outbuf *out, const struct profile *profile,
			   const struct profile_frame *frame)
{
	outbuf_char(out, '\t');
	if (frame->addr_is_text) {
		script_put_text(out, profile, (uint32_t)frame->addr);
		outbuf_char(out, ' ');
	} else {
		script_put_addr(out, frame->addr);
	}
	if (frame->perf_name == PROFILE_NONE)
		outbuf_put(out, "[unknown]", 9);
	else
		script_put_text(out, profile, frame->perf_name);
	if (frame->has_sym_off) {
		outbuf_put(out, "+0x", 3);
		outbuf_hex(out, frame->sym_off);
	}
	if (frame->inlined) {
		outbuf_put(out, " (inlined)", 10);
	} else if (frame->module != PROFILE_NONE) {
		outbuf_put(out, " (", 2);
		script_put_text(out, profile, frame->module);
		outbuf_char(out, ')');
	}
	outbuf_char(out, '\n');
}

void script_line_put_thread(struct outbuf *out, const struct profile *profile,
			    const struct profile_thread *thread)
{
	script_put_text(out, profile, thread->comm);
	outbuf_put(out, "  ", 2);
	if (thread->ids_text) {
		script_put_text(out, profile, thread->ids_text - 1);
	} else {
		if (thread->pid >= 0) {
			outbuf_u64(out, (uint64_t)thread->pid);
			outbuf_char(out, '/');
		}
		outbuf_u64(out, thread->tid >= 0 ? (uint64_t)thread->tid : 0);
	}
	outbuf_char(out, ' ');
}

void script_line_put_event(struct outbuf *out, const struct profile *profile,
			   const struct profile_event *event, uint64_t weight)
{
	outbuf_char(out, ' ');
	if (event->has_period) {
		/* Write "00", because "0" would be read as 1. */
		if (!weight)
			outbuf_char(out, '0');
		outbuf_u64(out, weight);
		outbuf_char(out, ' ');
	}
	script_put_text(out, profile, event->name);
	outbuf_str(out, event->has_fields ? ": ..." : ": ");
}
