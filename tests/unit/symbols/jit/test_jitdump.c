#include "base/outbuf.h"
#include "symbols/jit/names.h"
#include "symbols/jit/jitdump.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A jitdump as written by a machine of either byte order. */
struct dump {
	struct outbuf out;
	bool swap;
};

static void u32(struct dump *d, uint32_t x)
{
	x = d->swap ? __builtin_bswap32(x) : x;
	outbuf_put(&d->out, &x, sizeof(x));
}

static void u64(struct dump *d, uint64_t x)
{
	x = d->swap ? __builtin_bswap64(x) : x;
	outbuf_put(&d->out, &x, sizeof(x));
}

static struct dump begin(bool swap, uint32_t pad, uint64_t flags)
{
	struct dump d = {outbuf_to(-1), swap};

	u32(&d, 0x4A695444);
	u32(&d, 1);
	u32(&d, 40);
	u32(&d, 62);
	u32(&d, pad);
	u32(&d, 77);
	u64(&d, 5);
	u64(&d, flags);
	return d;
}

static void record(struct dump *d, uint32_t type, size_t bytes, uint64_t time)
{
	u32(d, type);
	u32(d, (uint32_t)(16 + bytes));
	u64(d, time);
}

static void load(struct dump *d, uint64_t time, uint64_t addr, uint64_t bytes, uint64_t index,
		 const char *name, size_t padding)
{
	static const char code[4096];

	record(d, 0, 40 + strlen(name) + 1 + bytes + padding, time);
	u32(d, 77);
	u32(d, 78);
	u64(d, addr);
	u64(d, addr);
	u64(d, bytes);
	u64(d, index);
	outbuf_put(&d->out, name, strlen(name) + 1);
	outbuf_put(&d->out, code, bytes + padding);
}

static void move(struct dump *d, uint64_t time, uint64_t from, uint64_t to, uint64_t bytes,
		 uint64_t index)
{
	record(d, 1, 48, time);
	u32(d, 77);
	u32(d, 78);
	u64(d, to);
	u64(d, from);
	u64(d, to);
	u64(d, bytes);
	u64(d, index);
}

struct entry {
	uint64_t addr;
	uint32_t line, column;
	const char *file;
};

static void lines(struct dump *d, uint64_t addr, const struct entry *e, size_t n)
{
	size_t bytes = 16;

	for (size_t i = 0; i < n; i++)
		bytes += 16 + strlen(e[i].file) + 1;
	record(d, 2, bytes, 1);
	u64(d, addr);
	u64(d, n);
	for (size_t i = 0; i < n; i++) {
		u64(d, e[i].addr);
		u32(d, e[i].line);
		u32(d, e[i].column);
		outbuf_put(&d->out, e[i].file, strlen(e[i].file) + 1);
	}
}

struct read {
	struct jit_methods *m;
	struct jitdump *dump;
	struct jitdump_stats stats;
};

/* Parses from memory and from a file; both give the same. */
static struct read finish(struct dump *d)
{
	struct jit_methods *again;
	struct jitdump_stats stats;
	struct read r = {0};
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	assert_int_equal(d->out.error, 0);
	assert_int_equal(write(fd, d->out.data, d->out.len), d->out.len);
	assert_int_equal(jit_methods_new(&r.m), 0);
	assert_int_equal(jit_methods_new(&again), 0);
	assert_int_equal(jitdump_parse(d->out.data, d->out.len, r.m, &r.dump, &r.stats, NULL), 0);
	assert_int_equal(jitdump_load(fd, again, NULL, &stats, NULL), 0);
	assert_memory_equal(&stats, &r.stats, sizeof(stats));
	assert_int_equal(jit_methods_count(again, SYMBOL_JITDUMP),
			 jit_methods_count(r.m, SYMBOL_JITDUMP));
	assert_int_equal(jit_methods_finish(r.m), 0);
	jit_methods_free(again);
	close(fd);
	outbuf_close(&d->out);
	return r;
}

static void free_read(struct read *r)
{
	jit_methods_free(r->m);
	jitdump_free(r->dump);
}

