#include "base/bitset.h"
#include "base/file.h"
#include "symbols/jit_methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCE SYMBOL_MEMORY

static struct jit_methods *new_methods(void)
{
	struct jit_methods *m;

	assert_int_equal(jit_methods_new(&m), 0);
	return m;
}

static int add(struct jit_methods *m, uint64_t start, uint32_t bytes, uint64_t from, uint64_t sure, uint64_t until,
	       const char *name)
{
	return jit_methods_add(m, &(struct jit_method){.start = start, .bytes = bytes, .source = SOURCE, .from_ns = from,
						       .sure_ns = sure, .until_ns = until, .name = name,
						       .len = (uint32_t)strlen(name)});
}

static struct jit_methods_answer at(const struct jit_methods *m, uint64_t addr, uint64_t time)
{
	struct jit_methods_answer a;

	jit_methods_at(m, SOURCE, addr, time, &a);
	assert_true(a.from_ns <= time && time < a.until_ns);
	return a;
}

static void assert_at(const struct jit_methods *m, uint64_t addr, uint64_t time, const char *name, uint64_t from,
		      uint64_t until)
{
	struct jit_methods_answer a = at(m, addr, time);

	if (name) {
		assert_non_null(a.method);
		assert_string_equal(a.method->name, name);
	} else {
		assert_null(a.method);
	}
	assert_int_equal(a.from_ns, from);
	assert_true(a.until_ns == until);
}

static void an_answer_says_how_long_it_holds(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 0, UINT64_MAX, "always"), 0);
	assert_int_equal(add(m, 0x2000, 0x100, 50, 0, 90, "a while"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0xfff, 7, NULL, 0, UINT64_MAX);
	assert_at(m, 0x1000, 7, "always", 0, UINT64_MAX);
	assert_at(m, 0x10ff, 7, "always", 0, UINT64_MAX);
	assert_at(m, 0x1100, 7, NULL, 0, UINT64_MAX);
	assert_at(m, 0x2010, 49, NULL, 0, 50);
	assert_at(m, 0x2010, 50, "a while", 50, 90);
	assert_at(m, 0x2010, 89, "a while", 50, 90);
	assert_at(m, 0x2010, 90, NULL, 90, UINT64_MAX);
	jit_methods_free(m);
}

static void what_comes_later_ends_what_it_overlaps_whole(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 0, UINT64_MAX, "a"), 0);
	assert_int_equal(add(m, 0x1100, 0x100, 0, 0, UINT64_MAX, "b"), 0);
	assert_int_equal(add(m, 0x10f0, 0x20, 100, 100, UINT64_MAX, "over both"), 0);
	assert_int_equal(add(m, 0x1100, 0x100, 200, 200, UINT64_MAX, "b again"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 99, "a", 0, 100);
	assert_at(m, 0x1000, 100, NULL, 100, UINT64_MAX);
	assert_at(m, 0x1100, 99, "b", 0, 100);
	assert_at(m, 0x10f8, 150, "over both", 100, 200);
	assert_at(m, 0x1100, 150, "over both", 100, 200);
	assert_at(m, 0x1180, 150, NULL, 100, 200);
	assert_at(m, 0x1180, 200, "b again", 200, UINT64_MAX);
	assert_true(at(m, 0x1000, 0).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void code_found_between_two_looks_holds_from_the_first_of_them(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "old"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 20, 30, UINT64_MAX, "new"), 0);
	assert_int_equal(add(m, 0x2000, 0x80, 20, 30, UINT64_MAX, "alone"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 29, "old", 0, 30);
	assert_at(m, 0x1000, 30, "new", 30, UINT64_MAX);
	assert_at(m, 0x1090, 30, NULL, 30, UINT64_MAX);
	assert_at(m, 0x2000, 20, "alone", 20, UINT64_MAX);
	assert_int_equal(at(m, 0x1000, 29).method->doubt_ns, 20);
	assert_true(at(m, 0x2000, 29).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void of_two_of_one_look_the_later_holds_alone(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "first"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 0, 10, UINT64_MAX, "second"), 0);
	assert_int_equal(add(m, 0x1000, 0x80, 10, 20, UINT64_MAX, "second"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 0, "second", 0, UINT64_MAX);
	assert_int_equal(jit_methods_count(m, SOURCE), 3);
	assert_int_equal(jit_methods_covered(m, SOURCE), 2);
	jit_methods_free(m);
}

static void what_an_end_tells_holds_before_what_takes_its_place(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	assert_int_equal(add(m, 0x1000, 0x100, 0, 10, UINT64_MAX, "old"), 0);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1001, 15), -ENOENT);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 15), 0);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 16), -ENOENT);
	assert_int_equal(add(m, 0x1000, 0x100, 10, 20, UINT64_MAX, "new"), 0);
	jit_methods_end_all(m, 40);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 14, "old", 0, 15);
	assert_at(m, 0x1000, 15, "new", 15, 40);
	assert_at(m, 0x1000, 40, NULL, 40, UINT64_MAX);
	assert_true(at(m, 0x1000, 14).method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
}

