#include "base/file.h"
#include "base/outbuf.h"
#include "symbols/store_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

static uint32_t text_of(struct answers *a, const char *text)
{
	uint32_t id;

	assert_int_equal(intern_str(&a->texts, text, &id), 0);
	return id;
}

static uint32_t image_of(struct answers *a, uint8_t kind, const char *path, int32_t pid)
{
	struct answers_image image = {.kind = kind, .path = text_of(a, path), .pid = pid, .maj = 0xfe, .ino = 123456};
	uint32_t id;

	image.build_id.len = 3;
	memcpy(image.build_id.bytes, "\x01\xab\xff", 3);
	assert_int_equal(answers_image(a, &image, &id), 0);
	return id;
}

static void know(struct answers *a, uint32_t image, uint64_t start, uint64_t end, const char *name, uint64_t addr)
{
	struct answers_symbol s = {.start = start, .end = end, .image = image, .module = ANSWERS_NONE, .until_ns = UINT64_MAX};
	uint32_t id;

	s.name = text_of(a, name ? name : "0x2000");
	s.source = name ? SYMBOL_SYMTAB : SYMBOL_BOUNDS;
	assert_int_equal(answers_symbol(a, &s, &id), 0);
	assert_int_equal(answers_put(a, image, addr, id), 0);
}

static void fill(struct answers *a)
{
	uint32_t file = image_of(a, ANSWERS_FILE, "/usr/lib/a b\\c\n\x7f.so", 0);
	uint32_t jit = image_of(a, ANSWERS_JIT, "//anon", 42);

	know(a, file, 0x1000, 0x1100, "_ZN1a1bEv", 0x1004);
	know(a, file, 0x1000, 0x1100, "_ZN1a1bEv", 0x10ff);
	know(a, file, 0x2000, 0x2100, NULL, 0x2001);
	assert_int_equal(answers_put(a, file, 0x5000, ANSWERS_NONE), 0);
	assert_int_equal(answers_put(a, file, 0x9000, ANSWERS_NONE), 0);
	know(a, jit, 0x7f0000001000, 0x7f0000001080, "void [app] A::B(int32)[Tier0]", 0x7f0000001010);
}

static char *written(const struct answers *a, const struct store_notes *notes, size_t *ret_len)
{
	char dir[] = "/tmp/test_store.XXXXXX", *text;
	int fd;

	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(store_write(a, notes, fd), 0);
	assert_int_equal(file_read_at(fd, STORE_FILE, STORE_BYTES_MAX, &text, ret_len), 0);
	unlinkat(fd, STORE_FILE, 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0); /* no temporary file was left */
	return text;
}

static void answers_come_back_as_they_were(void **state)
{
	struct store_notes notes = {.kallsyms_hidden = true, .damage = {.n = {[JIT_PERFMAP_BAD_LINES] = 17, [JIT_DUMP_BAD_RECORDS] = 3}}}, read = {0};
	struct answers a = {0}, b = {0};
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
		const struct answers_entry *e = &a.entries.v[i];
		struct answers_image image = a.images.v[e->image];
		uint32_t id, symbol;

		image.path = text_of(&b, intern_text(&a.texts, image.path));
		assert_int_equal(answers_find_image(&b, &image, &id), 0);
		assert_int_equal(answers_get(&b, id, e->addr, 0, &symbol), 0);
		assert_int_equal(symbol == ANSWERS_NONE, e->symbol == ANSWERS_NONE);
		if (symbol == ANSWERS_NONE)
			continue;
		assert_int_equal(b.symbols.v[symbol].start, a.symbols.v[e->symbol].start);
		assert_int_equal(b.symbols.v[symbol].end, a.symbols.v[e->symbol].end);
		assert_int_equal(b.symbols.v[symbol].source, a.symbols.v[e->symbol].source);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name),
				    intern_text(&a.texts, a.symbols.v[e->symbol].name));
	}
	answers_free(&a);
	answers_free(&b);
}