static struct jit_methods_result at(const struct read *r, uint64_t addr, uint64_t time)
{
	struct jit_methods_result a;

	jit_methods_find(r->m, SYMBOL_JITDUMP, addr, time, &a);
	return a;
}

static void assert_at(const struct read *r, uint64_t addr, uint64_t time, const char *name)
{
	struct jit_methods_result a = at(r, addr, time);

	if (!name)
		assert_null(a.method);
	else
		assert_string_equal(a.method->name, name);
}

static void assert_line(const struct read *r, uint64_t addr, uint64_t time, const char *file,
			uint32_t line, uint32_t column)
{
	struct jit_methods_result a = at(r, addr, time);
	struct jitdump_line l;

	assert_int_equal(jitdump_line(r->dump, &a, addr, &l), 0);
	assert_string_equal(l.file, file);
	assert_int_equal(l.line, line);
	assert_int_equal(l.discriminator, column);
}

static void code_is_loaded_moved_and_replaced_in_either_byte_order(void **state)
{
	(void)state;
	for (int swap = 0; swap < 2; swap++) {
		struct dump d = begin(swap, 0, 0);

		load(&d, 100, 0x1000, 0x80, 1, "a", 0);
		load(&d, 110, 0x2000, 0x80, 2, "b", 5);
		record(&d, 99, 0, 111);
		record(&d, 4, 24, 112);
		u64(&d, 0);
		u64(&d, 0);
		u64(&d, 0);
		move(&d, 120, 0x1000, 0x3000, 0x80, 1);
		load(&d, 130, 0x2040, 0x80, 3, "c", 0);
		move(&d, 140, 0x3000, 0x1000, 0x80, 1);
		load(&d, 150, 0x5000, 0, 4, "without code", 0);
		record(&d, 3, 0, 200);
		struct read r = finish(&d);

		assert_int_equal(r.stats.pid, 77);
		assert_int_equal(r.stats.records, 9);
		assert_int_equal(r.stats.loads, 4);
		assert_int_equal(r.stats.moves, 2);
		assert_int_equal(r.stats.unknown, 1);
		assert_int_equal(r.stats.bad, 0);
		assert_int_equal(r.stats.last_ns, 200);
		assert_true(r.stats.closed);
		assert_false(r.stats.cut);
		assert_at(&r, 0x1000, 99, NULL);
		assert_at(&r, 0x1000, 100, "a");
		assert_at(&r, 0x1000, 120, NULL);
		assert_at(&r, 0x3000, 120, "a");
		assert_at(&r, 0x3000, 140, NULL);
		assert_at(&r, 0x1000, 140, "a");
		assert_at(&r, 0x2000, 129, "b");
		assert_at(&r, 0x2000, 130, NULL);
		assert_at(&r, 0x20a0, 130, "c");
		assert_at(&r, 0x5000, 160, NULL);
		free_read(&r);
	}
}

static void lines_belong_to_the_next_load_and_move_with_it(void **state)
{
	static const struct entry e[] = {
		{0x1000, 10, 1, "one.c"},
		{0x1010, 11, 0, "\xff"},
		{0x1020, 5, 2, "two.c"},
		{0x1020, 6, 3, "three.c"},
	};
	struct dump d = begin(false, 0, 0);

	(void)state;
	lines(&d, 0x1000, e, 1);
	lines(&d, 0x1000, e, 4);
	load(&d, 100, 0x1000, 0x80, 1, "a", 0);
	load(&d, 100, 0x2000, 0x80, 2, "no lines", 0);
	move(&d, 120, 0x1000, 0x3000, 0x80, 1);
	struct read r = finish(&d);
	struct jit_methods_result a = at(&r, 0x2000, 100);
	struct jitdump_line l;

	assert_line(&r, 0x1000, 100, "one.c", 10, 1);
	assert_line(&r, 0x101f, 100, "one.c", 11, 0);
	assert_line(&r, 0x107f, 100, "three.c", 6, 3);
	assert_line(&r, 0x3011, 120, "one.c", 11, 0);
	assert_int_equal(jitdump_line(r.dump, &a, 0x2000, &l), -ENOENT);
	assert_int_equal(r.stats.lines, 4);
	assert_int_equal(r.stats.bad, 0);
	free_read(&r);
}