static void what_cannot_be_is_refused(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_method method = {.start = 1, .bytes = 1, .until_ns = 1, .name = "x", .len = 1};

	(void)state;
	assert_int_equal(add(m, 0x1000, 0, 0, 0, UINT64_MAX, "x"), -EINVAL);
	assert_int_equal(add(m, UINT64_MAX - 3, 4, 0, 0, UINT64_MAX, "x"), -EINVAL);
	assert_int_equal(add(m, 0x1000, 4, 5, 0, 5, "x"), -EINVAL);
	assert_int_equal(jit_methods_add(m, &method), -EINVAL);
	assert_int_equal(add(m, UINT64_MAX - 4, 4, 0, 0, UINT64_MAX, "last bytes"), 0);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, UINT64_MAX - 1, 0, "last bytes", 0, UINT64_MAX);
	assert_at(m, UINT64_MAX, 0, NULL, 0, UINT64_MAX);
	jit_methods_free(m);
}

/* Exact times: each ends whatever it overlaps, asked of each address and time. */
/* Pairs grow with the square of their number: a target may claim it. */
static void what_overlaps_beyond_measure_is_refused(void **state)
{
	enum { N = 6000 };
	struct jit_methods *m = new_methods();

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(add(m, 0x1000 + 16 * i, 16, 0, 100, UINT64_MAX, "old"), 0);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(add(m, 0x1000, 16 * N + i, 100, 200, UINT64_MAX, "new"), 0);
	assert_int_equal(jit_methods_finish(m), -E2BIG);
	jit_methods_free(m);
}

/* Its map to IL is none of the older one's that it replaced. */
static void what_is_told_of_refused_methods_is_not_taken(void **state)
{
	struct jit_methods *m = new_methods();

	(void)state;
	for (uint32_t i = 0; i < JIT_METHODS_MAX; i++)
		assert_int_equal(add(m, 0x1000 + 16 * (uint64_t)i, 16, 0, 0, UINT64_MAX, "a"), 0);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000, 5), 0);
	assert_int_equal(add(m, 0x1000, 16, 10, 10, UINT64_MAX, "b"), -E2BIG);
	assert_int_equal(add(m, 0x1000 + 16 * (JIT_METHODS_MAX - 1), 16, 10, 10, UINT64_MAX, "b"), -E2BIG);
	assert_int_equal(add(m, 8, 16, 10, 10, UINT64_MAX, "new"), -E2BIG);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000, 6), -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1000 + 16 * (JIT_METHODS_MAX - 1), 6), -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 8, 6), -ENOENT);
	assert_int_equal(jit_methods_set_il(m, SOURCE, 0x1010, 6), 0);
	assert_int_equal(jit_methods_get(m, SOURCE, 0)->il, 6);
	assert_int_equal(jit_methods_end(m, SOURCE, 0x1000, 20), 0);
	assert_int_equal(jit_methods_get(m, SOURCE, 0)->until_ns, 20);
	jit_methods_free(m);
}