static void answers_for_a_time_come_back_for_that_time(void **state)
{
	static const uint64_t from_ns[] = {0, 100, 300}, until_ns[] = {100, 200, UINT64_MAX};
	static const char *const names[] = {"early", "later", "last"};
	struct store_notes notes = {0}, read;
	struct answers a = {0}, b = {0};
	uint32_t image, symbol;
	size_t len;
	char *text;

	(void)state;
	image = image_of(&a, ANSWERS_JIT, "//anon", 42);
	for (size_t i = 0; i < 3; i++) {
		struct answers_symbol s = {.start = 0x1000, .end = 0x1100, .image = image, .name = text_of(&a, names[i]),
					   .module = ANSWERS_NONE, .source = SYMBOL_PERFMAP, .from_ns = from_ns[i], .until_ns = until_ns[i]};

		assert_int_equal(answers_get(&a, image, 0x1010, from_ns[i], &symbol), i ? -ESTALE : -ENOENT);
		assert_int_equal(answers_symbol(&a, &s, &symbol), 0);
		assert_int_equal(answers_put(&a, image, 0x1010, symbol), 0);
	}
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	image = image_of(&b, ANSWERS_JIT, "//anon", 42);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(answers_get(&b, image, 0x1010, from_ns[i], &symbol), 0);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name), names[i]);
		assert_int_equal(answers_get(&b, image, 0x1010, until_ns[i] - 1, &symbol), 0);
		assert_string_equal(intern_text(&b.texts, b.symbols.v[symbol].name), names[i]);
	}
	assert_int_equal(answers_get(&b, image, 0x1010, 250, &symbol), -ESTALE);
	answers_free(&a);
	answers_free(&b);
}

/* Made by others, a store can have millions of times for one address: they are gone through in turn. */
static void an_address_has_no_end_of_times(void **state)
{
	enum { TIMES = 200000 };
	struct outbuf out = outbuf_to(-1);
	struct store_notes read;
	struct answers a = {0};
	uint32_t symbol;

	(void)state;
	outbuf_str(&out, "profcpu-symbols 2\nimage jit - 0 0 0 0 42 //anon\n");
	for (int i = 0; i < TIMES; i++)
		outbuf_printf(&out, "symbol 1000 100 perf-map - f\nduring %x %x\nat 10\n", i, i + 1);
	outbuf_printf(&out, "end %x\n", TIMES);
	assert_int_equal(store_parse(out.data, out.len, &a, &read, NULL), 0);
	assert_int_equal(a.entries.len, ANSWERS_TIMES_MAX);
	assert_int_equal(a.unkept, TIMES - ANSWERS_TIMES_MAX);
	assert_int_equal(answers_get(&a, 0, 0x1010, ANSWERS_TIMES_MAX - 1, &symbol), 0);
	assert_int_equal(answers_get(&a, 0, 0x1010, TIMES - 1, &symbol), -ESTALE);
	outbuf_close(&out);
	answers_free(&a);
}

static void reasons_come_back_and_old_stores_have_none(void **state)
{
	static const char old[] = "profcpu-symbols 1\nimage file - 0 0 7 0 0 /bin/app\nunread\nnote of_later 7 8\nnote why of-later\nend 0\n";
	struct answers_process p = {.pid = 42, .ns_pid = 7, .jitdump_early = true, .contradictions = 3, .doubts = 17}, *q;
	struct store_notes notes = {0}, read;
	struct answers a = {0}, b = {0}, c = {0};
	uint32_t image;
	size_t len;
	char *text;

	(void)state;
	image = image_of(&a, ANSWERS_FILE, "/lib/gone.so", 0);
	a.images.v[image].why = ANSWERS_REPLACED;
	p.version = text_of(&a, "10.0 (odd)");
	p.way = ANSWERS_NONE;
	p.why = text_of(&a, "memory: not\nthis way");
	assert_int_equal(answers_process(&a, &p), 0);
	assert_int_equal(answers_process(&a, &p), 0);
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(b.images.len, 1);
	assert_int_equal(b.images.v[0].why, ANSWERS_REPLACED);
	assert_int_equal(b.processes.len, 1);
	q = &b.processes.v[0];
	assert_true(q->pid == 42 && q->ns_pid == 7 && q->jitdump_early && q->contradictions == 3 && q->doubts == 17);
	assert_string_equal(intern_text(&b.texts, q->version), "10.0_(odd)");
	assert_true(q->way == ANSWERS_NONE);
	assert_string_equal(intern_text(&b.texts, q->why), "memory: not\nthis way");
	text = strdup(old);
	assert_int_equal(store_parse(text, strlen(text), &c, &read, NULL), 0);
	free(text);
	assert_true(c.images.v[0].wanted);
	assert_int_equal(c.images.v[0].why, ANSWERS_FINE);
	answers_free(&a);
	answers_free(&b);
	answers_free(&c);
}