static void lines_in_any_order_are_sorted(void **state)
{
	static const struct entry e[] = {
		{0x1020, 3, 0, "c"}, {0x1000, 1, 0, "a"}, {0x1020, 4, 0, "d"}, {0x1010, 2, 0, "b"}};
	struct dump d = begin(false, 0, 0);

	(void)state;
	lines(&d, 0x1000, e, 4);
	load(&d, 100, 0x1000, 0x80, 1, "a", 0);
	struct read r = finish(&d);

	assert_line(&r, 0x100f, 100, "a", 1, 0);
	assert_line(&r, 0x1010, 100, "b", 2, 0);
	assert_line(&r, 0x1020, 100, "d", 4, 0);
	free_read(&r);
}

static void tables_of_v8_begin_behind_an_elf_header(void **state)
{
	static const struct entry e[] = {{0x1040, 10, 7, "a.js"}, {0x10a0, 12, 9, "\xff"}};
	struct dump d = begin(false, 0xdeadbeef, 0);

	(void)state;
	lines(&d, 0x1000, e, 2);
	load(&d, 100, 0x1000, 0x80, 1, "JS:*a a.js:10:7", 0);
	struct read r = finish(&d);

	assert_line(&r, 0x1000, 100, "a.js", 10, 7);
	assert_line(&r, 0x1060, 100, "a.js", 12, 9);
	free_read(&r);
}

static void impossible_tables_are_not_used(void **state)
{
	static const struct entry outside[] = {{0x1000, 1, 0, "a"}, {0x1080, 2, 0, "a"}},
				  first[] = {{0x1000, 1, 0, "\xff"}};
	struct dump d = begin(false, 0, 0);

	(void)state;
	lines(&d, 0x1000, outside, 2);
	load(&d, 100, 0x1000, 0x80, 1, "a", 0);
	lines(&d, 0x2000, outside, 1);
	lines(&d, 0x1000, first, 1);
	/* More entries than the limit. */
	record(&d, 2, 16, 1);
	u64(&d, 0x2000);
	u64(&d, 1ULL << 40);
	load(&d, 100, 0x2000, 0x80, 1, "b", 0);
	struct read r = finish(&d);
	struct jit_methods_result a = at(&r, 0x1000, 100);
	struct jitdump_line l;

	assert_int_equal(jitdump_line(r.dump, &a, 0x1000, &l), -ENOENT);
	assert_int_equal(r.stats.lines, 0);
	/* Addresses below the function, no previous address, too many. Addresses outside of it show
	 * at the load. */
	assert_int_equal(r.stats.bad_tables, 4);
	/* They cost no names. */
	assert_int_equal(r.stats.bad, 0);
	assert_at(&r, 0x2000, 100, "b");
	free_read(&r);
}

static void bad_records_are_counted_and_the_rest_is_read(void **state)
{
	struct dump d = begin(false, 0, 0);

	(void)state;
	move(&d, 10, 0x1000, 0x2000, 0x80, 9); /* of size 0 */
	load(&d, 100, 0x1000, 0x80, 1, "", 0); /* without a name */
	record(&d, 0, 8, 100);                 /* too short */
	u64(&d, 0);
	load(&d, 100, UINT64_MAX - 8, 0x80, 1, "past the end", 0);
	load(&d, 100, 0x1000, 0x80, 1, "good", 0);
	move(&d, 110, 0x1001, 0x2000, 0x80, 1); /* not from its place */
	struct read r = finish(&d);

	assert_int_equal(r.stats.bad, 5);
	assert_at(&r, 0x1000, 120, "good");
	free_read(&r);
}

