#include "base/file.h"
#include "base/outbuf.h"
#include "base/printable.h"
#include "symbols/store/store_read.h"
#include "symbols/core/symbol.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

static uint32_t text_of(struct lookup_cache *a, const char *text)
{
	uint32_t id;

	assert_int_equal(intern_str(&a->texts, text, &id), 0);
	return id;
}

static uint32_t image_of(struct lookup_cache *a, uint8_t kind, const char *path, int32_t pid)
{
	struct image_key image = {
		.kind = kind, .path = text_of(a, path), .pid = pid, .maj = 0xfe, .ino = 123456};
	uint32_t id;

	image.build_id.len = 3;
	memcpy(image.build_id.bytes, "\x01\xab\xff", 3);
	assert_int_equal(lookup_cache_image(a, &image, &id), 0);
	return id;
}

static void know(struct lookup_cache *a, uint32_t image, uint64_t start, uint64_t end,
		 const char *name, uint64_t addr)
{
	struct lookup_cache_symbol s = {.start = start,
					.end = end,
					.image = image,
					.module = LOOKUP_NONE,
					.until_ns = UINT64_MAX};
	uint32_t id;

	s.name = text_of(a, name ? name : "0x2000");
	s.source = name ? SYMBOL_SYMTAB : SYMBOL_BOUNDS;
	assert_int_equal(lookup_cache_symbol(a, &s, &id), 0);
	assert_int_equal(lookup_cache_put(a, image, addr, id), 0);
}

static void fill(struct lookup_cache *a)
{
	uint32_t file = image_of(a, IMAGE_KIND_FILE, "/usr/lib/a b\\c\n\x7f.so", 0);
	uint32_t jit = image_of(a, IMAGE_KIND_JIT, "//anon", 42);

	know(a, file, 0x1000, 0x1100, "_ZN1a1bEv", 0x1004);
	know(a, file, 0x1000, 0x1100, "_ZN1a1bEv", 0x10ff);
	know(a, file, 0x2000, 0x2100, NULL, 0x2001);
	assert_int_equal(lookup_cache_put(a, file, 0x5000, LOOKUP_NONE), 0);
	assert_int_equal(lookup_cache_put(a, file, 0x9000, LOOKUP_NONE), 0);
	know(a, jit, 0x7f0000001000, 0x7f0000001080, "void [app] A::B(int32)[Tier0]",
	     0x7f0000001010);
}

static char *written(const struct lookup_cache *a, const struct store_notes *notes, size_t *ret_len)
{
	char dir[] = "/tmp/test_store.XXXXXX", *text;
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(store_write(a, notes, fd), 0);
	assert_int_equal(file_read_at(fd, STORE_FILE, STORE_BYTES_MAX, &text, ret_len), 0);
	unlinkat(fd, STORE_FILE, 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0); /* no temporary file remains */
	return text;
}

static void lookups_are_read_back_unchanged(void **state)
{
	struct store_notes
		notes = {.kallsyms_hidden = true,
			 .damage =
				 {.n = {[JIT_PERFMAP_BAD_LINES] = 17, [JIT_DUMP_BAD_RECORDS] = 3}}},
		read = {0};
	struct lookup_cache a = {0}, b = {0};
	size_t len;
	char *text;

	(void)state;
	fill(&a);
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_true(read.kallsyms_hidden);
	assert_memory_equal(&read.damage, &notes.damage, sizeof(read.damage));
	assert_int_equal(b.entries.len, a.entries.len);
	for (size_t i = 0; i < a.entries.len; i++) {
		const struct lookup_cache_entry *e = &a.entries.v[i];
		struct lookup_cache_image image = a.images.v[e->image];
		uint32_t id, symbol;

		image.key.path = text_of(&b, intern_text(&a.texts, image.key.path));
		assert_int_equal(lookup_cache_find_image(&b, &image.key, &id), 0);
		assert_int_equal(lookup_cache_get(&b, id, e->addr, 0, &symbol), 0);
		assert_int_equal(symbol == LOOKUP_NONE, e->symbol == LOOKUP_NONE);
		if (symbol == LOOKUP_NONE)
			continue;
		assert_int_equal(b.symbols.v[symbol].start, a.symbols.v[e->symbol].start);
		assert_int_equal(b.symbols.v[symbol].end, a.symbols.v[e->symbol].end);
		assert_int_equal(b.symbols.v[symbol].source, a.symbols.v[e->symbol].source);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name),
				    intern_text(&a.texts, a.symbols.v[e->symbol].name));
	}
	lookup_cache_free(&a);
	lookup_cache_free(&b);
}