static void many_methods_answer_as_if_each_was_asked(void **state)
{
	enum { N = 300, ADDRS = 96, TIMES = 160 };
	static struct { uint64_t start, from, until; uint32_t bytes; bool overlapped; } model[N];
	uint32_t seed = 12345;

	(void)state;
	for (int round = 0; round < 20; round++) {
		struct jit_methods *m = new_methods();

		for (int i = 0; i < N; i++) {
			char name[16];

			seed = seed * 1664525 + 1013904223;
			model[i].start = seed >> 24 & 63;
			model[i].bytes = 1 + (seed >> 16 & 15);
			model[i].from = (uint64_t)i / 2;
			model[i].until = seed & 0x800 ? UINT64_MAX : model[i].from + 1 + (seed >> 5 & 31);
			snprintf(name, sizeof(name), "%d", i);
			assert_int_equal(add(m, model[i].start, model[i].bytes, model[i].from, 0, model[i].until, name), 0);
			for (int k = 0; k < i; k++)
				if (model[k].start < model[i].start + model[i].bytes &&
				    model[i].start < model[k].start + model[k].bytes && model[k].until > model[i].from)
					model[k].until = model[i].from;
		}
		assert_int_equal(jit_methods_finish(m), 0);
		for (uint64_t addr = 0; addr < ADDRS; addr++)
			for (uint64_t time = 0; time < TIMES; time++) {
				struct jit_methods_answer a = at(m, addr, time);
				int found = -1;

				for (int k = 0; k < N; k++)
					if (addr - model[k].start < model[k].bytes && time >= model[k].from && time < model[k].until)
						found = k;
				assert_int_equal(a.method ? atoi(a.method->name) : -1, found);
				/* The gaps are whole: one step further something is there. */
				if (!a.method && a.until_ns != UINT64_MAX)
					assert_non_null(at(m, addr, a.until_ns).method);
				if (!a.method && a.from_ns)
					assert_non_null(at(m, addr, a.from_ns - 1).method);
			}
		jit_methods_free(m);
	}
}

static void a_set_of_numbers_knows_neighbours(void **state)
{
	static const uint32_t sizes[] = {1, 63, 64, 65, 4095, 4096, 4097, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t n = sizes[i], last = n - 1, mid = n / 2;
		struct bitset s;

		assert_int_equal(bitset_init(&s, n), 0);
		assert_int_equal(bitset_next(&s, 0), BITSET_NONE);
		assert_int_equal(bitset_last(&s, n + 5), BITSET_NONE);
		bitset_put(&s, last);
		assert_int_equal(bitset_next(&s, 0), last);
		assert_int_equal(bitset_last(&s, UINT32_MAX), last);
		assert_int_equal(bitset_next(&s, n), BITSET_NONE);
		bitset_put(&s, mid);
		assert_int_equal(bitset_next(&s, 0), mid);
		assert_int_equal(bitset_last(&s, last ? last - 1 : 0), mid < last || !last ? mid : BITSET_NONE);
		bitset_take(&s, mid);
		bitset_take(&s, last);
		assert_int_equal(bitset_next(&s, 0), BITSET_NONE);
		bitset_free(&s);
	}
}

/* The file */

static int parse(const char *text, struct jit_methods *m, struct jit_methods_file *file)
{
	char *copy = strdup(text);
	int r = jit_methods_parse(copy, strlen(copy), m, file, NULL);

	free(copy);
	return r;
}

static void what_is_written_is_read_again(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_writer *w;
	struct jit_methods_file file;
	struct jit_method method = {.start = 0x1000, .bytes = 0x100, .source = SOURCE, .name = "a\nb\\ c", .len = 6};
	char dir[] = "/tmp/test_jit_methods.XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(jit_methods_writer_open(fd, getpid(), &w), 0);
	jit_methods_writer_way(w, "memory");
	jit_methods_writer_scan(w, 100);
	jit_methods_writer_found(w, &method);
	jit_methods_writer_scan(w, 200);
	jit_methods_writer_lost(w, SOURCE, 0x1000);
	method.start = 0x2000;
	jit_methods_writer_found(w, &method);
	assert_int_equal(jit_methods_writer_flush(w), 0);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(jit_methods_writer_open(fd, getpid(), &w), 0);
	method = (struct jit_method){.start = 0x3000, .bytes = 8, .source = SYMBOL_RUNDOWN, .from_ns = 5, .until_ns = 9,
				     .name = "event", .len = 5};
	jit_methods_writer_add(w, &method);
	assert_int_equal(jit_methods_writer_close(w), 0);

	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.pid, getpid());
	assert_true(file.start_ticks > 0);
	assert_int_equal(file.bad_lines, 0);
	assert_false(file.cut);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 199, "a\nb\\ c", 0, 200);
	assert_at(m, 0x2000, 99, NULL, 0, 100);
	assert_non_null(at(m, 0x2000, 100).method);
	/* The second opening says that the program may be another one. */
	assert_true(at(m, 0x2000, 100).until_ns != UINT64_MAX);
	jit_methods_free(m);

	assert_int_equal(jit_methods_remove(fd), 0);
	m = new_methods();
	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), -ENOENT);
	jit_methods_free(m);
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}

