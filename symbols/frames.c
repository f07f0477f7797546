#include "symbols/frames.h"

#include "base/outbuf.h"
#include "symbols/core/symbol.h"
#include "symbols/names/aot_name.h"
#include "symbols/names/dotnet_names.h"
#include "symbols/names/managed_name.h"
#include "symbols/names/native_name.h"

#include <errno.h>
#include <string.h>

void frames_free(struct frames *f)
{
	vec_free(&f->frame_images);
	vec_free(&f->symbols);
	vec_free(&f->images);
	vec_free(&f->texts);
	hashmap_free(&f->text_ids);
	hashmap_free(&f->srclines);
}

static bool frames_starts(const char *text, const char *head)
{
	return !strncmp(text, head, strlen(head));
}

static bool frames_ends(const char *text, const char *tail)
{
	size_t len = strlen(text), n = strlen(tail);

	return len >= n && !strcmp(text + len - n, tail);
}

static uint8_t frames_image_kind(const struct lookup_cache_image *image, const char *path,
				 const char *base)
{
	switch ((enum image_kind)image->key.kind) {
	case IMAGE_KIND_KERNEL:
		return FRAME_KERNEL;
	case IMAGE_KIND_JIT:
		return frames_starts(path, "/memfd:doublemapper") ? FRAME_MANAGED : FRAME_UNKNOWN;
	case IMAGE_KIND_OTHER:
		return FRAME_UNKNOWN;
	case IMAGE_KIND_FILE:
		if (frames_ends(base, ".dll") || frames_ends(base, ".exe"))
			return FRAME_MANAGED;
		return dotnet_names_is_native(base) ? FRAME_RUNTIME : FRAME_NATIVE;
	default:
		return FRAME_NATIVE;
	}
}

static int frames_image_names(struct frames *f, const struct lookup_cache_image *image,
			      struct frames_image_names *ret_names)
{
	const char *path = intern_text(&f->lookup_cache->texts, image->key.path);
	const char *deleted =
		frames_ends(path, " (deleted)") ? path + strlen(path) - strlen(" (deleted)") : NULL;
	struct frames_image_names n = {.done = true};
	const char *base = path + strlen(path);
	struct outbuf buf = outbuf_to(-1);
	int r;

	while (base > path && base[-1] != '/')
		base--;
	outbuf_put(&buf, base, deleted && deleted > base ? (size_t)(deleted - base) : strlen(base));
	outbuf_char(&buf, '\0');
	r = buf.error ? buf.error : profile_text(f->profile, buf.data, buf.len - 1, &n.base);
	if (!r)
		n.kind = frames_image_kind(image, path, buf.data);
	n.identity = image->key.kind == IMAGE_KIND_OTHER ||
		     (image->key.kind == IMAGE_KIND_JIT && !frames_starts(path, "/memfd:"));
	/* perf cannot name JIT code in a memfd. Nevertheless perf's form has our names for it. */
	n.perf_blind = image->key.kind == IMAGE_KIND_FILE && deleted;
	buf.len = 0;
	/* For memory without a file, perf shows the path of the perf map. */
	if (image->key.kind == IMAGE_KIND_JIT && n.identity)
		outbuf_printf(&buf, "/tmp/perf-%d.map", image->key.pid);
	else
		outbuf_str(&buf, path);
	if (!r)
		r = buf.error ? buf.error : profile_text(f->profile, buf.data, buf.len, &n.module);
	outbuf_close(&buf);
	if (!r)
		*ret_names = n;
	return r;
}

int frames_image(struct frames *f, uint32_t image, const struct frames_image_names **ret_names)
{
	struct frames_image_names blank = {0};
	int r = 0;

	while (f->images.len <= image)
		if (vec_push(&f->images, blank))
			return -ENOMEM;
	if (!f->images.v[image].done)
		r = frames_image_names(f, &f->lookup_cache->images.v[image], &f->images.v[image]);
	if (!r && ret_names)
		*ret_names = &f->images.v[image];
	return r;
}

