#include "symbols/jit/perfmap.h"
#include "base/ranges.h"
#include "container/holes.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static struct perfmap_stats stats;
static bool no_answer;

__typeof__(holes_next_data) __real_holes_next_data, __wrap_holes_next_data;
__typeof__(holes_data_bytes) __real_holes_data_bytes, __wrap_holes_data_bytes;

uint64_t __wrap_holes_next_data(int fd, uint64_t at)
{
	return no_answer ? UINT64_MAX : __real_holes_next_data(fd, at);
}

uint64_t __wrap_holes_data_bytes(int fd, uint64_t bytes)
{
	return no_answer ? 0 : __real_holes_data_bytes(fd, bytes);
}

static struct symbol_provider *parse(const char *text, size_t len)
{
	struct symbol_provider *map = NULL;

	assert_int_equal(perfmap_parse(text, len, &map, &stats, NULL), 0);
	return map;
}

static void assert_name(struct symbol_provider *map, uint64_t addr, const char *expected)
{
	struct symbol s;
	int error = symbol_provider_find(map, addr, 0, &s);

	if (!expected) {
		assert_int_equal(error, -ENOENT);
		return;
	}
	assert_int_equal(error, 0);
	assert_string_equal(s.name, expected);
	assert_int_equal(s.name_len, strlen(expected));
	assert_int_equal(s.source, SYMBOL_PERFMAP);
	assert_true(s.start <= addr && addr < s.end && s.base <= s.start);
	assert_int_equal(s.from_ns, 0);
	assert_true(s.until_ns == UINT64_MAX);
}

static void lines_of_all_usual_spellings_are_read(void **state)
{
	static const char text[] = "1000 10 plain\n"
				   "0x2000 0x20 with 0x [and] spaces\n"
				   "00000000003000 0A leading zeros\r\n"
				   "4000  8 \t blanks\n"
				   "ABCDEF0 1 upper case\n"
				   "5000 0 no size\n"
				   "fffffffffffffff0 f last bytes\n";
	struct symbol_provider *map = parse(text, sizeof(text) - 1);

	(void)state;
	assert_name(map, 0xfff, NULL);
	assert_name(map, 0x1000, "plain");
	assert_name(map, 0x100f, "plain");
	assert_name(map, 0x1010, NULL);
	assert_name(map, 0x201f, "with 0x [and] spaces");
	assert_name(map, 0x3009, "leading zeros");
	assert_name(map, 0x4000, "blanks");
	assert_name(map, 0xabcdef0, "upper case");
	assert_name(map, 0x5000, "no size");
	assert_name(map, 0x5001, NULL);
	assert_name(map, 0xfffffffffffffffeULL, "last bytes");
	assert_name(map, UINT64_MAX, NULL);
	assert_int_equal(stats.lines, 7);
	assert_int_equal(stats.bad_lines, 0);
	symbol_provider_free(map);
}

static void bad_lines_are_counted_and_the_rest_is_used(void **state)
{
	static const char text[] = "\n"
				   "hello world\n"
				   "1000\n"
				   "1000 10\n"
				   "1000 10 \n"
				   "1000 zz name\n"
				   "11112222333344445 10 start over 64 bits\n"
				   "1000 100000000 size over 32 bits\n"
				   "fffffffffffffff0 11 end over 2^64\n"
				   "0x 10 no digits\n"
				   "1000-10 name\n"
				   "2000 10 good\n"
				   "3000 10 cut while it was writ";
	struct symbol_provider *map = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(stats.lines, 13);
	assert_int_equal(stats.bad_lines, 12);
	assert_name(map, 0x1000, NULL);
	assert_name(map, 0x2000, "good");
	assert_name(map, 0x3000, NULL);
	symbol_provider_free(map);
}

/* Output of .NET 10.0 for a name that is not ASCII: garbage, the name without its end and newline,
 * and the next line. */
static void the_line_after_a_damaged_one_is_read(void **state)
{
	static const char text[] =
		"0x1000 10 good\n"
		"\xe0\x76\x1c J+\x7f R\x02"
		"b void [N] \xc3\x84.T::F(int32)[Quic\xe0\x7e J+ R4 void [N] \xc3\x84.T::G()[Qui"
		"0x2000 20 void [N] T::H(System.A /* MT: 0x7fdd135cff80 */)[QuickJitted]\n"
		"0x3000 10 last\n";
	struct symbol_provider *map = parse(text, sizeof(text) - 1);

	(void)state;
	assert_int_equal(stats.bad_lines, 1);
	assert_name(map, 0x1000, "good");
	assert_name(map, 0x2000, "void [N] T::H(System.A /* MT: 0x7fdd135cff80 */)[QuickJitted]");
	assert_name(map, 0x3000, "last");
	symbol_provider_free(map);
}