/* Names come from targets. A person may print the file. */
static void names_and_fields_are_printable(void **state)
{
	static const char *const names[] = {
		"c1\xc2\x9b[2J",
		"order\xe2\x80\xae",
		"invalid\xff\xc3",
		"\\x9b\t\\\xc2\x80\x1b",
		"\xc3\xa4\xe2\x9d\xa4\xef\xb8\x8f", /* a letter, and an emoji with its selector */
	};
	struct store_notes notes = {0}, read;
	struct lookup_cache a = {0}, b = {0};
	struct lookup_cache_process p = {.pid = 42, .way = LOOKUP_NONE, .why = LOOKUP_NONE};
	uint32_t image = image_of(&a, IMAGE_KIND_FILE, names[0], 0), symbol;
	size_t len;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		know(&a, image, 0x100 * i, 0x100 * i + 0x80, names[i], 0x100 * i);
	for (p.pid = 0; p.pid < 5; p.pid++) {
		p.version = text_of(&a, names[p.pid]);
		assert_int_equal(lookup_cache_process(&a, &p), 0);
	}
	char *text = written(&a, &notes, &len);

	for (char *line = text, *nl; (nl = strchr(line, '\n')); line = nl + 1)
		assert_true(printable_is(line, (size_t)(nl - line)));
	assert_null(strchr(text, '\t'));
	assert_non_null(strstr(text, names[4]));
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	assert_string_equal(intern_text(&b.texts, b.images.v[0].key.path), names[0]);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(lookup_cache_get(&b, 0, 0x100 * i, 0, &symbol), 0);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name), names[i]);
	}
	assert_string_equal(intern_text(&b.texts, b.processes.v[1].version), "order___");
	assert_string_equal(intern_text(&b.texts, b.processes.v[4].version), names[4]);
	free(text);
	lookup_cache_free(&a);
	lookup_cache_free(&b);
}

static void lookups_with_times_are_read_back_with_them(void **state)
{
	static const uint64_t from_ns[] = {0, 100, 300}, until_ns[] = {100, 200, UINT64_MAX};
	static const char *const names[] = {"early", "later", "last"};
	struct store_notes notes = {0}, read;
	struct lookup_cache a = {0}, b = {0};
	uint32_t image, symbol;
	size_t len;
	char *text;

	(void)state;
	image = image_of(&a, IMAGE_KIND_JIT, "//anon", 42);
	for (size_t i = 0; i < 3; i++) {
		struct lookup_cache_symbol s = {.start = 0x1000,
						.end = 0x1100,
						.image = image,
						.name = text_of(&a, names[i]),
						.module = LOOKUP_NONE,
						.source = SYMBOL_PERFMAP,
						.from_ns = from_ns[i],
						.until_ns = until_ns[i]};

		assert_int_equal(lookup_cache_get(&a, image, 0x1010, from_ns[i], &symbol),
				 i ? -ESTALE : -ENOENT);
		assert_int_equal(lookup_cache_symbol(&a, &s, &symbol), 0);
		assert_int_equal(lookup_cache_put(&a, image, 0x1010, symbol), 0);
	}
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	image = image_of(&b, IMAGE_KIND_JIT, "//anon", 42);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(lookup_cache_get(&b, image, 0x1010, from_ns[i], &symbol), 0);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name), names[i]);
		assert_int_equal(lookup_cache_get(&b, image, 0x1010, until_ns[i] - 1, &symbol), 0);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name), names[i]);
	}
	assert_int_equal(lookup_cache_get(&b, image, 0x1010, 250, &symbol), -ESTALE);
	lookup_cache_free(&a);
	lookup_cache_free(&b);
}