static uint8_t frames_flags(uint8_t kind, const char *name)
{
	static const char *const roots[] = {
		"_start",
		"_dl_start_user",
		"__libc_start_main",
		"__libc_start_call_main",
		"start_thread",
		"thread_start",
		"clone",
		"__clone",
		"clone3",
		"__clone3",
		"main",
		"__clone_internal",
		"_dl_start",
	};
	static const char *const kernel_roots[] = {
		"ret_from_fork",       "ret_from_fork_asm",         "kthread",
		"x86_64_start_kernel", "x86_64_start_reservations",
	};
	static const char *const idle[] = {
		"do_idle",   "cpu_startup_entry", "start_secondary",
		"rest_init", "start_kernel",      "cpu_bringup_and_idle",
	};
	uint8_t flags = 0;

	if (kind != FRAME_KERNEL) {
		if (frames_starts(name, "__restore") ||
		    frames_starts(name, "__kernel_rt_sigreturn"))
			flags |= CALLCHAIN_FRAME_TRAMPOLINE;
		for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
			if (!strcmp(name, roots[i]))
				flags |= CALLCHAIN_FRAME_ROOT;
		if (frames_starts(name, "__libc_start_main"))
			flags |= CALLCHAIN_FRAME_ROOT;
		return flags;
	}
	if (frames_starts(name, "asm_") || !strcmp(name, "error_entry") ||
	    !strcmp(name, "common_interrupt"))
		flags |= CALLCHAIN_FRAME_INTERRUPTED;
	for (size_t i = 0; i < sizeof(kernel_roots) / sizeof(*kernel_roots); i++)
		if (!strcmp(name, kernel_roots[i]))
			flags |= CALLCHAIN_FRAME_ROOT;
	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		if (!strcmp(name, idle[i]))
			flags |= CALLCHAIN_FRAME_IDLE | CALLCHAIN_FRAME_ROOT;
	if (frames_starts(name, "secondary_startup_64") || !strcmp(name, "common_startup_64"))
		flags |= CALLCHAIN_FRAME_IDLE | CALLCHAIN_FRAME_ROOT;
	return flags;
}

/* The name of a placed function: its image and its start, "[libfoo.so+0x1234]". */
static int frames_placed_name(struct frames *f, const struct frames_image_names *image,
			      const char *start, uint32_t *ret_name)
{
	struct outbuf buf = outbuf_to(-1);
	int r;

	outbuf_printf(&buf, "[%s+%s]", profile_text_of(f->profile, image->base, NULL), start);
	r = buf.error ? buf.error : profile_text(f->profile, buf.data, buf.len, ret_name);
	outbuf_close(&buf);
	return r;
}

/* Writes the full form of a name from a perf map. */
static void frames_managed_name(const struct frames *f, const char *raw, size_t len,
				struct outbuf *out, uint8_t *ret_kind)
{
	struct managed_name_part tier, module;
	enum managed_name_kind kind;
	size_t at = out->len;

	kind = managed_name_full(raw, len, out, &tier, &module);
	*ret_kind = kind == MANAGED_NAME_STUB ? FRAME_RUNTIME : FRAME_MANAGED;
	if (f->raw_names || out->len == at) {
		out->len = at;
		outbuf_put(out, raw, len);
	}
}

/*
 * Sets the full form of a symbol's name, and its kind if the name decides that. program: the last
 * part of its image's path.
 */
static int frames_full_name(struct frames *f, uint32_t source, const char *program, const char *raw,
			    size_t len, struct frames_symbol_names *n)
{
	struct outbuf buf = outbuf_to(-1);
	int r = 0;

	if (symbol_source_is_managed(source))
		frames_managed_name(f, raw, len, &buf, &n->kind);
	else if (f->mangled)
		outbuf_put(&buf, raw, len);
	else if (source == SYMBOL_AOT)
		r = aot_name_full(raw, len, program, &buf);
	else
		r = native_name_full(raw, len, &buf);
	if (!r)
		r = buf.error
			    ? buf.error
			    : profile_text(f->profile, buf.len ? buf.data : "", buf.len, &n->name);
	outbuf_close(&buf);
	return r;
}

static int frames_symbol_names(struct frames *f, const struct lookup_cache_symbol *s,
			       struct frames_symbol_names *ret_names)
{
	struct frames_symbol_names n = {.done = true, .status = FRAME_IS_NAMED};
	const struct frames_image_names *image;
	struct outbuf buf = outbuf_to(-1);
	const char *raw;
	size_t len;
	int r = frames_image(f, s->image, &image);

