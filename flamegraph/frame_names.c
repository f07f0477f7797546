#include "flamegraph/frame_names.h"

#include "base/hash.h"
#include "profile/script_names.h"

#include <errno.h>
#include <string.h>

int frame_names_init(struct frame_names *f, const struct profile *profile,
		     const struct collapse_options *options, bool java, struct intern *names)
{
	size_t n = profile_nframes(profile);

	*f = (struct frame_names){.profile = profile,
				  .options = options,
				  .java = java,
				  .names = names,
				  .line = outbuf_to(-1),
				  .text = outbuf_to(-1)};
	f->of_frame = malloc((n + 1) * sizeof(*f->of_frame));
	if (!f->of_frame)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		f->of_frame[i] = FRAME_NAMES_UNSET;
	return 0;
}

void frame_names_free(struct frame_names *f)
{
	free(f->of_frame);
	vec_free(&f->lists);
	hashmap_free(&f->pairs);
	outbuf_close(&f->line);
	outbuf_close(&f->text);
}

/* Turns f->text, names joined by ';', into a value of of_frame. */
static int frame_names_split(struct frame_names *f, uint32_t *ret_value)
{
	const char *p = f->text.len ? f->text.data : "", *end = p + f->text.len, *semicolon;
	size_t at = f->lists.len;
	uint32_t name;
	int r = vec_push(&f->lists, 0);

	for (; !r; p = semicolon + 1) {
		semicolon = memchr(p, ';', (size_t)(end - p));
		r = intern_put(f->names, p, (size_t)((semicolon ? semicolon : end) - p), &name);
		if (!r)
			r = vec_push(&f->lists, name);
		if (!semicolon)
			break;
	}
	if (r)
		return r;
	if (f->lists.len > FRAME_NAMES_SEVERAL / 2)
		return -E2BIG;
	f->lists.v[at] = (uint32_t)(f->lists.len - at - 1);
	*ret_value = FRAME_NAMES_SEVERAL | (uint32_t)at;
	if (f->lists.v[at] == 1) {
		*ret_value = name;
		f->lists.len = at;
	}
	return 0;
}

static bool frame_names_is_text(const struct profile *profile, struct script_part part,
				uint32_t text)
{
	uint32_t len;
	const char *s = profile_text_of(profile, text, &len);

	return part.len == len && !memcmp(part.at, s, len);
}

/* Whether the line's symbol and module equal the frame's, at any offset. */
static bool frame_names_is_plain(const struct frame_names *f, const struct profile_frame *frame,
				 const struct script_frame *line)
{
	if (f->options->include_addrs || f->options->inline_names ||
	    frame->srcline != PROFILE_NONE || frame->module == PROFILE_NONE || frame->inlined)
		return false;
	if (!frame_names_is_text(f->profile, line->module, frame->module))
		return false;
	return frame->perf_name == PROFILE_NONE ||
	       frame_names_is_text(f->profile, script_line_symbol(line->symbol), frame->perf_name);
}

/* Makes the names from the line that perf script prints for the frame. */
static int frame_names_perf(struct frame_names *f, const struct profile_frame *frame,
			    uint32_t *ret_value, bool *ret_plain)
{
	const struct script_name_options options = {
		.addrs = f->options->include_addrs,
		.kernel = f->options->annotate_kernel,
		.jit = f->options->annotate_jit,
		.java = f->java,
		.srcline = f->options->srcline,
	};
	struct script_part sources = {0};
	struct script_frame line;
	uint32_t len;

	f->line.len = 0;
	f->text.len = 0;
	*ret_value = FRAME_NAMES_NONE;
	*ret_plain = false;
	script_line_put_frame(&f->line, f->profile, frame);
	if (f->line.error)
		return f->line.error;
	if (!script_line_frame(f->line.data, f->line.len - 1, &line))
		return 0;
	if (f->options->inline_names) {
		int r = f->options->inline_names(f->options->inline_ctx, &line, &f->text);

		if (r != -ENOENT)
			return r ? r : frame_names_split(f, ret_value);
		f->text.len = 0;
	}
	*ret_plain = frame_names_is_plain(f, frame, &line);
	if (frame->srcline != PROFILE_NONE) {
		sources.at = profile_text_of(f->profile, frame->srcline, &len);
		sources.len = len;
	}
	size_t n = script_names(&line, &options, sources, &f->text);

	if (f->text.error || !n)
		return f->text.error;
	return frame_names_split(f, ret_value);
}

void frame_names_put_full(struct outbuf *out, const char *s, size_t len)
{
	size_t from = out->len;

	outbuf_put(out, s, len);
	for (size_t i = from; !out->error && i < out->len; i++) {
		if (out->data[i] == ';')
			out->data[i] = ':';
		if (out->data[i] == '\n')
			out->data[i] = '?';
	}
}