static void what_would_name_a_stripped_image_comes_back(void **state)
{
	static const struct image_segment segments[] = {{0x1000, 0, 0x800, 0x900, 5}, {UINT64_MAX - 1, 0x800, 1, 1, 6}};
	static const struct image_build_id id = {.bytes = {0xaa, 0xbb}, .len = 2};
	struct store_notes notes = {0}, read;
	struct answers a = {0}, b = {0}, c = {0};
	size_t len;

	(void)state;
	fill(&a);
	assert_int_equal(answers_stripped(&a, 0, &id, segments, 2), 0);
	assert_int_equal(answers_stripped(&a, 0, &id, segments, 1), 0); /* it is known already */
	char *text = written(&a, &notes, &len);

	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(b.stripped.len, 1);
	for (size_t i = 0; i < b.images.len; i++)
		assert_int_equal(b.images.v[i].stripped, b.images.v[i].kind == ANSWERS_FILE);
	assert_memory_equal(&b.stripped.v[0].build_id, &id, sizeof(id));
	assert_int_equal(b.stripped.v[0].nsegments, 2);
	assert_memory_equal(b.stripped.v[0].segments, segments, sizeof(segments));
	/* Once its debug file was found nothing is to be kept. */
	b.stripped.v[0].named = true;
	text = written(&b, &notes, &len);
	assert_null(strstr(text, "stripped"));
	assert_int_equal(store_parse(text, len, &c, &read, NULL), 0);
	free(text);
	answers_free(&a);
	answers_free(&b);
	answers_free(&c);
}

static void a_better_answer_takes_the_place_of_the_old_one(void **state)
{
	struct answers a = {0};
	struct answers_symbol s = {.start = 0x2000, .end = 0x2100, .module = ANSWERS_NONE, .source = SYMBOL_DEBUG_FILE, .until_ns = UINT64_MAX};
	uint32_t id, got;

	(void)state;
	fill(&a);
	s.name = text_of(&a, "better");
	assert_int_equal(answers_symbol(&a, &s, &id), 0);
	assert_int_equal(answers_replace(&a, 0, 0x2001, id), 0);
	assert_int_equal(answers_replace(&a, 0, 0x5000, id), 0);
	assert_int_equal(answers_replace(&a, 0, 0x5001, id), -ENOENT);
	assert_int_equal(answers_get(&a, 0, 0x2001, 0, &got), 0);
	assert_int_equal(got, id);
	assert_int_equal(answers_get(&a, 0, 0x5000, 0, &got), 0);
	assert_int_equal(got, id);
	assert_int_equal(answers_get(&a, 0, 0x1004, 0, &got), 0);
	assert_int_not_equal(got, id);
	answers_free(&a);
}

