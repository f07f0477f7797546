#include "symbols/store/store_read.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/vec.h"
#include "symbols/core/symbol.h"
#include "symbols/store/store_fields.h"
#include "symbols/store/store_lines.h"
#include "symbols/store/store_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STORE_NO_MEMORY "it needs more memory than is left"
#define STORE_SEGMENTS_MAX 256 /* segments of one image */

struct store_parser {
	struct lookup_cache *lookup_cache;
	struct store_notes notes;
	uint32_t image, symbol; /* of the last records; LOOKUP_NONE: none yet */
	uint64_t entries;
	bool ended;
	struct store_lines_parser lines;
};

/* Read the rest of the line as a name. */
static int store_name(struct store_parser *s, char *p, uint32_t *ret_text)
{
	size_t len;
	int r = store_text_name(p, &len);

	return r ? r : intern_put(&s->lookup_cache->texts, p, len, ret_text);
}

static int store_build_id(const char *field, struct build_id *ret_id)
{
	struct build_id id = {0};
	size_t len = field ? strlen(field) : 0;

	if (len == 1 && field[0] == '-') {
		*ret_id = id;
		return 0;
	}
	if (!len || len % 2 || len > 2 * sizeof(id.bytes))
		return -EBADMSG;
	for (size_t i = 0; i < len; i += 2) {
		int high = store_text_digit(field[i]), low = store_text_digit(field[i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		id.bytes[id.len++] = (uint8_t)(high << 4 | low);
	}
	*ret_id = id;
	return 0;
}

/* Read a decimal field. */
static int store_pid(char **p, int32_t *ret_pid)
{
	const char *field = store_text_field(p);
	char *end;

	if (!field)
		return -EBADMSG;
	*ret_pid = (int32_t)strtol(field, &end, 10);
	return end == field || *end ? -EBADMSG : 0;
}

static int store_image(struct store_parser *s, char *p)
{
	struct image_key image = {0};
	const char *kind = store_text_field(&p);
	uint64_t maj, min;
	int r;

	image.kind = (uint8_t)store_word_kind_of(kind);
	if (image.kind == IMAGE_KINDS || store_build_id(store_text_field(&p), &image.build_id) ||
	    store_text_hex(&p, &maj) || store_text_hex(&p, &min) ||
	    store_text_hex(&p, &image.ino) || store_text_hex(&p, &image.ino_generation))
		return -EBADMSG;
	image.maj = (uint32_t)maj;
	image.min = (uint32_t)min;
	if (store_pid(&p, &image.pid))
		return -EBADMSG;
	r = store_name(s, p, &image.path);
	s->symbol = LOOKUP_NONE;
	return r ? r : lookup_cache_image(s->lookup_cache, &image, &s->image);
}

static int store_symbol(struct store_parser *s, char *p)
{
	struct lookup_cache_symbol symbol = {
		.image = s->image, .module = LOOKUP_NONE, .until_ns = UINT64_MAX};
	const char *source, *module;
	uint64_t len;
	int r;

	if (s->image == LOOKUP_NONE || store_text_hex(&p, &symbol.start) ||
	    store_text_hex(&p, &len))
		return -EBADMSG;
	symbol.end = symbol.start + len;
	source = store_text_field(&p);
	module = store_text_field(&p);
	if (!source || !module)
		return -EBADMSG;
	/* A later version may write an unknown source; the name is still good. */
	symbol.source = store_text_source(source);
	r = strcmp(module, "-") ? intern_str(&s->lookup_cache->texts, module, &symbol.module) : 0;
	if (!r)
		r = store_name(s, p, &symbol.name);
	return r ? r : lookup_cache_symbol(s->lookup_cache, &symbol, &s->symbol);
}

static int store_during(struct store_parser *s, char *p)
{
	struct lookup_cache_symbol symbol;

	if (s->symbol == LOOKUP_NONE)
		return -EBADMSG;
	symbol = s->lookup_cache->symbols.v[s->symbol];
	if (store_text_hex(&p, &symbol.from_ns) || store_text_hex(&p, &symbol.until_ns) ||
	    symbol.until_ns <= symbol.from_ns)
		return -EBADMSG;
	return lookup_cache_symbol(s->lookup_cache, &symbol, &s->symbol);
}

/* Read the addresses of "at" (covered by the symbol) or of "nothing". */
static int store_entries(struct store_parser *s, char *p, bool known)
{
	uint64_t base = 0, from_ns = 0, x;
	uint32_t before;
	int r = 0;

	if (s->image == LOOKUP_NONE || (known && s->symbol == LOOKUP_NONE))
		return -EBADMSG;
	if (known) {
		base = s->lookup_cache->symbols.v[s->symbol].start;
		from_ns = s->lookup_cache->symbols.v[s->symbol].from_ns;
	}
	while (!r && *p) {
		r = store_text_hex(&p, &x);
		if (r)
			break;
		if (lookup_cache_get(s->lookup_cache, s->image, base + x, from_ns, &before))
			r = lookup_cache_fits(s->lookup_cache)
				    ? lookup_cache_put(s->lookup_cache, s->image, base + x,
						       known ? s->symbol : LOOKUP_NONE)
				    : -ENOSPC;
		if (!known)
			base += x;
		s->entries++;
	}
	return r;
}

static int store_unread(struct store_parser *s)
{
	if (s->image == LOOKUP_NONE)
		return -EBADMSG;
	s->lookup_cache->images.v[s->image].wanted = true;
	s->lookup_cache->images.v[s->image].unread = true;
	return 0;
}

static int store_segment(char **p, struct elf_segment *ret_segment)
{
	struct elf_segment segment = {0};
	uint64_t flags;

	if (store_text_hex(p, &segment.vaddr) || store_text_hex(p, &segment.file_off) ||
	    store_text_hex(p, &segment.file_bytes) || store_text_hex(p, &segment.mem_bytes) ||
	    store_text_hex(p, &flags) || flags > UINT32_MAX)
		return -EBADMSG;
	segment.flags = (uint32_t)flags;
	*ret_segment = segment;
	return 0;
}

static int store_stripped(struct store_parser *s, char *p)
{
	VEC(struct elf_segment) segments = {0};
	struct build_id build_id;
	int r = s->image == LOOKUP_NONE || store_build_id(store_text_field(&p), &build_id) ||
				!build_id.len
			? -EBADMSG
			: 0;

	while (!r && *p) {
		struct elf_segment segment;

		r = segments.len < STORE_SEGMENTS_MAX ? store_segment(&p, &segment) : -EBADMSG;
		if (!r && vec_push(&segments, segment))
			r = -ENOMEM;
	}
	if (!r)
		r = lookup_cache_stripped(s->lookup_cache, s->image, &build_id, segments.v,
					  segments.len);
	vec_free(&segments);
	return r;
}

static int store_lineless(struct store_parser *s)
{
	if (s->image == LOOKUP_NONE)
		return -EBADMSG;
	s->lookup_cache->images.v[s->image].lineless = true;
	return 0;
}

/* Ignore a word of a later version. */
static int store_why(struct store_parser *s, const char *word)
{
	if (s->image == LOOKUP_NONE)
		return -EBADMSG;
	enum image_reason why = store_word_reason_of(word);

	if (why != IMAGE_REASONS)
		s->lookup_cache->images.v[s->image].why = (uint8_t)why;
	return 0;
}

/* Intern a text. "-" means none. */
static int store_text(struct store_parser *s, const char *text, uint32_t *ret_text)
{
	*ret_text = LOOKUP_NONE;
	return strcmp(text, "-") ? intern_str(&s->lookup_cache->texts, text, ret_text) : 0;
}

static int store_process(struct store_parser *s, char *p)
{
	struct lookup_cache_process process = {0};
	const char *version, *way;
	int32_t state;
	size_t len;
	int r;

	if (store_pid(&p, &process.pid) || store_pid(&p, &process.ns_pid) ||
	    store_pid(&p, &state) || store_text_hex(&p, &process.contradictions) ||
	    store_text_hex(&p, &process.doubts))
		return -EBADMSG;
	process.jitdump_early = state & 1;
	process.open = state >> 1 & 1;
	version = store_text_field(&p);
	way = store_text_field(&p);
	if (!version || !way || store_text_name(p, &len))
		return -EBADMSG;
	r = store_text(s, version, &process.version);
	if (!r)
		r = store_text(s, way, &process.way);
	if (!r)
		r = store_text(s, p, &process.why);
	return r ? r : lookup_cache_process(s->lookup_cache, &process);
}

static int store_note(struct store_parser *s, char *p)
{
	const char *key = store_text_field(&p);

	if (!key)
		return -EBADMSG;
	for (enum jit_damage_kind i = 0; i < JIT_DAMAGE_KINDS; i++)
		if (!strcmp(key, jit_damage_store_key(i)))
			return store_text_hex(&p, &s->notes.damage.n[i]);
	if (!strcmp(key, "why"))
		return store_why(s, p);
	if (!strcmp(key, "process"))
		return store_process(s, p);
	if (!strcmp(key, "kallsyms"))
		s->notes.kallsyms_hidden = !strcmp(p, "hidden");
	else if (!strcmp(key, "images_missing"))
		return store_text_hex(&p, &s->notes.images_missing);
	else if (!strcmp(key, "images_replaced"))
		return store_text_hex(&p, &s->notes.images_replaced);
	else if (!strcmp(key, "jit_contradictions"))
		return store_text_hex(&p, &s->notes.jit_contradictions);
	else if (!strcmp(key, "unkept"))
		return store_text_hex(&p, &s->lookup_cache->unkept);
	else if (!strcmp(key, "jit_doubts"))
		return store_text_hex(&p, &s->notes.jit_doubts);
	return 0;
}

static int store_line(struct store_parser *s, char *line)
{
	char *p = line;
	const char *word = store_text_field(&p);
	uint64_t n;

	if (!word || s->ended)
		return -EBADMSG;
	if (!strcmp(word, "at"))
		return store_entries(s, p, true);
	if (!strcmp(word, "symbol"))
		return store_symbol(s, p);
	if (!strcmp(word, "during"))
		return store_during(s, p);
	if (!strcmp(word, "nothing"))
		return store_entries(s, p, false);
	if (!strcmp(word, "image"))
		return store_image(s, p);
	if (!strcmp(word, "lines"))
		return store_lines_chain(&s->lines, s->lookup_cache, p);
	if (!strcmp(word, "of"))
		return store_lines_of(&s->lines, s->lookup_cache, s->symbol, p);
	if (!strcmp(word, "text"))
		return store_lines_text(&s->lines, s->lookup_cache, p);
	if (!strcmp(word, "unread"))
		return store_unread(s);
	if (!strcmp(word, "stripped"))
		return store_stripped(s, p);
	if (!strcmp(word, "lineless"))
		return store_lineless(s);
	if (!strcmp(word, "note"))
		return store_note(s, p);
	if (strcmp(word, "end") || store_text_hex(&p, &n) || n != s->entries)
		return -EBADMSG;
	s->ended = true;
	return 0;
}

static int store_parse_lines(struct store_parser *s, char *text, char *end, struct parse_error *err)
{
	char *newline = memchr(text, '\n', (size_t)(end - text));

	for (char *line = newline + 1; line < end; line = newline + 1) {
		newline = memchr(line, '\n', (size_t)(end - line));
		*newline = '\0';
		int r = lookup_cache_fits(s->lookup_cache) ? store_line(s, line) : -ENOSPC;

		if (r)
			return parse_fail(err, r,
					  r == -EBADMSG  ? "a line of the symbol store is damaged"
					  : r == -ENOSPC ? STORE_NO_MEMORY
							 : "the symbol store is too large",
					  (uint64_t)(line - text));
	}
	return s->ended ? 0
			: parse_fail(err, -EBADMSG, "the symbol store is cut off",
				     (uint64_t)(end - text));
}

int store_parse(char *text, size_t len, struct lookup_cache *lookup_cache,
		struct store_notes *ret_notes, struct parse_error *err)
{
	struct store_parser s = {
		.lookup_cache = lookup_cache, .image = LOOKUP_NONE, .symbol = LOOKUP_NONE};
	int format;

	if (!len || text[len - 1] != '\n')
		return parse_fail(err, -EBADMSG, "the last line of the symbol store is cut off",
				  len);
	if (sscanf(text, "profcpu-symbols %d", &format) != 1)
		return parse_fail(err, -EBADMSG, "not a symbol store", 0);
	if (format < 1 || format > STORE_FORMAT)
		return parse_fail(err, -ENOTSUP, "the symbol store has an unknown version", 0);
	int r = store_parse_lines(&s, text, text + len, err);

	store_lines_parser_free(&s.lines);
	if (!r)
		*ret_notes = s.notes;
	return r;
}

int store_read(int dir_fd, uint64_t memory_max, struct lookup_cache *lookup_cache,
	       struct store_notes *ret_notes, struct parse_error *err)
{
	AUTO_FREE char *text = NULL;
	AUTO_CLOSE int fd = -1;
	struct stat st;
	size_t len;
	int r = file_open_regular(dir_fd, STORE_FILE, &fd);

	if (!r && fstat(fd, &st))
		r = -errno;
	if (!r && (uint64_t)st.st_size > memory_max / 4)
		return parse_fail(err, -ENOSPC, STORE_NO_MEMORY, 0);
	if (!r)
		r = file_read_fd(fd, STORE_BYTES_MAX, &text, &len);
	if (r)
		return parse_fail(err, r, "the symbol store cannot be read", 0);
	lookup_cache->bytes_max = memory_max / 2;
	r = store_parse(text, len, lookup_cache, ret_notes, err);
	lookup_cache->bytes_max = 0;
	return r;
}