static void the_end_may_be_missing(void **state)
{
	struct dump whole = begin(false, 0, 0);
	size_t first;

	(void)state;
	load(&whole, 100, 0x1000, 0x80, 1, "first", 0);
	first = whole.out.len;
	load(&whole, 100, 0x2000, 0x80, 2, "second", 0);
	for (size_t len = 0; len <= whole.out.len; len++) {
		struct jitdump_stats stats;
		struct jit_methods *m;
		int r;

		assert_int_equal(jit_methods_new(&m), 0);
		r = jitdump_parse(whole.out.data, len, m, NULL, &stats, NULL);
		assert_int_equal(r, len < 40 ? -EBADMSG : 0);
		if (!r) {
			assert_int_equal(stats.loads, len < first           ? 0
						      : len < whole.out.len ? 1
									    : 2);
			assert_int_equal(stats.cut,
					 len != 40 && len != first && len != whole.out.len);
		}
		jit_methods_free(m);
	}
	outbuf_close(&whole.out);
}

static void times_of_a_processor_clock_are_ignored(void **state)
{
	struct dump d = begin(false, 0, 1);

	(void)state;
	load(&d, 1000000, 0x1000, 0x80, 1, "old", 0);
	load(&d, 2000000, 0x1000, 0x80, 2, "new", 0);
	struct read r = finish(&d);

	assert_true(r.stats.untimed);
	assert_at(&r, 0x1000, 0, "new");
	free_read(&r);
}

static void other_files_are_refused(void **state)
{
	struct dump d = begin(false, 0, 0);
	struct jitdump_stats stats;
	struct jit_methods *m;
	uint32_t version = 2, bytes = 39;

	(void)state;
	assert_int_equal(jit_methods_new(&m), 0);
	assert_int_equal(jitdump_parse(NULL, 0, m, NULL, &stats, NULL), -EBADMSG);
	memcpy(d.out.data + 4, &version, 4);
	assert_int_equal(jitdump_parse(d.out.data, d.out.len, m, NULL, &stats, NULL), -ENOTSUP);
	version = 1;
	memcpy(d.out.data + 4, &version, 4);
	memcpy(d.out.data + 8, &bytes, 4);
	assert_int_equal(jitdump_parse(d.out.data, d.out.len, m, NULL, &stats, NULL), -EBADMSG);
	d.out.data[0] = 'x';
	assert_int_equal(jitdump_parse(d.out.data, d.out.len, m, NULL, &stats, NULL), -EBADMSG);
	jit_methods_free(m);
	outbuf_close(&d.out);
}

static void names_of_jitdumps_equal_perfs(void **state)
{
	uint32_t pid = 0;

	(void)state;
	assert_true(jitdump_is_name("/tmp/jit-12.dump", &pid));
	assert_int_equal(pid, 12);
	assert_true(jitdump_is_name("jit-7.dump (deleted)", &pid));
	assert_false(jitdump_is_name("/tmp/jit-.dump", &pid));
	assert_false(jitdump_is_name("/tmp/jit-12.dump/x", &pid));
	assert_false(jitdump_is_name("/tmp/xjit-12.dump", &pid));
	assert_false(jitdump_is_name("/tmp/jit-12.dumps", &pid));
	assert_false(jitdump_is_name("/tmp/jit--12.dump", &pid));
	assert_false(jitdump_is_name("/tmp/jit-99999999999999999999.dump", &pid));
}

static void a_bad_load_takes_its_table_with_it(void **state)
{
	static const struct entry e[] = {{0x1000, 1, 0, "other.c"}};
	struct dump d = begin(false, 0, 0);
	struct jitdump_line l;

	(void)state;
	lines(&d, 0x1000, e, 1);
	load(&d, 100, 0x1000, 0x80, 1, "", 0); /* without a name */
	load(&d, 110, 0x1000, 0x80, 2, "a", 0);
	struct read r = finish(&d);
	struct jit_methods_result a = at(&r, 0x1000, 110);

	assert_int_equal(r.stats.bad, 1);
	assert_string_equal(a.method->name, "a");
	assert_int_equal(jitdump_line(r.dump, &a, 0x1000, &l), -ENOENT);
	assert_false(jitdump_has_lines(r.dump));
	free_read(&r);
}