static void assert_il(const struct jit_methods *m, enum symbol_source source, uint64_t addr, uint64_t time, const char *path,
		      uint32_t rid, uint32_t il)
{
	struct jit_methods_answer a;
	struct jit_il_place place;

	jit_methods_at(m, source, addr, time, &a);
	assert_non_null(a.method);
	assert_true(a.method->il > 0);
	assert_int_equal(jit_il_find(jit_methods_il(m), a.method->il - 1, (uint32_t)(addr - a.method->start), &place), 0);
	assert_string_equal(jit_il_module(jit_methods_il(m), place.module)->path, path);
	assert_int_equal(place.rid, rid);
	assert_int_equal(place.il, il);
}

static void the_file_says_which_il_code_comes_from(void **state)
{
	static const char bad[] = "profcpu-methods 1\nscan 10\nfound 1000 10 runtime-memory a\nil 1000 runtime-memory 0 5 0+0\nmodule 1 - - /b\n"
				  "module 0 mvid 00 /b\nmodule 0 - - /a\nil 1000 runtime-memory 0 5 0*0\nil 1000 runtime-memory 1 5 0+0\n"
				  "il 2000 runtime-memory 0 5 0+0\nil 1000 runtime-memory 0 0 0+0\nil 1000 nothing 0 5 0+0\n";
	const struct jit_il_module first = {.path = "/app/a b.dll", .kind = JIT_IL_MVID, .id = {1, 2, 0xff}}, second = {.path = "/app/c.dll"};
	struct jit_il_point points[] = {{0, JIT_IL_PROLOG}, {8, 3}, {0x20, 9}};
	struct jit_method method = {.bytes = 0x100, .source = SOURCE, .until_ns = UINT64_MAX, .name = "a", .len = 1};
	char dir[] = "/tmp/test_jit_methods.XXXXXX";
	struct jit_methods *m = new_methods();
	struct jit_methods_writer *w;
	struct jit_methods_file file;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	for (int program = 0; program < 2; program++) {
		assert_int_equal(jit_methods_writer_open(fd, getpid(), &w), 0);
		jit_methods_writer_scan(w, program ? 20 : 10);
		for (uint64_t i = 0; i < 2; i++) {
			uint32_t number = jit_methods_writer_module(w, i == (uint64_t)program ? &first : &second);

			assert_int_equal(number, i);
			method.start = 0x1000 * (i + 1) + 0x10000 * (uint64_t)program;
			jit_methods_writer_found(w, &method);
			jit_methods_writer_il(w, SOURCE, method.start, number, (uint32_t)i + 7, points, 3);
		}
		assert_int_equal(jit_methods_writer_close(w), 0);
	}
	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_il_modules(jit_methods_il(m)), 4);
	assert_int_equal(jit_il_module(jit_methods_il(m), 0)->kind, JIT_IL_MVID);
	assert_memory_equal(jit_il_module(jit_methods_il(m), 0)->id, first.id, sizeof(first.id));
	assert_int_equal(jit_methods_finish(m), 0);
	assert_il(m, SOURCE, 0x1007, 50, "/app/a b.dll", 7, 0);
	assert_il(m, SOURCE, 0x2008, 50, "/app/c.dll", 8, 3);
	assert_il(m, SOURCE, 0x11008, UINT64_MAX - 1, "/app/c.dll", 7, 3);
	assert_il(m, SOURCE, 0x120ff, UINT64_MAX - 1, "/app/a b.dll", 8, 9);
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(fd), 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0);

	m = new_methods();
	assert_int_equal(parse(bad, m, &file), 0);
	assert_int_equal(file.bad_lines, 8);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, 0)->il, 0);
	jit_methods_free(m);
}

/* Of a file without a bad line. */
static struct jit_methods *finished(const char *text)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	assert_int_equal(parse(text, m, &file), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_methods_finish(m), 0);
	return m;
}

static void what_is_told_again_keeps_its_il(void **state)
{
	static const char text[] = "profcpu-methods 1\nmodule 0 - - /a\nadd 5 1000 10 rundown a\nadd 0 2000 10 rundown b\n"
				   "il 1000 rundown 0 5 0+0\nadd 9 2000 10 rundown b\nil 2000 rundown 0 6 0+1\n";
	struct jit_methods *m = finished(text);

	(void)state;
	assert_il(m, SYMBOL_RUNDOWN, 0x1001, 50, "/a", 5, 0);
	assert_il(m, SYMBOL_RUNDOWN, 0x2001, 50, "/a", 6, 1);
	jit_methods_free(m);
}