/* Names that were left out are looked up again. */
static void lookups_over_the_limit_are_left_out(void **state)
{
	struct lookup_cache a = {.entries_max = 2};
	uint32_t images[2], symbol, got;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		images[i] = image_of(&a, IMAGE_KIND_FILE, i ? "/b" : "/a", 0);
	struct lookup_cache_symbol s = {.start = 0x1000,
					.end = 0x2000,
					.image = images[0],
					.name = text_of(&a, "f"),
					.module = LOOKUP_NONE,
					.source = SYMBOL_SYMTAB,
					.until_ns = UINT64_MAX};

	assert_int_equal(lookup_cache_symbol(&a, &s, &symbol), 0);
	assert_int_equal(lookup_cache_put(&a, images[0], 0x1001, symbol), 0);
	assert_int_equal(lookup_cache_put(&a, images[1], 0x1001, LOOKUP_NONE), 0);
	assert_int_equal(lookup_cache_put(&a, images[1], 0x1002, LOOKUP_NONE), 0);
	assert_false(a.images.v[images[1]].unread);
	assert_false(a.images.v[images[0]].unread);
	assert_int_equal(lookup_cache_put(&a, images[0], 0x1002, symbol), 0);
	assert_true(a.images.v[images[0]].unread);
	assert_int_equal(a.entries.len, 2);
	assert_int_equal(lookup_cache_get(&a, images[0], 0x1001, 1, &got), 0);
	assert_int_equal(got, symbol);
	assert_int_equal(lookup_cache_get(&a, images[0], 0x1002, 1, &got), -ENOENT);
	lookup_cache_free(&a);
}

/* Others can make a store with millions of times for one address. They are read in turn. */
static void the_times_of_an_address_have_a_limit(void **state)
{
	enum { TIMES = 200000 };
	struct outbuf out = outbuf_to(-1);
	struct store_notes read;
	struct lookup_cache a = {0};
	uint32_t symbol;

	(void)state;
	outbuf_str(&out, "profcpu-symbols 2\nimage jit - 0 0 0 0 42 //anon\n");
	for (int i = 0; i < TIMES; i++)
		outbuf_printf(&out, "symbol 1000 100 perf-map - f\nduring %x %x\nat 10\n", i,
			      i + 1);
	outbuf_printf(&out, "end %x\n", TIMES);
	outbuf_char(&out, 0);
	assert_int_equal(store_parse(out.data, out.len - 1, &a, &read, NULL), 0);
	assert_int_equal(a.entries.len, LOOKUP_TIMES_MAX);
	assert_int_equal(a.unkept, TIMES - LOOKUP_TIMES_MAX);
	assert_int_equal(lookup_cache_get(&a, 0, 0x1010, LOOKUP_TIMES_MAX - 1, &symbol), 0);
	assert_int_equal(lookup_cache_get(&a, 0, 0x1010, TIMES - 1, &symbol), -ESTALE);
	outbuf_close(&out);
	lookup_cache_free(&a);
}

static void reasons_are_read_back_and_old_stores_have_none(void **state)
{
	static const char old[] = "profcpu-symbols 1\nimage file - 0 0 7 0 0 "
				  "/bin/app\nunread\nnote of_later 7 8\nnote why of-later\nend 0\n";
	struct lookup_cache_process p = {.pid = 42,
					 .ns_pid = 7,
					 .jitdump_early = true,
					 .contradictions = 3,
					 .doubts = 17},
				    *q;
	struct store_notes notes = {0}, read;
	struct lookup_cache a = {0}, b = {0}, c = {0};
	uint32_t image;
	size_t len;
	char *text;

	(void)state;
	image = image_of(&a, IMAGE_KIND_FILE, "/lib/gone.so", 0);
	a.images.v[image].why = IMAGE_REASON_REPLACED;
	p.version = text_of(&a, "10.0 (odd)");
	p.way = LOOKUP_NONE;
	p.why = text_of(&a, "memory: not\nthis way");
	assert_int_equal(lookup_cache_process(&a, &p), 0);
	assert_int_equal(lookup_cache_process(&a, &p), 0);
	p.pid = 43;
	p.open = true;
	p.jitdump_early = false;
	assert_int_equal(lookup_cache_process(&a, &p), 0);
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(b.images.len, 1);
	assert_int_equal(b.images.v[0].why, IMAGE_REASON_REPLACED);
	assert_int_equal(b.processes.len, 2);
	assert_true(b.processes.v[1].open && !b.processes.v[1].jitdump_early);
	q = &b.processes.v[0];
	assert_true(q->pid == 42 && q->ns_pid == 7 && q->jitdump_early && !q->open &&
		    q->contradictions == 3 && q->doubts == 17);
	assert_string_equal(intern_text(&b.texts, q->version), "10.0_(odd)");
	assert_true(q->way == LOOKUP_NONE);
	assert_string_equal(intern_text(&b.texts, q->why), "memory: not\nthis way");
	text = strdup(old);
	assert_int_equal(store_parse(text, strlen(text), &c, &read, NULL), 0);
	free(text);
	assert_true(c.images.v[0].wanted);
	assert_int_equal(c.images.v[0].why, IMAGE_REASON_NONE);
	lookup_cache_free(&a);
	lookup_cache_free(&b);
	lookup_cache_free(&c);
}