/* The next debug table replaces an unused one; names of files stay. */
static void file_names_have_a_limit(void **state)
{
	enum { ENTRIES = 1 << 14, NAME = 8, TABLES = JITDUMP_FILES_MAX / ENTRIES };
	static const struct entry known[] = {{0x1000, 7, 0, "0000000"}};
	static const struct entry fresh[] = {{0x2000, 7, 0, "fresh.c"}};
	struct dump d = begin(false, 0, 0);
	char name[NAME + 1];

	(void)state;
	for (unsigned int k = 0; k < TABLES; k++) {
		record(&d, 2, 16 + ENTRIES * (16 + NAME), 1);
		u64(&d, 0x1000);
		u64(&d, ENTRIES);
		for (unsigned int i = 0; i < ENTRIES; i++) {
			u64(&d, 0x1000);
			u64(&d, 1);
			snprintf(name, sizeof(name), "%07x", k * ENTRIES + i);
			outbuf_put(&d.out, name, NAME);
		}
	}
	lines(&d, 0x1000, known, 1);
	load(&d, 100, 0x1000, 0x80, 1, "a", 0);
	lines(&d, 0x2000, fresh, 1);
	load(&d, 100, 0x2000, 0x80, 2, "b", 0);
	struct read r = finish(&d);
	struct jit_methods_result a = at(&r, 0x2000, 100);
	struct jitdump_line l;

	assert_line(&r, 0x1000, 100, "0000000", 7, 0);
	assert_int_equal(jitdump_line(r.dump, &a, 0x2000, &l), -ENOENT);
	assert_int_equal(r.stats.bad_tables, 1);
	free_read(&r);
}

/* With little memory, tables of lines and then methods are left out and counted. */
static void memory_has_a_limit(void **state)
{
	enum { ENTRIES = 1000, METHODS = 300 };
	struct dump d = begin(false, 0, 0);
	struct jitdump_stats stats;
	struct jitdump *dump;
	struct jit_methods *m;
	char name[16];

	(void)state;
	for (unsigned int i = 0; i < METHODS; i++) {
		struct entry e[ENTRIES];

		snprintf(name, sizeof(name), "file%03u.c", i);
		for (unsigned int k = 0; k < ENTRIES; k++)
			e[k] = (struct entry){0x1000 + 0x1000 * i, k, 0, k ? "\xff" : name};
		lines(&d, 0x1000 + 0x1000 * i, e, ENTRIES);
		load(&d, 100, 0x1000 + 0x1000 * i, 0x80, i, "m", 0);
	}
	for (int full = 0; full < 2; full++) {
		assert_int_equal(jit_methods_new(&m), 0);
		jit_methods_limit_memory(m, full ? 20000 : 4 << 20);
		assert_int_equal(jitdump_parse(d.out.data, d.out.len, m, &dump, &stats, NULL), 0);
		assert_true(jit_methods_taken(m) <= (full ? 25000 : 5 << 20));
		assert_int_equal(stats.loads, METHODS);
		assert_in_range(stats.bad_tables, full ? METHODS : METHODS / 2, METHODS - !full);
		/* Lines take nothing from methods. */
		assert_in_range(jit_methods_count(m, SYMBOL_JITDUMP), full ? 50 : METHODS,
				METHODS - full);
		assert_int_equal(jit_methods_refused_count(m),
				 METHODS - jit_methods_count(m, SYMBOL_JITDUMP));
		assert_int_equal(stats.bad, jit_methods_refused_count(m));
		assert_int_equal(jitdump_has_lines(dump), !full);
		jitdump_free(dump);
		jit_methods_free(m);
	}
	outbuf_close(&d.out);
}