static size_t frame_names_digits(const struct outbuf *out, size_t end)
{
	while (end && out->data[end - 1] >= '0' && out->data[end - 1] <= '9')
		end--;
	return end;
}

void frame_names_end_full(struct outbuf *out)
{
	size_t at = out->error ? 0 : frame_names_digits(out, out->len);

	if (at && out->data[at - 1] == '.')
		at = frame_names_digits(out, at - 1);
	if (at && at < out->len && out->data[at] != '.' &&
	    (out->data[at - 1] == ' ' || out->data[at - 1] == '\t'))
		out->data[at - 1] = '_';
}

/*
 * Names a frame that is not code. perf never prints these, so the script's rules do not apply.
 * Wakers get the form of process names at the root.
 */
static int frame_names_label(struct frame_names *f, const struct profile_frame *frame,
			     uint32_t *ret_value)
{
	uint32_t len;
	const char *s = profile_text_of(f->profile, frame->name, &len);
	struct outbuf *out = &f->text;

	out->len = 0;
	frame_names_put_full(out, s, len);
	for (size_t i = 0; frame->kind == FRAME_WAKEUP && !out->error && i < out->len; i++)
		if (out->data[i] == ' ')
			out->data[i] = '_';
	frame_names_end_full(out);
	return out->error ? out->error : frame_names_split(f, ret_value);
}

static int frame_names_perf_once(struct frame_names *f, const struct profile_frame *frame,
				 uint32_t *ret_value)
{
	uint64_t key = ((uint64_t)frame->perf_name << 32 | frame->module) ^
		       ((uint64_t)frame->has_sym_off << 63);
	uint32_t *known = NULL;
	bool plain = !f->options->include_addrs && !f->options->inline_names &&
		     frame->srcline == PROFILE_NONE && !frame->inlined;
	int r;

	if (frame->is_mark) {
		*ret_value = FRAME_NAMES_NONE;
		return 0;
	}
	if (!frame_kind_is_code(frame->kind))
		return frame_names_label(f, frame, ret_value);
	if (plain)
		known = hashmap_get(&f->pairs, key);
	if (known) {
		*ret_value = *known;
		return 0;
	}
	r = frame_names_perf(f, frame, ret_value, &plain);
	if (!r && plain)
		r = hashmap_put(&f->pairs, key, *ret_value);
	return r;
}

static void frame_names_mark(struct frame_names *f, const struct profile_frame *frame)
{
	if (f->options->annotate_inlined && frame->inlined)
		outbuf_str(&f->text, "_[i]");
	else if (f->options->annotate_kernel && frame->kind == FRAME_KERNEL)
		outbuf_str(&f->text, "_[k]");
	else if (f->options->annotate_jit && frame->kind == FRAME_MANAGED)
		outbuf_str(&f->text, "_[j]");
}

static int frame_names_full(struct frame_names *f, const struct profile_frame *frame,
			    uint32_t *ret_value)
{
	uint32_t len;
	const char *s = profile_text_of(f->profile, frame->name, &len);
	struct outbuf *out = &f->text;

	out->len = 0;
	if (f->options->include_addrs && frame->status == FRAME_IS_UNKNOWN &&
	    !frame->addr_is_text) {
		bool bracket = len && s[len - 1] == ']';

		frame_names_put_full(out, s, len - bracket);
		outbuf_str(out, " <");
		outbuf_hex(out, frame->addr);
		outbuf_str(out, bracket ? ">]" : ">");
	} else {
		frame_names_put_full(out, s, len);
	}
	outbuf_str(out, profile_grade_mark(frame->grade));
	frame_names_mark(f, frame);
	if (f->options->srcline && frame->srcline != PROFILE_NONE) {
		s = profile_text_of(f->profile, frame->srcline, &len);
		outbuf_char(out, ':');
		frame_names_put_full(out, s, len);
	}
	frame_names_end_full(out);
	return out->error ? out->error : frame_names_split(f, ret_value);
}

int frame_names_find(struct frame_names *f, uint32_t frame, const uint32_t **ret_names,
		     size_t *ret_n)
{
	uint32_t *value = &f->of_frame[frame];

	if (*value == FRAME_NAMES_UNSET) {
		const struct profile_frame *fields = profile_frame_of(f->profile, frame);
		int r = f->options->names == COLLAPSE_PERF ? frame_names_perf_once(f, fields, value)
							   : frame_names_full(f, fields, value);

		if (r)
			return r;
	}
	if (*value == FRAME_NAMES_NONE) {
		*ret_n = 0;
	} else if (*value & FRAME_NAMES_SEVERAL) {
		const uint32_t *list = f->lists.v + (*value & ~FRAME_NAMES_SEVERAL);

		*ret_names = list + 1;
		*ret_n = *list;
	} else {
		*ret_names = value;
		*ret_n = 1;
	}
	return 0;
}