static void segments_of_stripped_images_are_read_back(void **state)
{
	static const struct elf_segment segments[] = {{0x1000, 0, 0x800, 0x900, 5},
						      {UINT64_MAX - 1, 0x800, 1, 1, 6}};
	static const struct build_id id = {.bytes = {0xaa, 0xbb}, .len = 2};
	struct store_notes notes = {0}, read;
	struct lookup_cache a = {0}, b = {0}, c = {0};
	size_t len;

	(void)state;
	fill(&a);
	assert_int_equal(lookup_cache_stripped(&a, 0, &id, segments, 2), 0);
	assert_int_equal(lookup_cache_stripped(&a, 0, &id, segments, 1),
			 0); /* it is already known */
	char *text = written(&a, &notes, &len);

	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(b.stripped.len, 1);
	for (size_t i = 0; i < b.images.len; i++)
		assert_int_equal(b.images.v[i].stripped, b.images.v[i].key.kind == IMAGE_KIND_FILE);
	assert_int_equal(b.stripped.v[0].build_id.len, id.len);
	assert_memory_equal(b.stripped.v[0].build_id.bytes, id.bytes, id.len);
	assert_int_equal(b.stripped.v[0].nsegments, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct elf_segment *read_segment = &b.stripped.v[0].segments[i];

		assert_int_equal(read_segment->vaddr, segments[i].vaddr);
		assert_int_equal(read_segment->file_off, segments[i].file_off);
		assert_int_equal(read_segment->file_bytes, segments[i].file_bytes);
		assert_int_equal(read_segment->mem_bytes, segments[i].mem_bytes);
		assert_int_equal(read_segment->flags, segments[i].flags);
	}
	/* A found debug file makes further changes useless. */
	b.stripped.v[0].named = true;
	text = written(&b, &notes, &len);
	assert_null(strstr(text, "stripped"));
	assert_int_equal(store_parse(text, len, &c, &read, NULL), 0);
	free(text);
	lookup_cache_free(&a);
	lookup_cache_free(&b);
	lookup_cache_free(&c);
}

static void a_better_lookup_replaces_the_old_one(void **state)
{
	struct lookup_cache a = {0};
	struct lookup_cache_symbol s = {.start = 0x2000,
					.end = 0x2100,
					.module = LOOKUP_NONE,
					.source = SYMBOL_DEBUG_FILE,
					.until_ns = UINT64_MAX};
	uint32_t id, got;

	(void)state;
	fill(&a);
	s.name = text_of(&a, "better");
	assert_int_equal(lookup_cache_symbol(&a, &s, &id), 0);
	assert_int_equal(lookup_cache_replace(&a, 0, 0x2001, id), 0);
	assert_int_equal(lookup_cache_replace(&a, 0, 0x5000, id), 0);
	assert_int_equal(lookup_cache_replace(&a, 0, 0x5001, id), -ENOENT);
	assert_int_equal(lookup_cache_get(&a, 0, 0x2001, 0, &got), 0);
	assert_int_equal(got, id);
	assert_int_equal(lookup_cache_get(&a, 0, 0x5000, 0, &got), 0);
	assert_int_equal(got, id);
	assert_int_equal(lookup_cache_get(&a, 0, 0x1004, 0, &got), 0);
	assert_int_not_equal(got, id);
	lookup_cache_free(&a);
}