/* What a look had no time for may have been there before it. */
static void a_look_that_was_not_whole_dates_nothing(void **state)
{
	char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nscan 100\nfound 1000 10 runtime-memory one\npartial\n"
		      "scan 200\nfound 2000 10 runtime-memory two\n"
		      "scan 300\nfound 3000 10 runtime-memory three\npartial\n"
		      "scan 400\nfound 4000 10 runtime-memory four\n"
		      "scan 500\nfound 5000 10 runtime-memory five\n";
	static const uint64_t from[] = {0, 0, 0x200, 0x200, 0x400};
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	(void)state;
	assert_int_equal(jit_methods_parse(text, strlen(text), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, i)->from_ns, from[i]);
		assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, i)->sure_ns, 0x100 * (i + 1));
	}
	jit_methods_free(m);
	char early[] = "profcpu-methods 1\npartial\nscan 100\n";

	m = new_methods();
	assert_int_equal(jit_methods_parse(early, strlen(early), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 1);
	jit_methods_free(m);
}

/* It is not looked at by each scan: the one that has its place now may have it since. */
static void what_was_not_seen_for_some_time_is_in_doubt(void **state)
{
	char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nscan 100\nfound 1000 10 runtime-memory one\nscan 200\nscan 300\n"
		      "scan 400\ndoubt 200 1000 runtime-memory\nlost 1000 runtime-memory\nfound 1000 10 runtime-memory two\n";
	char bad[] = "profcpu-methods 1\nscan 100\ndoubt 1 1000 runtime-memory\ndoubt x 1000 runtime-memory\ndoubt 1\n";
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;
	struct jit_methods_answer a;

	(void)state;
	assert_int_equal(jit_methods_parse(text, strlen(text), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_methods_finish(m), 0);
	jit_methods_at(m, SYMBOL_MEMORY, 0x1000, 0x350, &a);
	assert_memory_equal(a.method->name, "one", 3);
	assert_int_equal(a.method->doubt_ns, 0x200);
	jit_methods_at(m, SYMBOL_MEMORY, 0x1000, 0x400, &a);
	assert_memory_equal(a.method->name, "two", 3);
	assert_true(a.method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
	m = new_methods();
	assert_int_equal(jit_methods_parse(bad, strlen(bad), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 3);
	jit_methods_free(m);
}

static const char whole[] = "profcpu-methods 1\n"
			    "process 12 1 ab 10\n"
			    "way memory\n"
			    "scan 100\n"
			    "found 1000 100 runtime-memory one\n"
			    "\n"
			    "scan 200\n"
			    "found 2000 100 runtime-memory two\\x0a\n"
			    "lost 1000 runtime-memory\n"
			    "add 150 3000 10 rundown three\n"
			    "gone 180 3000 rundown\n";

static void any_beginning_of_a_file_is_of_use(void **state)
{
	size_t methods = 0;

	(void)state;
	for (size_t len = 0; len < sizeof(whole); len++) {
		struct jit_methods *m = new_methods();
		struct jit_methods_file file;
		char text[sizeof(whole)];
		size_t n;

		memcpy(text, whole, len);
		text[len] = '\0';
		assert_int_equal(jit_methods_parse(text, len, m, &file, NULL), 0);
		assert_int_equal(file.bad_lines, 0);
		assert_int_equal(file.cut, !len || whole[len - 1] != '\n');
		n = jit_methods_count(m, SYMBOL_MEMORY) + jit_methods_count(m, SYMBOL_RUNDOWN);
		assert_true(n >= methods);
		methods = n;
		assert_int_equal(jit_methods_finish(m), 0);
		jit_methods_free(m);
	}
	assert_int_equal(methods, 3);
}

static void the_last_program_s_words_are_kept(void **state)
{
	static const char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nruntime 9.0.1\nway perfmap\nwhy gone\\x0aaway\n";
	static const char exec[] = "process 12 1 cd 20\nruntime 10.0.12\nway memory\n";
	char both[sizeof(text) + sizeof(exec)];
	struct jit_methods_file file;
	struct jit_methods *m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(both, sizeof(both), "%s%s", text, i ? exec : "");
		m = new_methods();
		assert_int_equal(jit_methods_parse(both, strlen(both), m, &file, NULL), 0);
		assert_int_equal(file.bad_lines, 0);
		assert_string_equal(file.version, i ? "10.0.12" : "9.0.1");
		assert_string_equal(file.way, i ? "memory" : "perfmap");
		assert_string_equal(file.why, i ? "" : "gone\naway");
		jit_methods_free(m);
	}
}

/* A PID goes on as another program: what is found in that one is no code of the first. */
static void what_another_program_is_found_with_was_not_there_before(void **state)
{
	static const char text[] = "profcpu-methods 1\nprocess 12 1 ab 50\nscan 100\nfound 1000 10 runtime-memory a\n"
				   "process 12 1 ab 300\nscan 400\nfound 2000 10 runtime-memory b\n";
	struct jit_methods *m = finished(text);

	(void)state;
	assert_at(m, 0x1000, 0x20, "a", 0, 0x300);
	assert_at(m, 0x2000, 0x2ff, NULL, 0, 0x300);
	assert_at(m, 0x2000, 0x300, "b", 0x300, UINT64_MAX);
	jit_methods_free(m);
}

static void damaged_lines_are_counted(void **state)
{
	static const char *const bad[] = {
		"found 1000 100 runtime-memory", "found 1000 0 runtime-memory x", "found 1000 100000000 runtime-memory x",
		"found g 1 runtime-memory x", "found 1000 100 nobody x", "found 1000 100 runtime-memory x\\x00",
		"lost 999 runtime-memory", "gone 1 999 rundown", "add zz 1 1 rundown x", "scan", "process a b c d", "what",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct jit_methods *m = new_methods();
		struct jit_methods_file file;
		char text[256];

		snprintf(text, sizeof(text), "profcpu-methods 1\nscan 1\n%s\nfound 1 1 runtime-memory good\n", bad[i]);
		assert_int_equal(parse(text, m, &file), 0);
		/* A name may be empty. */
		assert_int_equal(file.bad_lines, i ? 1 : 0);
		assert_int_equal(jit_methods_count(m, SYMBOL_MEMORY), i ? 1 : 2);
		jit_methods_free(m);
	}
}

static void other_formats_are_refused(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	(void)state;
	assert_int_equal(parse("profcpu-symbols 1\n", m, &file), -EBADMSG);
	assert_int_equal(parse("x", m, &file), -EBADMSG);
	assert_int_equal(parse("profcpu-methods 2\n", m, &file), -ENOTSUP);
	jit_methods_free(m);
}

/* A writer to a file that had so many bytes, which are no lines. */
static struct jit_methods_writer *writer_behind(int dir_fd, uint64_t bytes, int *ret_fd)
{
	struct jit_methods_writer *w;
	char name[64];

	snprintf(name, sizeof(name), "%d.methods", getpid());
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(*ret_fd, (off_t)bytes), 0);
	assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), &w), 0);
	return w;
}