	if (r)
		return r;
	n.kind = s->source == SYMBOL_AOT ? FRAME_MANAGED : image->kind;
	raw = intern_text(&f->lookup_cache->texts, s->name);
	if (s->source == SYMBOL_BOUNDS) {
		n.status = FRAME_IS_PLACED;
		n.perf_name = PROFILE_NONE;
		r = frames_placed_name(f, image, raw, &n.name);
		if (!r)
			*ret_names = n;
		return r;
	}
	len = intern_len(&f->lookup_cache->texts, s->name);
	n.flags = frames_flags(n.kind, raw);
	if (symbol_source_is_managed(s->source) || s->source == SYMBOL_KALLSYMS)
		outbuf_put(&buf, raw, len);
	else
		r = native_name_perf(raw, len, &buf);
	if (!r)
		r = buf.error ? buf.error
			      : profile_text(f->profile, buf.len ? buf.data : "", buf.len,
					     &n.perf_name);
	n.name = n.perf_name;
	if (!r && !f->perf_names_only)
		r = frames_full_name(f, s->source, profile_text_of(f->profile, image->base, NULL),
				     raw, len, &n);
	outbuf_close(&buf);
	if (!r)
		*ret_names = n;
	return r;
}

static int frames_symbol(struct frames *f, uint32_t symbol,
			 const struct frames_symbol_names **ret_names)
{
	struct frames_symbol_names blank = {0};
	int r = 0;

	while (f->symbols.len <= symbol)
		if (vec_push(&f->symbols, blank))
			return -ENOMEM;
	if (!f->symbols.v[symbol].done)
		r = frames_symbol_names(f, &f->lookup_cache->symbols.v[symbol],
					&f->symbols.v[symbol]);
	if (!r && ret_names)
		*ret_names = &f->symbols.v[symbol];
	return r;
}

bool frames_is_trampoline(struct frames *f, const struct frames_place *exact)
{
	const struct lookup_cache_symbol *s;

	if (exact->symbol == LOOKUP_NONE)
		return false;
	s = &f->lookup_cache->symbols.v[exact->symbol];
	return s->start == exact->addr && s->source != SYMBOL_BOUNDS &&
	       (frames_flags(FRAME_NATIVE, intern_text(&f->lookup_cache->texts, s->name)) &
		CALLCHAIN_FRAME_TRAMPOLINE);
}

/* Names an address without a symbol by its module alone, because its function is not known. */
static int frames_unnamed(struct frames *f, uint32_t image, struct profile_frame *frame)
{
	const struct frames_image_names *names;
	const struct image_key *key;
	struct outbuf buf = outbuf_to(-1);
	int r;

	frame->status = FRAME_IS_UNKNOWN;
	if (image == LOOKUP_NONE) {
		frame->kind = FRAME_UNKNOWN;
		return profile_text(f->profile, "[unknown]", strlen("[unknown]"), &frame->name);
	}
	r = frames_image(f, image, &names);
	if (r)
		return r;
	key = &f->lookup_cache->images.v[image].key;
	frame->kind = names->kind;
	if (key->kind == IMAGE_KIND_KERNEL)
		outbuf_str(&buf, "[kernel]");
	else if (key->kind == IMAGE_KIND_VDSO || key->kind == IMAGE_KIND_VSYSCALL)
		outbuf_str(&buf, intern_text(&f->lookup_cache->texts, key->path));
	else if (key->kind == IMAGE_KIND_FILE)
		outbuf_printf(&buf, "[%s]", profile_text_of(f->profile, names->base, NULL));
	else
		outbuf_str(&buf, "[unknown]");
	r = buf.error ? buf.error : profile_text(f->profile, buf.data, buf.len, &frame->name);
	outbuf_close(&buf);
	return r;
}

static int frames_full_part(struct frames *f, const struct frames_place *full,
			    struct profile_frame *frame, uint8_t *ret_flags)
{
	const struct frames_symbol_names *names;
	int r;

	*ret_flags = 0;
	if (full->map_name != PROFILE_NONE) {
		frame->name = full->map_name;
		frame->kind = FRAME_KERNEL;
		frame->status = FRAME_IS_NAMED;
		frame->source = SYMBOL_KSYMBOL;
		return 0;
	}
	if (full->symbol == LOOKUP_NONE)
		return frames_unnamed(f, full->image, frame);
	r = frames_symbol(f, full->symbol, &names);
	if (r)
		return r;
	frame->name = names->name;
	frame->kind = names->kind;
	frame->status = names->status;
	frame->source = (uint8_t)f->lookup_cache->symbols.v[full->symbol].source;
	*ret_flags = names->flags;
	return 0;
}