static void lines_are_read_back_unchanged(void **state)
{
	struct lookup_cache a = {0}, b = {0};
	struct store_notes notes = {0}, read;
	uint32_t symbol, chain, none;
	size_t len;
	char *text;

	(void)state;
	fill(&a);
	const struct line_cache_line two[] = {{text_of(&a, "_ZN1a1cEv"), text_of(&a, "a b.c"), 12},
					      {LOOKUP_NONE, text_of(&a, "x.c"), 0}};
	const struct line_cache_line one[] = {{LOOKUP_NONE, LOOKUP_NONE, 7}};

	assert_int_equal(lookup_cache_get(&a, 0, 0x1004, 0, &symbol), 0);
	assert_int_equal(line_cache_chain(&a.lines, two, 2, &chain), 0);
	assert_int_equal(line_cache_put(&a.lines, symbol, 0x1004, chain), 0);
	assert_int_equal(line_cache_put(&a.lines, symbol, 0x1005, LOOKUP_NONE), 0);
	assert_int_equal(line_cache_chain(&a.lines, one, 1, &chain), 0);
	assert_int_equal(line_cache_put(&a.lines, symbol, 0x1006, chain), 0);
	a.images.v[1].lineless = true;
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(lookup_cache_get(&b, 0, 0x1004, 0, &symbol), 0);
	assert_int_equal(line_cache_get(&b.lines, symbol, 0x1004, &chain), 0);
	assert_int_equal(b.lines.chains.v[chain].n, 2);
	const struct line_cache_line *l = b.lines.lines.v + b.lines.chains.v[chain].first;

	assert_string_equal(intern_text(&b.texts, l[0].function), "_ZN1a1cEv");
	assert_string_equal(intern_text(&b.texts, l[0].file), "a b.c");
	assert_int_equal(l[0].line, 12);
	assert_int_equal(l[1].function, LOOKUP_NONE);
	assert_int_equal(line_cache_get(&b.lines, symbol, 0x1005, &none), 0);
	assert_int_equal(none, LOOKUP_NONE);
	assert_int_equal(line_cache_get(&b.lines, symbol, 0x1006, &chain), 0);
	assert_int_equal(b.lines.lines.v[b.lines.chains.v[chain].first].line, 7);
	assert_int_equal(line_cache_get(&b.lines, symbol, 0x1007, &chain), -ENOENT);
	assert_true(b.images.v[1].lineless && !b.images.v[0].lineless);
	lookup_cache_free(&a);
	lookup_cache_free(&b);
}

static void a_cut_store_is_refused(void **state)
{
	struct store_notes notes = {0};
	struct lookup_cache a = {0};
	size_t len;
	char *text;

	(void)state;
	fill(&a);
	text = written(&a, &notes, &len);
	for (size_t cut = 0; cut < len; cut++) {
		struct lookup_cache b = {0};
		char *copy = strndup(text, cut);

		assert_true(store_parse(copy, cut, &b, &notes, NULL) < 0);
		free(copy);
		lookup_cache_free(&b);
	}
	free(text);
	lookup_cache_free(&a);
}

static void other_versions_and_nonsense_are_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} bad[] = {
		{"", -EBADMSG},
		{"hello\n", -EBADMSG},
		{"profcpu-symbols 3\nend 0\n", -ENOTSUP},
		{"profcpu-symbols 2\nof 1\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nimage file - 0 0 0 0 0 /a\nsymbol 1 2 symtab - x\nof 1\nend "
		 "0\n",
		 -EBADMSG},
		{"profcpu-symbols 2\nlines 0 - 1\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlines - - x\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlines - -\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlineless\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nat 5\nend 1\n", -EBADMSG},
		{"profcpu-symbols 1\nsymbol 1 2 symtab - x\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nnothing 12345678901234567\nend 1\n",
		 -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\\x0\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage what - 0 0 0 0 0 /a\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file abc 0 0 0 0 0 /a\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nstripped ab\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped -\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped ab 1 2 3 4\nend 0\n",
		 -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped ab 1 2 3 4 100000000\nend "
		 "0\n",
		 -EBADMSG},
		{"profcpu-symbols 1\nend 0\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nend 7\n", -EBADMSG},
	};
	struct store_notes notes;
	struct parse_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct lookup_cache a = {0};
		char *copy = strdup(bad[i].text);

		assert_int_equal(store_parse(copy, strlen(copy), &a, &notes, &err), bad[i].code);
		assert_non_null(err.what);
		free(copy);
		lookup_cache_free(&a);
	}
}