static void later_lines_win_and_earlier_ones_keep_the_rest(void **state)
{
	static const char text[] = "1000 100 a\n"
				   "1040 20 b\n" /* inside a */
				   "10f0 20 c\n" /* over a's end */
				   "f00 110 d\n" /* over a's start */
				   "2000 10 e\n"
				   "2000 10 f\n" /* rewritten */
				   "3000 10 g\n"
				   "2ff0 30 h\n" /* covered completely */
				   "5000 10 i\n"
				   "5000 20 j\n"
				   "5000 8 k\n";
	struct symbol_provider *map = parse(text, sizeof(text) - 1);
	struct symbol s;

	(void)state;
	assert_name(map, 0xf00, "d");
	assert_name(map, 0x100f, "d");
	assert_name(map, 0x1010, "a");
	assert_name(map, 0x103f, "a");
	assert_name(map, 0x1040, "b");
	assert_name(map, 0x105f, "b");
	assert_name(map, 0x1060, "a");
	assert_name(map, 0x10ef, "a");
	assert_name(map, 0x10f0, "c");
	assert_name(map, 0x110f, "c");
	assert_name(map, 0x1110, NULL);
	assert_name(map, 0x2008, "f");
	assert_name(map, 0x3008, "h");
	assert_name(map, 0x5007, "k");
	assert_name(map, 0x5008, "j");
	assert_name(map, 0x501f, "j");
	assert_int_equal(stats.overwritten, 3);
	assert_int_equal(symbol_provider_find(map, 0x1070, 0, &s), 0);
	assert_int_equal(s.start, 0x1060);
	assert_int_equal(s.end, 0x10f0);
	assert_int_equal(s.base, 0x1000);
	symbol_provider_free(map);
}

static void binary_noise_is_refused(void **state)
{
	struct symbol_provider *map = NULL;
	struct parse_error err = {0};
	char noise[100000];
	uint32_t x = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
	assert_int_equal(perfmap_parse(noise, sizeof(noise), &map, &stats, &err), -EBADMSG);
	assert_int_equal(err.code, -EBADMSG);
	assert_int_equal(stats.bad_lines, stats.lines);
	assert_int_equal(perfmap_parse("", 0, &map, &stats, NULL), -EBADMSG);
	assert_null(map);
}

static void a_name_ends_at_a_nul_byte(void **state)
{
	static const char text[] = "1000 10 abc\0def\n2000 10 \0\n3000 10 x\n";
	struct symbol_provider *map = parse(text, sizeof(text) - 1);

	(void)state;
	assert_name(map, 0x1000, "abc");
	assert_name(map, 0x2000, NULL);
	assert_name(map, 0x3000, "x");
	assert_int_equal(stats.bad_lines, 1);
	symbol_provider_free(map);
}

static void monstrous_lines_are_skipped(void **state)
{
	size_t len = (size_t)1 << 20;
	char *text = malloc(len + 64);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', len);
	memcpy(text, "1000 10 ", 8);
	int n = snprintf(text + len, 64, "\n2000 10 after it\n");
	struct symbol_provider *map = parse(text, len + (size_t)n);

	assert_name(map, 0x1000, NULL);
	assert_name(map, 0x2000, "after it");
	assert_int_equal(stats.bad_lines, 1);
	symbol_provider_free(map);
	/* The maximum length. */
	memset(text, 'x', len);
	memcpy(text, "1000 10 ", 8);
	text[PERFMAP_LINE_MAX] = '\n';
	struct symbol s;

	map = parse(text, PERFMAP_LINE_MAX + 1);
	assert_int_equal(symbol_provider_find(map, 0x1000, 0, &s), 0);
	assert_int_equal(s.name_len, PERFMAP_LINE_MAX - 8);
	symbol_provider_free(map);
	free(text);
}