/*
 * Whether the offsets in functions of this module can be left out. If the module's name is not a
 * single word ("/memfd:doublemapper (deleted)"), stackcollapse-perf.pl takes offsets as a part of
 * names without parameters.
 */
static bool frames_is_offset_free(struct frames *f, uint32_t module)
{
	if (!f->checked || f->checked_module != module) {
		f->checked = true;
		f->checked_module = module;
		f->module_is_word =
			module != PROFILE_NONE &&
			!strpbrk(profile_text_of(f->profile, module, NULL), " \t\n\v\f\r()");
	}
	return f->module_is_word;
}

static int frames_set_image(struct frames *f, uint32_t frame, uint32_t image)
{
	if (f->frame_images.len > frame)
		return 0;
	/* Other frames of the profile, such as inlined ones, lie between. */
	while (f->frame_images.len < frame)
		if (vec_push(&f->frame_images, LOOKUP_NONE))
			return -ENOMEM;
	return vec_push(&f->frame_images, image);
}

static int frames_make_uncached(struct frames *f, const struct frames_place *exact,
				const struct frames_place *full, uint32_t srcline,
				struct callchain_frame *ret_frame)
{
	struct profile_frame frame = {
		.addr = exact->shown,
		.perf_name = PROFILE_NONE,
		.module = exact->module,
		.srcline = srcline,
		.grade = full->grade,
	};
	const struct frames_symbol_names *names;
	const struct frames_image_names *image;
	int r = frames_full_part(f, full, &frame, &ret_frame->flags);

	if (!r && exact->map_name != PROFILE_NONE) {
		frame.perf_name = exact->map_name;
		frame.sym_off = exact->shown - exact->map_start;
		frame.has_sym_off = true;
	} else if (!r && exact->symbol != LOOKUP_NONE) {
		r = frames_symbol(f, exact->symbol, &names);
		if (!r)
			r = frames_image(f, exact->image, &image);
		if (!r && !image->perf_blind && !exact->perf_blind &&
		    names->perf_name != PROFILE_NONE) {
			frame.perf_name = names->perf_name;
			frame.sym_off =
				exact->addr - f->lookup_cache->symbols.v[exact->symbol].start;
			frame.has_sym_off = true;
		}
	}
	if (f->by_function) {
		frame.addr = 0;
		if (frames_is_offset_free(f, frame.module))
			frame.sym_off = 0;
	}
	if (!r)
		r = profile_frame(f->profile, &frame, &ret_frame->frame);
	return r || f->by_function ? r : frames_set_image(f, ret_frame->frame, full->image);
}

/*
 * Finds the place that remembers the frame of a whole function or image; *ret_known NULL: there is
 * none. Such a place exists with by_function only, and if both forms agree on the symbol.
 */
static int frames_find_known(struct frames *f, const struct frames_place *exact,
			     const struct frames_place *full, struct frames_known **ret_known)
{
	int r = 0;

	*ret_known = NULL;
	if (!f->by_function || full->grade || exact->symbol != full->symbol ||
	    exact->image != full->image || exact->perf_blind || full->perf_blind ||
	    full->map_name != PROFILE_NONE || exact->map_name != PROFILE_NONE ||
	    !frames_is_offset_free(f, exact->module))
		return 0;
	if (exact->image == LOOKUP_NONE) {
		*ret_known = &f->nowhere;
	} else if (exact->symbol != LOOKUP_NONE) {
		r = frames_symbol(f, exact->symbol, NULL);
		*ret_known = r ? NULL : &f->symbols.v[exact->symbol].known;
	} else {
		r = frames_image(f, exact->image, NULL);
		*ret_known = r ? NULL : &f->images.v[exact->image].known;
	}
	return r;
}