static int read_within(const char *text, size_t len, uint64_t memory)
{
	char dir[] = "/tmp/test_store.XXXXXX";
	struct lookup_cache a = {0};
	struct store_notes notes;
	struct parse_error err;

	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	int fd = openat(dir_fd, STORE_FILE, O_CREAT | O_WRONLY, 0600);

	assert_int_equal(file_write_all(fd, text, len), 0);
	close(fd);
	int r = store_read(dir_fd, memory, &a, &notes, &err);

	if (r)
		assert_non_null(err.what);
	lookup_cache_free(&a);
	unlinkat(dir_fd, STORE_FILE, 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
	return r;
}

/* A text that is larger than the memory, and shorter texts that make large tables. */
static void a_store_takes_no_more_memory_than_is_left(void **state)
{
	enum { TIMES = 40000, MEMORY = 2 << 20 };
	static const struct {
		const char *first, *repeated;
		unsigned entries;
	} stores[] = {
		{"", "note x 0123456789 0123456789\n", 0},
		{"nothing", " 1", TIMES},
		{"", "nothing 1\n", TIMES}, /* one address: needs no large table */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(stores) / sizeof(*stores); i++) {
		struct outbuf out = outbuf_to(-1);

		outbuf_printf(&out, "profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\n%s",
			      stores[i].first);
		for (int n = 0; n < TIMES; n++)
			outbuf_str(&out, stores[i].repeated);
		outbuf_printf(&out, "%send %x\n", *stores[i].first ? "\n" : "", stores[i].entries);
		assert_int_equal(out.error, 0);
		assert_int_equal(read_within(out.data, out.len, UINT64_MAX), 0);
		assert_int_equal(read_within(out.data, out.len, MEMORY), i < 2 ? -ENOSPC : 0);
		assert_int_equal(outbuf_close(&out), 0);
	}
}

static void names_of_symbols_are_bounded(void **state)
{
	static char name[3 * LOOKUP_NAME_MAX];
	struct lookup_cache a = {.names.limit = 20 * LOOKUP_NAME_MAX};
	uint32_t ids[2], id;
	int n = 0;

	(void)state;
	memset(name, 'n', sizeof(name));
	assert_int_equal(lookup_cache_name(&a, name, LOOKUP_NAME_MAX, &id), 0);
	assert_memory_equal(intern_text(&a.texts, id), name, LOOKUP_NAME_MAX);
	/* Different names stay different. */
	for (int i = 0; i < 2; i++) {
		name[sizeof(name) - 1] = (char)('0' + i);
		assert_int_equal(lookup_cache_name(&a, name, sizeof(name), &ids[i]), 0);
		assert_int_equal(intern_len(&a.texts, ids[i]), LOOKUP_NAME_MAX);
	}
	assert_true(ids[0] != ids[1]);
	/* They are the same in each process. */
	assert_string_equal(intern_text(&a.texts, ids[1]) + LOOKUP_NAME_MAX - 8, "67409661");
	while (n < 1000 && !lookup_cache_name(&a, "short", 5, &id))
		n++;
	assert_in_range(n, 100, 8 * LOOKUP_NAME_MAX / LOOKUP_SYMBOL_BYTES);
	assert_int_equal(lookup_cache_name(&a, "short", 5, &id), -ENOSPC);
	assert_int_equal(a.left_out, 2);
	/* Other processes have shares of their own. */
	for (int32_t i = 1; i < 10; i++) {
		a.taker = i;
		assert_int_equal(lookup_cache_name(&a, "other", 5, &id), 0);
	}
	a.taker = 0;
	assert_int_equal(lookup_cache_name(&a, "short", 5, &id), -ENOSPC);
	assert_int_equal(a.left_out, 3);
	lookup_cache_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lookups_are_read_back_unchanged),
		cmocka_unit_test(names_and_fields_are_printable),
		cmocka_unit_test(lookups_with_times_are_read_back_with_them),
		cmocka_unit_test(the_times_of_an_address_have_a_limit),
		cmocka_unit_test(segments_of_stripped_images_are_read_back),
		cmocka_unit_test(reasons_are_read_back_and_old_stores_have_none),
		cmocka_unit_test(lookups_over_the_limit_are_left_out),
		cmocka_unit_test(names_of_symbols_are_bounded),
		cmocka_unit_test(a_better_lookup_replaces_the_old_one),
		cmocka_unit_test(lines_are_read_back_unchanged),
		cmocka_unit_test(a_store_takes_no_more_memory_than_is_left),
		cmocka_unit_test(a_cut_store_is_refused),
		cmocka_unit_test(other_versions_and_nonsense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
