#include "recording/script_frame.h"

#include "profile/script_names.h"

#include <errno.h>
#include <string.h>

static bool script_starts(struct script_part p, const char *head)
{
	size_t n = strlen(head);

	return p.len >= n && !memcmp(p.at, head, n);
}

static bool script_ends(struct script_part p, const char *tail)
{
	size_t n = strlen(tail);

	return p.len >= n && !memcmp(p.at + p.len - n, tail, n);
}

static struct script_part script_base(struct script_part path)
{
	const char *slash = path.len ? memrchr(path.at, '/', path.len) : NULL;

	if (slash)
		path = (struct script_part){slash + 1, path.len - (size_t)(slash + 1 - path.at)};
	return path;
}

static enum frame_kind script_bracket_kind(struct script_part module)
{
	static const char *const memory[] = {"[unknown", "[heap", "[stack", "[anon", "[uprobes"};

	if (script_starts(module, "[vdso") || script_starts(module, "[vsyscall"))
		return FRAME_NATIVE;
	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		if (script_starts(module, memory[i]))
			return FRAME_UNKNOWN;
	return FRAME_KERNEL;
}

/* The text has only the path of a module. */
static enum frame_kind script_kind(struct script_part module)
{
	static const char *const runtime[] = {"libcoreclr",      "libclrjit",  "libclrgc",
					      "libhostpolicy",   "libhostfxr", "libSystem.",
					      "libmscordaccore", "libmscordbi"};
	struct script_part base = script_base(module);

	if (script_starts(module, "["))
		return script_bracket_kind(module);
	if (script_starts(base, "vmlinux") || script_ends(base, ".ko"))
		return FRAME_KERNEL;
	if ((script_starts(base, "perf-") && script_ends(base, ".map")) ||
	    script_ends(base, ".dll") || script_ends(base, ".exe") ||
	    script_starts(module, "/memfd:doublemapper"))
		return FRAME_MANAGED;
	for (size_t i = 0; i < sizeof(runtime) / sizeof(*runtime); i++)
		if (script_starts(base, runtime[i]))
			return FRAME_RUNTIME;
	return FRAME_NATIVE;
}

/* Parts of a line. symbol.at NULL: unknown; module.at NULL: none. */
struct script_fields {
	struct script_part addr, symbol, module;
	uint64_t sym_off;
	bool has_sym_off;
};

/*
 * Parses a line that is exactly "ADDR SYMBOL+0xOFF (MODULE)", as perf writes it. The script's rules
 * find another end of the symbol if the module is "/x (deleted)". Fields from here give the same
 * line again.
 */
static bool script_fields_exact(const char *line, size_t len, const struct script_frame *f,
				struct script_fields *ret)
{
	const char *at = f->addr.at + f->addr.len, *end = line + len, *p, *open;
	uint64_t addr;

	if (end[-1] != ')' || *at != ' ' || script_line_is_space(at[1]) ||
	    !script_line_hex(f->addr, &addr))
		return false;
	at++;
	for (p = at; (p = memmem(p, (size_t)(end - p), "+0x", 3)); p = open) {
		struct script_part digits = {p + 3, 0};

		open = memchr(p, ' ', (size_t)(end - p));
		if (!open)
			return false;
		digits.len = (size_t)(open - digits.at);
		if (p == at || open[1] != '(' || !script_line_hex(digits, &ret->sym_off))
			continue;
		ret->addr = f->addr;
		ret->symbol = (struct script_part){at, (size_t)(p - at)};
		ret->has_sym_off = true;
		ret->module = (struct script_part){open + 2, (size_t)(end - 1 - open - 2)};
		return true;
	}
	return false;
}

/*
 * Parses the line by the script's rules. An offset that is not a number counts as 0, because no
 * output shows it.
 */
static void script_fields_plain(const struct script_frame *f, struct script_fields *ret)
{
	struct script_part symbol = script_line_symbol(f->symbol);
	size_t plain = symbol.len;

	*ret = (struct script_fields){.addr = f->addr, .symbol = symbol, .module = f->module};
	if (plain == f->symbol.len)
		return;
	ret->has_sym_off = true;
	if (!script_line_hex(
		    (struct script_part){f->symbol.at + plain + 3, f->symbol.len - plain - 3},
		    &ret->sym_off))
		ret->sym_off = 0;
}

/*
 * Parses an address and a symbol without a module, as perf script prints them without the dso
 * field.
 */