/* Reading the rest would only take time. Methods of a capture that were refused do not count. */
static void reading_stops_when_no_memory_is_left(void **state)
{
	enum { MORE = 1000 };
	const struct jit_method captured = {
		.start = 1, .bytes = 1, .source = SYMBOL_MEMORY, .until_ns = UINT64_MAX};
	struct dump d = begin(false, 0, 0);
	struct jitdump_stats stats;
	struct jit_methods *m;

	(void)state;
	for (size_t i = 0; i < JITDUMP_REFUSED_MAX + MORE; i++)
		load(&d, i, 16 * i, 1, i, "f", 0);
	assert_int_equal(jit_methods_new(&m), 0);
	jit_methods_limit_memory(m, 1);
	for (int i = 0; i < MORE; i++)
		assert_int_equal(jit_methods_add(m, &captured), -E2BIG);
	assert_int_equal(jitdump_parse(d.out.data, d.out.len, m, NULL, &stats, NULL), 0);
	assert_int_equal(stats.loads, JITDUMP_REFUSED_MAX);
	assert_int_equal(jit_methods_refused_count(m), JITDUMP_REFUSED_MAX + MORE);
	assert_true(stats.cut);
	jit_methods_free(m);
	outbuf_close(&d.out);
}

/* A jitdump that stopped early may describe code that was replaced long ago. */
static void lines_of_replaced_code_are_not_used(void **state)
{
	static const struct entry e[] = {{0x1000, 1, 0, "old.c"}, {0x2000, 2, 0, "same.c"}};
	struct jit_method method = {.start = 0x1000,
				    .bytes = 0x80,
				    .source = SYMBOL_MEMORY,
				    .from_ns = 200,
				    .sure_ns = 300,
				    .until_ns = UINT64_MAX,
				    .name = "new",
				    .len = 3};
	struct jit_names_sources sources = {0};
	struct dump d = begin(false, 0, 0);
	struct symbol_provider *names;
	struct jitdump_line l;

	(void)state;
	lines(&d, 0x1000, e, 1);
	load(&d, 100, 0x1000, 0x80, 1, "old", 0);
	lines(&d, 0x2000, e + 1, 1);
	load(&d, 110, 0x2000, 0x80, 2, "same", 0);
	assert_int_equal(jit_methods_new(&sources.methods), 0);
	assert_int_equal(jitdump_parse(d.out.data, d.out.len, sources.methods, &sources.jitdump,
				       &sources.jitdump_stats, NULL),
			 0);
	assert_int_equal(jit_methods_add(sources.methods, &method), 0);
	method.start = 0x2000;
	method.name = "same";
	method.len = 4;
	assert_int_equal(jit_methods_add(sources.methods, &method), 0);
	assert_int_equal(jit_methods_finish(sources.methods), 0);
	assert_int_equal(jit_names_new(&sources, &names), 0);
	assert_true(jit_names_stats(names).jitdump_early);
	assert_int_equal(jit_names_line(names, 0x1000, 150, &l), 0);
	assert_string_equal(l.file, "old.c");
	assert_int_equal(jit_names_line(names, 0x1000, 400, &l), -ENOENT);
	assert_int_equal(jit_names_line(names, 0x2000, 400, &l), 0);
	assert_string_equal(l.file, "same.c");
	symbol_provider_free(names);
	outbuf_close(&d.out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_is_loaded_moved_and_replaced_in_either_byte_order),
		cmocka_unit_test(lines_belong_to_the_next_load_and_move_with_it),
		cmocka_unit_test(lines_in_any_order_are_sorted),
		cmocka_unit_test(tables_of_v8_begin_behind_an_elf_header),
		cmocka_unit_test(impossible_tables_are_not_used),
		cmocka_unit_test(bad_records_are_counted_and_the_rest_is_read),
		cmocka_unit_test(the_end_may_be_missing),
		cmocka_unit_test(times_of_a_processor_clock_are_ignored),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(names_of_jitdumps_equal_perfs),
		cmocka_unit_test(reading_stops_when_no_memory_is_left),
		cmocka_unit_test(lines_of_replaced_code_are_not_used),
		cmocka_unit_test(a_bad_load_takes_its_table_with_it),
		cmocka_unit_test(file_names_have_a_limit),
		cmocka_unit_test(memory_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