static void lines_come_back_as_they_were(void **state)
{
	struct answers a = {0}, b = {0};
	struct store_notes notes = {0}, read;
	uint32_t symbol, chain, none;
	size_t len;
	char *text;

	(void)state;
	fill(&a);
	const struct answers_line two[] = {{text_of(&a, "_ZN1a1cEv"), text_of(&a, "a b.c"), 12}, {ANSWERS_NONE, text_of(&a, "x.c"), 0}};
	const struct answers_line one[] = {{ANSWERS_NONE, ANSWERS_NONE, 7}};

	assert_int_equal(answers_get(&a, 0, 0x1004, 0, &symbol), 0);
	assert_int_equal(answers_chain(&a.lines, two, 2, &chain), 0);
	assert_int_equal(answers_lines_put(&a.lines, symbol, 0x1004, chain), 0);
	assert_int_equal(answers_lines_put(&a.lines, symbol, 0x1005, ANSWERS_NONE), 0);
	assert_int_equal(answers_chain(&a.lines, one, 1, &chain), 0);
	assert_int_equal(answers_lines_put(&a.lines, symbol, 0x1006, chain), 0);
	a.images.v[1].lineless = true;
	text = written(&a, &notes, &len);
	assert_int_equal(store_parse(text, len, &b, &read, NULL), 0);
	free(text);
	assert_int_equal(answers_get(&b, 0, 0x1004, 0, &symbol), 0);
	assert_int_equal(answers_lines_get(&b.lines, symbol, 0x1004, &chain), 0);
	assert_int_equal(b.lines.chains.v[chain].n, 2);
	const struct answers_line *l = b.lines.lines.v + b.lines.chains.v[chain].first;

	assert_string_equal(intern_text(&b.texts, l[0].function), "_ZN1a1cEv");
	assert_string_equal(intern_text(&b.texts, l[0].file), "a b.c");
	assert_int_equal(l[0].line, 12);
	assert_int_equal(l[1].function, ANSWERS_NONE);
	assert_int_equal(answers_lines_get(&b.lines, symbol, 0x1005, &none), 0);
	assert_int_equal(none, ANSWERS_NONE);
	assert_int_equal(answers_lines_get(&b.lines, symbol, 0x1006, &chain), 0);
	assert_int_equal(b.lines.lines.v[b.lines.chains.v[chain].first].line, 7);
	assert_int_equal(answers_lines_get(&b.lines, symbol, 0x1007, &chain), -ENOENT);
	assert_true(b.images.v[1].lineless && !b.images.v[0].lineless);
	answers_free(&a);
	answers_free(&b);
}

static void a_cut_store_is_refused(void **state)
{
	struct store_notes notes = {0};
	struct answers a = {0};
	size_t len;
	char *text;

	(void)state;
	fill(&a);
	text = written(&a, &notes, &len);
	for (size_t cut = 0; cut < len; cut++) {
		struct answers b = {0};
		char *copy = strndup(text, cut);

		assert_true(store_parse(copy, cut, &b, &notes, NULL) < 0);
		free(copy);
		answers_free(&b);
	}
	free(text);
	answers_free(&a);
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
		{"profcpu-symbols 2\nimage file - 0 0 0 0 0 /a\nsymbol 1 2 symtab - x\nof 1\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlines 0 - 1\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlines - - x\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlines - -\nend 0\n", -EBADMSG},
		{"profcpu-symbols 2\nlineless\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nat 5\nend 1\n", -EBADMSG},
		{"profcpu-symbols 1\nsymbol 1 2 symtab - x\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nnothing 12345678901234567\nend 1\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\\x0\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage what - 0 0 0 0 0 /a\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file abc 0 0 0 0 0 /a\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nstripped ab\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped -\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped ab 1 2 3 4\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nimage file - 0 0 0 0 0 /a\nstripped ab 1 2 3 4 100000000\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nend 0\nend 0\n", -EBADMSG},
		{"profcpu-symbols 1\nend 7\n", -EBADMSG},
	};
	struct store_notes notes;
	struct parse_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct answers a = {0};
		char *copy = strdup(bad[i].text);

		assert_int_equal(store_parse(copy, strlen(copy), &a, &notes, &err), bad[i].code);
		assert_non_null(err.what);
		free(copy);
		answers_free(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_come_back_as_they_were),
		cmocka_unit_test(answers_for_a_time_come_back_for_that_time),
		cmocka_unit_test(an_address_has_no_end_of_times),
		cmocka_unit_test(what_would_name_a_stripped_image_comes_back),
		cmocka_unit_test(reasons_come_back_and_old_stores_have_none),
		cmocka_unit_test(a_better_answer_takes_the_place_of_the_old_one),
		cmocka_unit_test(lines_come_back_as_they_were),
		cmocka_unit_test(a_cut_store_is_refused),
		cmocka_unit_test(other_versions_and_nonsense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