static bool script_fields_bare(const char *line, size_t len, struct script_fields *ret)
{
	const char *p = line, *end = line + len;
	struct script_part addr;
	uint64_t value;

	while (p < end && script_line_is_space(*p))
		p++;
	while (end > p && script_line_is_space(end[-1]))
		end--;
	addr.at = p;
	while (p < end && *p != ' ')
		p++;
	addr.len = (size_t)(p - addr.at);
	if (addr.at == line || end - p < 2 || !script_line_hex(addr, &value))
		return false;
	struct script_frame f = {.addr = addr, .symbol = {p + 1, (size_t)(end - p - 1)}};

	script_fields_plain(&f, ret);
	return true;
}

/*
 * Makes the full form of the name: that of full_name for a symbol, otherwise "[libc.so.6]" or
 * "[unknown]".
 */
static int script_full_name(struct profile *profile, const struct script_text_options *options,
			    const struct script_fields *fields, enum frame_kind kind,
			    uint32_t *ret_name)
{
	struct outbuf out = outbuf_to(-1);

	if (!fields->symbol.at) {
		struct script_part base = script_base(fields->module);
		bool bracket = script_starts(base, "[");

		if (!base.len)
			base = (struct script_part){"unknown", 7};
		outbuf_put(&out, "[", bracket ? 0 : 1);
		outbuf_put(&out, base.at, base.len);
		outbuf_put(&out, "]", bracket ? 0 : 1);
	} else if (kind == FRAME_MANAGED && options->full_name) {
		options->full_name(fields->symbol.at, fields->symbol.len, &out);
	} else {
		outbuf_put(&out, fields->symbol.at, fields->symbol.len);
	}
	int r = out.error ? out.error
			  : profile_text(profile, out.data ? out.data : "", out.len, ret_name);

	outbuf_close(&out);
	return r;
}

static int script_frame_addr(struct profile *profile, struct script_part addr,
			     struct profile_frame *frame)
{
	uint32_t text;
	int r;

	if (script_line_hex(addr, &frame->addr))
		return 0;
	/* The text would be shortened to one that is not read as an address again. */
	if (addr.len > PROFILE_TEXT_MAX)
		addr.len = PROFILE_TEXT_MAX;
	r = profile_text(profile, addr.at, addr.len, &text);
	if (!r) {
		frame->addr = text;
		frame->addr_is_text = true;
	}
	return r;
}

static int script_frame_fill(struct profile *profile, const struct script_text_options *options,
			     struct script_fields *fields, struct profile_frame *ret_frame)
{
	struct profile_frame frame = {
		.sym_off = fields->sym_off,
		.perf_name = PROFILE_NONE,
		.module = PROFILE_NONE,
		.srcline = PROFILE_NONE,
		.status = FRAME_IS_NAMED,
		.has_sym_off = fields->has_sym_off,
	};
	enum frame_kind kind = fields->module.at ? script_kind(fields->module) : FRAME_NATIVE;
	int r = script_frame_addr(profile, fields->addr, &frame);

	frame.inlined = fields->module.len == 7 && script_starts(fields->module, "inlined");
	if (fields->symbol.len == 9 && script_starts(fields->symbol, "[unknown]")) {
		fields->symbol.at = NULL;
		frame.status = FRAME_IS_UNKNOWN;
		if (!fields->module.at)
			kind = FRAME_UNKNOWN;
	} else if (!r) {
		r = profile_text(profile, fields->symbol.at, fields->symbol.len, &frame.perf_name);
	}
	if (!r && fields->module.at && !frame.inlined)
		r = profile_text(profile, fields->module.at, fields->module.len, &frame.module);
	if (!r)
		r = script_full_name(profile, options, fields, kind, &frame.name);
	frame.kind = (uint8_t)kind;
	if (!r)
		*ret_frame = frame;
	return r;
}

int script_frame_parse(struct profile *profile, const char *line, size_t len,
		       const struct script_text_options *options, struct profile_frame *ret_frame,
		       size_t *ret_sources)
{
	struct script_fields fields = {0};
	struct script_frame frame;
	size_t sources = 0;
	int r;

	if (script_line_frame(line, len, &frame)) {
		sources = script_names_source_count(&frame);
		if (!script_fields_exact(line, len, &frame, &fields))
			script_fields_plain(&frame, &fields);
	} else if (!script_fields_bare(line, len, &fields)) {
		return -ENOENT;
	}
	r = script_frame_fill(profile, options, &fields, ret_frame);
	if (!r && ret_sources)
		*ret_sources = sources;
	return r;
}