enum line { FOUND, LOST, ADD, GONE, SCAN, LINES };

static void write_line(struct jit_methods_writer *w, enum line line)
{
	const struct jit_method method = {.start = 0x1000, .bytes = 16, .source = SOURCE, .until_ns = 7, .name = "int T::M()", .len = 10};

	switch (line) {
	case FOUND:
		jit_methods_writer_found(w, &method);
		break;
	case LOST:
		jit_methods_writer_lost(w, SOURCE, 0x1000);
		break;
	case ADD:
		jit_methods_writer_add(w, &method);
		break;
	case GONE:
		jit_methods_writer_gone(w, SOURCE, 0x1000, 7);
		break;
	default:
		jit_methods_writer_scan(w, 7);
		break;
	}
}

/* More could not be read again, and with it all that is there. */
static void a_file_does_not_grow_beyond_what_is_read(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX", why[64 * 1024], end[8192];
	struct stat st;

	(void)state;
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY), fd;

	for (int line = 0; line < LINES; line++) {
		struct jit_methods_writer *w = writer_behind(dir_fd, JIT_METHODS_FILE_BYTES_MAX - 4096 - 4 * JIT_METHODS_WHY_BYTES, &fd);

		write_line(w, line);
		assert_int_equal(jit_methods_writer_flush(w), 0);
		for (int i = 0; i < 800; i++)
			write_line(w, line);
		assert_int_equal(jit_methods_writer_flush(w), -EFBIG);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(pread(fd, end, 1, st.st_size - 1), 1);
		assert_int_equal(end[0], '\n');
		jit_methods_writer_why(w, why);
		assert_int_equal(jit_methods_writer_close(w), -EFBIG);
		assert_int_equal(pread(fd, end, sizeof(end), st.st_size), 4 + JIT_METHODS_WHY_BYTES);
		assert_memory_equal(end, "why x", 5);
		assert_int_equal(end[3 + JIT_METHODS_WHY_BYTES], '\n');
		assert_int_equal(fstat(fd, &st), 0);
		assert_true((uint64_t)st.st_size <= JIT_METHODS_FILE_BYTES_MAX);
		close(fd);
		assert_int_equal(jit_methods_remove(dir_fd), 0);
	}
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