static void a_file_is_read_up_to_its_size_at_the_start(void **state)
{
	char path[] = "/tmp/test_perfmap.XXXXXX";
	int fd = mkstemp(path), pipes[2];
	struct symbol_provider *map = NULL;

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), -EBADMSG);
	for (int i = 0; i < 100000; i++)
		dprintf(fd, "%x 10 method %d\n", 0x1000 + i * 16, i);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), 0);
	assert_int_equal(stats.lines, 100000);
	assert_name(map, 0x1000 + 77777 * 16 + 5, "method 77777");
	symbol_provider_free(map);
	close(fd);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), -EBADF);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(perfmap_load(pipes[0], UINT64_MAX, &map, &stats, NULL), -EBADMSG);
	close(pipes[0]);
	close(pipes[1]);
}

/* A hole costs its maker nothing. Lines behind it are read: a map that was truncated while it was
 * written has one. */
static void holes_of_a_file_are_not_kept(void **state)
{
	static const char before[] = "1000 10 before\n3000 10 cut",
			  after[] = "\n2000 10 after\n4000 10 last\n";
	const off_t hole = (off_t)512 << 20;
	char path[] = "/tmp/test_perfmap.XXXXXX";
	int fd = mkstemp(path);
	struct symbol_provider *map = NULL;
	struct rusage usage[2];

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(pwrite(fd, before, strlen(before), 0), strlen(before));
	assert_int_equal(pwrite(fd, after, strlen(after), hole + 12345), strlen(after));
	getrusage(RUSAGE_SELF, &usage[0]);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), 0);
	getrusage(RUSAGE_SELF, &usage[1]);
	assert_true(usage[1].ru_maxrss - usage[0].ru_maxrss < hole / 1024 / 2);
	assert_name(map, 0x1000, "before");
	assert_name(map, 0x3000, NULL);
	assert_name(map, 0x2000, "after");
	assert_name(map, 0x4000, "last");
	assert_int_equal(stats.lines, 4);
	assert_int_equal(stats.bad_lines, 1);
	symbol_provider_free(map);
	/* Holes at the end are accepted too. */
	assert_int_equal(ftruncate(fd, hole), 0);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), 0);
	assert_name(map, 0x1000, "before");
	assert_int_equal(stats.bad_lines, 1);
	symbol_provider_free(map);
	close(fd);
}

/* The newest lines are at the end. */
static void a_large_map_without_an_answer_about_holes_is_read_from_its_end(void **state)
{
	int fd = memfd_create("perfmap", MFD_CLOEXEC);
	struct symbol_provider *map = NULL;

	(void)state;
	for (int i = 1; i <= 1000; i++)
		assert_true(dprintf(fd, "%x 10 method %d\n", i << 8, i) > 0);
	no_answer = true;
	assert_int_equal(perfmap_load(fd, (uint64_t)16 << 10, &map, &stats, NULL), 0);
	no_answer = false;
	assert_name(map, 1000 << 8, "method 1000");
	assert_name(map, 1 << 8, NULL);
	symbol_provider_free(map);
	close(fd);
}

/* As for a file that its writer keeps locked. */
static void text_after_holes_that_are_not_found_is_counted(void **state)
{
	static const char before[] = "1000 10 before\n", after[] = "\n2000 10 after\n";
	const off_t hole = (off_t)8 << 20;
	int fd = memfd_create("perfmap", MFD_CLOEXEC);
	struct symbol_provider *map = NULL;

	(void)state;
	assert_int_equal(pwrite(fd, before, strlen(before), 0), strlen(before));
	assert_int_equal(pwrite(fd, after, strlen(after), hole), strlen(after));
	no_answer = true;
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), 0);
	no_answer = false;
	assert_name(map, 0x1000, "before");
	assert_name(map, 0x2000, NULL);
	assert_true(stats.no_answer);
	assert_in_range(stats.cut_bytes, strlen(after), hole);
	symbol_provider_free(map);
	assert_int_equal(perfmap_load(fd, UINT64_MAX, &map, &stats, NULL), 0);
	assert_name(map, 0x2000, "after");
	assert_false(stats.no_answer);
	assert_int_equal(stats.cut_bytes, 0);
	symbol_provider_free(map);
	close(fd);
}

/* Reads a file with a limit of memory. The result stays within it. */
static struct symbol_provider *load_within(int fd, uint64_t memory)
{
	struct symbol_provider *map = NULL;

	assert_int_equal(perfmap_load(fd, memory, &map, &stats, NULL), 0);
	assert_true(stats.memory_bytes <= memory);
	return map;
}