/* "file.c:12"; PROFILE_NONE: the file is not known. */
static int frames_srcline(struct frames *f, const struct line_cache_line *line, uint32_t *ret_text)
{
	uint64_t key = (uint64_t)line->file << 32 | line->line;
	const uint32_t *known;
	struct outbuf buf = outbuf_to(-1);

	*ret_text = PROFILE_NONE;
	if (line->file == LOOKUP_NONE)
		return 0;
	known = hashmap_get(&f->srclines, key);
	if (known) {
		*ret_text = *known;
		return 0;
	}
	outbuf_printf(&buf, "%s:%u", intern_text(&f->lookup_cache->texts, line->file), line->line);
	int r = buf.error ? buf.error : profile_text(f->profile, buf.data, buf.len, ret_text);

	outbuf_close(&buf);
	return r ? r : hashmap_put(&f->srclines, key, *ret_text);
}

/* Makes both forms of a function's raw name, once. */
static int frames_text_names(struct frames *f, uint32_t function,
			     struct frames_text_names *ret_names)
{
	const uint32_t *known = hashmap_get(&f->text_ids, function);
	const char *raw =
		function == LOOKUP_NONE ? "??" : intern_text(&f->lookup_cache->texts, function);
	struct outbuf perf = outbuf_to(-1), full = outbuf_to(-1);
	struct frames_text_names names;
	size_t len = strlen(raw);

	if (known) {
		*ret_names = f->texts.v[*known];
		return 0;
	}
	int r = native_name_perf(raw, len, &perf);

	if (!r && f->mangled)
		outbuf_put(&full, raw, len);
	else if (!r)
		r = native_name_full(raw, len, &full);
	r = r ? r : perf.error ? perf.error : full.error;
	if (!r)
		r = profile_text(f->profile, perf.len ? perf.data : "", perf.len, &names.perf_name);
	if (!r)
		r = profile_text(f->profile, full.len ? full.data : "", full.len, &names.name);
	outbuf_close(&perf);
	outbuf_close(&full);
	if (!r)
		r = vec_push(&f->texts, names);
	if (!r)
		r = hashmap_put(&f->text_ids, function, (uint32_t)f->texts.len - 1);
	if (!r)
		*ret_names = names;
	return r;
}

/* Adds the frame of a function that is inlined at the frame of in. */
static int frames_make_inlined(struct frames *f, const struct line_cache_line *line,
			       struct callchain_frame *in)
{
	struct profile_frame frame = *profile_frame_of(f->profile, in->frame);
	struct frames_text_names names;
	int r = frames_text_names(f, line->function, &names);

	frame.srcline = PROFILE_NONE;
	if (!r && f->lines)
		r = frames_srcline(f, line, &frame.srcline);
	if (r)
		return r;
	frame.perf_name = names.perf_name;
	frame.name = names.name;
	frame.status = line->function == LOOKUP_NONE ? FRAME_IS_PLACED : FRAME_IS_NAMED;
	frame.inlined = true;
	r = profile_frame(f->profile, &frame, &in->inlined[in->ninlined]);
	in->ninlined += !r;
	return r;
}

int frames_make(struct frames *f, const struct frames_place *exact, const struct frames_place *full,
		uint32_t chain, struct callchain_frame *ret_frame)
{
	const struct line_cache *l = &f->lookup_cache->lines;
	size_t n = chain == LOOKUP_NONE ? 0 : l->chains.v[chain].n,
	       first = n ? l->chains.v[chain].first : 0;
	uint32_t srcline = PROFILE_NONE;
	struct frames_known *known = NULL;
	int r = 0;

	/* Without inlined functions the line is that of the address, as in perf and addr2line. */
	if (n && f->lines)
		r = frames_srcline(f, &l->lines.v[f->inlines ? first + n - 1 : first], &srcline);
	if (!r && srcline == PROFILE_NONE)
		r = frames_find_known(f, exact, full, &known);
	if (r)
		return r;
	if (known && known->done && known->module == exact->module) {
		ret_frame->frame = known->frame;
		ret_frame->flags = known->flags;
	} else {
		r = frames_make_uncached(f, exact, full, srcline, ret_frame);
		if (!r && srcline == PROFILE_NONE) {
			/* Making the frame may have moved *known. */
			r = frames_find_known(f, exact, full, &known);
			if (!r && known)
				*known = (struct frames_known){true, ret_frame->flags,
							       exact->module, ret_frame->frame};
		}
	}
	for (size_t i = n ? n - 1 : 0; i-- > 0 && f->inlines && !r;)
		if (ret_frame->ninlined < CALLCHAIN_FRAME_INLINED_MAX)
			r = frames_make_inlined(f, &l->lines.v[first + i], ret_frame);
	return r;
}