static void maps_leave_half_of_the_room_to_names(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX";
	const struct jit_il_module module = {.path = "/app/A.dll"};
	struct jit_il_point point = {0};
	struct stat st[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY), fd;
	struct jit_methods_writer *w = writer_behind(dir_fd, JIT_METHODS_FILE_BYTES_MAX / 2 - 4096, &fd);
	uint32_t number = jit_methods_writer_module(w, &module);

	assert_int_equal(number, 0);
	for (int i = 0; i < 1000; i++)
		jit_methods_writer_il(w, SOURCE, 0x1000, number, 1, &point, 1);
	assert_int_equal(jit_methods_writer_flush(w), 0);
	assert_int_equal(fstat(fd, &st[0]), 0);
	assert_true((uint64_t)st[0].st_size <= JIT_METHODS_FILE_BYTES_MAX / 2);
	assert_int_equal(jit_methods_writer_module(w, &module), JIT_METHODS_NO_MODULE);
	write_line(w, FOUND);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(fstat(fd, &st[1]), 0);
	assert_true(st[1].st_size > st[0].st_size);
	close(fd);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

static void modules_are_written_as_long_as_they_are_read(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX";
	struct jit_il_module module = {.path = "/app/A.dll"};
	struct jit_il_point point = {0};
	struct jit_methods_file file;
	struct jit_methods_writer *w;
	struct jit_methods *m = new_methods();

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), &w), 0);
	for (uint32_t i = 0; i < JIT_IL_MODULES_MAX; i++)
		assert_int_equal(jit_methods_writer_module(w, &module), i);
	assert_int_equal(jit_methods_writer_module(w, &module), JIT_METHODS_NO_MODULE);
	jit_methods_writer_il(w, SOURCE, 0x1000, JIT_METHODS_NO_MODULE, 1, &point, 1);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(jit_methods_read(dir_fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_il_modules(jit_methods_il(m)), JIT_IL_MODULES_MAX);
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_says_how_long_it_holds),
		cmocka_unit_test(what_comes_later_ends_what_it_overlaps_whole),
		cmocka_unit_test(code_found_between_two_looks_holds_from_the_first_of_them),
		cmocka_unit_test(of_two_of_one_look_the_later_holds_alone),
		cmocka_unit_test(what_an_end_tells_holds_before_what_takes_its_place),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(what_overlaps_beyond_measure_is_refused),
		cmocka_unit_test(what_is_told_of_refused_methods_is_not_taken),
		cmocka_unit_test(many_methods_answer_as_if_each_was_asked),
		cmocka_unit_test(a_set_of_numbers_knows_neighbours),
		cmocka_unit_test(what_is_written_is_read_again),
		cmocka_unit_test(the_file_says_which_il_code_comes_from),
		cmocka_unit_test(what_is_told_again_keeps_its_il),
		cmocka_unit_test(a_look_that_was_not_whole_dates_nothing),
		cmocka_unit_test(what_was_not_seen_for_some_time_is_in_doubt),
		cmocka_unit_test(any_beginning_of_a_file_is_of_use),
		cmocka_unit_test(the_last_program_s_words_are_kept),
		cmocka_unit_test(what_another_program_is_found_with_was_not_there_before),
		cmocka_unit_test(damaged_lines_are_counted),
		cmocka_unit_test(other_formats_are_refused),
		cmocka_unit_test(a_file_does_not_grow_beyond_what_is_read),
		cmocka_unit_test(maps_leave_half_of_the_room_to_names),
		cmocka_unit_test(modules_are_written_as_long_as_they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