/* Newer lines win, so a part of them is right, and a part of the older ones is not. */
static void with_little_memory_the_end_of_a_file_is_read(void **state)
{
	enum { LINES = 100000, BYTES = 32 };
	char path[] = "/tmp/test_perfmap.XXXXXX";
	int fd = mkstemp(path);
	struct symbol_provider *map = NULL;
	static char text[LINES * BYTES + 1];

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	for (int i = 0; i < LINES; i++)
		snprintf(text + i * BYTES, BYTES + 1, "%08x 10 method %012d\n", 0x1000 + i * 16, i);
	assert_int_equal(write(fd, text, LINES * BYTES), LINES * BYTES);
	map = load_within(fd, LINES * (uint64_t)(BYTES + PERFMAP_LINE_MEMORY) * 2);
	assert_int_equal(stats.lines, LINES);
	assert_int_equal(stats.cut_bytes, 0);
	symbol_provider_free(map);
	/* Half of the memory is for what lines take besides their text. */
	map = load_within(fd, 1000 * 2 * PERFMAP_LINE_MEMORY);
	assert_int_equal(stats.lines, 1000);
	assert_int_equal(stats.bad_lines, 0);
	assert_int_equal(stats.cut_bytes, (LINES - 1000) * BYTES);
	assert_name(map, 0x1000 + (LINES - 1) * 16, "method 000000099999");
	assert_name(map, 0x1000 + (LINES - 1000) * 16, "method 000000099000");
	assert_name(map, 0x1000 + (LINES - 1001) * 16, NULL);
	symbol_provider_free(map);
	/* Half of it is for the text: the last of these lines are long. */
	memset(text, 'x', 3000 * BYTES);
	text[3000 * BYTES] = 0;
	for (int i = 0; i < 3; i++)
		dprintf(fd, "%x 10 long%.*s\n", 0x9000000 + i * 16, 60000, text);
	map = load_within(fd, 2 * 100000);
	assert_int_equal(stats.lines, 1);
	assert_int_equal(symbol_provider_find(map, 0x9000020, 0, &(struct symbol){0}), 0);
	symbol_provider_free(map);
	assert_int_equal(perfmap_load(fd, 100000, &map, &stats, NULL), -EBADMSG);
	assert_int_equal(perfmap_load(fd, 0, &map, &stats, NULL), -EBADMSG);
	close(fd);
}

/* Reference model: paint each address in the order in which ranges were written. */
static void cutting_equals_painting(void **state)
{
	enum { SPACE = 400, RANGES = 120 };
	uint32_t x = 12345;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct range ranges[RANGES];
		int painted[SPACE], seen[RANGES] = {0};
		size_t n = (size_t)round % RANGES + 1, covered = 0;
		struct range_pieces p;

		memset(painted, -1, sizeof(painted));
		for (size_t i = 0; i < n; i++) {
			x = x * 1664525 + 1013904223;
			ranges[i].start = (x >> 8) % (SPACE - 64);
			ranges[i].bytes = (x >> 20) % (round % 2 ? 60 : 4) + 1;
			for (uint32_t k = 0; k < ranges[i].bytes; k++)
				painted[ranges[i].start + k] = (int)i;
		}
		assert_int_equal(ranges_split(ranges, n, &p), 0);
		for (int a = 0; a < SPACE; a++) {
			const struct range_piece *piece = ranges_find(&p, (uint64_t)a);

			assert_int_equal(piece ? (int)piece->id : -1, painted[a]);
			if (piece)
				seen[piece->id] = 1;
		}
		for (size_t i = 0; i < n; i++)
			covered += !seen[i];
		assert_int_equal(p.covered, covered);
		ranges_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_all_usual_spellings_are_read),
		cmocka_unit_test(bad_lines_are_counted_and_the_rest_is_used),
		cmocka_unit_test(the_line_after_a_damaged_one_is_read),
		cmocka_unit_test(later_lines_win_and_earlier_ones_keep_the_rest),
		cmocka_unit_test(binary_noise_is_refused),
		cmocka_unit_test(a_name_ends_at_a_nul_byte),
		cmocka_unit_test(monstrous_lines_are_skipped),
		cmocka_unit_test(a_file_is_read_up_to_its_size_at_the_start),
		cmocka_unit_test(holes_of_a_file_are_not_kept),
		cmocka_unit_test(a_large_map_without_an_answer_about_holes_is_read_from_its_end),
		cmocka_unit_test(text_after_holes_that_are_not_found_is_counted),
		cmocka_unit_test(with_little_memory_the_end_of_a_file_is_read),
		cmocka_unit_test(cutting_equals_painting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
