#include "profile/script_line.h"
#include "profile/script_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *text_of(struct script_part p)
{
	static char bufs[4][256];
	static int next;
	char *buf = bufs[next++ % 4];

	assert_true(p.len < sizeof(bufs[0]));
	memcpy(buf, p.at, p.len);
	buf[p.len] = '\0';
	return buf;
}

/* "comm|pid|tid", or "-" if the line is no header. */
static const char *header_of(const char *line)
{
	static char buf[600];
	struct script_header h;

	if (!script_line_header(line, strlen(line), &h))
		return "-";
	snprintf(buf, sizeof(buf), "%s|%s|%s", text_of(h.comm), text_of(h.pid), text_of(h.tid));
	return buf;
}

static void the_first_numbers_between_white_space_are_the_ids(void **state)
{
	(void)state;
	assert_string_equal(header_of("bash 12/34 [000] 1.5: 10 cycles: "), "bash|12|34");
	assert_string_equal(header_of("bash     12 1.5: cycles:"), "bash|?|12");
	assert_string_equal(header_of("Thread 1 12/34 [000]"), "Thread|?|1");
	assert_string_equal(header_of("V8 Worker 12/34 x"), "V8 Worker|12|34");
	assert_string_equal(header_of("swapper 0/0 x"), "swapper|?|0");
	assert_string_equal(header_of("odd 12/0 x"), "odd|?|12");
	assert_string_equal(header_of("odd 12/00 x"), "odd|12|00");
	assert_string_equal(header_of("odd 12//34 x"), "odd|12|34");
	assert_string_equal(header_of("odd 12/ x"), "odd|?|12");
	assert_string_equal(header_of("odd /12 3 x"), "odd /12|?|3");
	assert_string_equal(header_of("gone -1/-1 1.5: 100 cycles:"), "gone -1/-1 1.5:|?|100");
}

static void names_of_one_byte_take_a_space_or_more(void **state)
{
	(void)state;
	assert_string_equal(header_of("a  12/34 x"), "a |12|34");
	assert_string_equal(header_of("a 12/34 [0] 1.5: 10 cycles:"), "a 12/34 [0] 1.5:|?|10");
	/* perf's "%s %5d": a number that fills its column leaves exactly one space after the
	 * name. */
	assert_string_equal(header_of("a  1234  1.5: 10 cycles:"), "a |?|1234");
	assert_string_equal(header_of("a 12345  1.5: 10 cycles:"), "a 12345  1.5:|?|10");
	/* From perf 6.5 on "%7d". */
	assert_string_equal(header_of("a  123456  1.5: 10 cycles:"), "a |?|123456");
	assert_string_equal(header_of("a 1234567  1.5: 10 cycles:"), "a 1234567  1.5:|?|10");
}

static void headers_have_ids_and_no_leading_blank(void **state)
{
	(void)state;
	assert_string_equal(header_of(""), "-");
	assert_string_equal(header_of("x"), "-");
	assert_string_equal(header_of(" bash 12/34 x"), "-");
	assert_string_equal(header_of("bash 12/34"), "-");
	assert_string_equal(header_of("bash [12] 1.5: cycles:"), "-");
	assert_string_equal(header_of("bash          "), "-");
}

static const char *event_of(const char *line)
{
	static char buf[600];
	struct script_event e;

	if (!script_line_event(line, strlen(line), &e))
		return "-";
	snprintf(buf, sizeof(buf), "%s|%s", text_of(e.name), text_of(e.period));
	return buf;
}

static void an_event_stands_at_the_end_after_a_colon(void **state)
{
	(void)state;
	assert_string_equal(event_of("x 1 1.5: 10 cycles: "), "cycles|10");
	assert_string_equal(event_of("x 1 1.5: cycles:\t\r"), "cycles|");
	assert_string_equal(event_of("x 1 1.5:10 cycles:u:"), "cycles:u|10");
	assert_string_equal(event_of(": e:"), "e|");
	assert_string_equal(event_of("x 1 cycles:"), "-");
	assert_string_equal(event_of("x 1 1.5: sched:sched_switch: prev_comm=x"), "-");
	assert_string_equal(event_of("x 1 1.5: 3 my event:"), "-");
	assert_string_equal(event_of("x 1 1.5: 10:"), "10|");
	assert_string_equal(event_of("x 1 1.5: :"), "-");
	assert_string_equal(event_of(""), "-");
}

static void a_missing_or_single_zero_period_counts_one(void **state)
{
	(void)state;
	assert_int_equal(script_line_weight((struct script_part){"", 0}), 1);
	assert_int_equal(script_line_weight((struct script_part){"0", 1}), 1);
	assert_int_equal(script_line_weight((struct script_part){"00", 2}), 0);
	assert_int_equal(script_line_weight((struct script_part){"1001001", 7}), 1001001);
	assert_true(script_line_weight((struct script_part){"18446744073709551615", 20}) ==
		    UINT64_MAX);
	assert_true(script_line_weight((struct script_part){"99999999999999999999", 20}) ==
		    UINT64_MAX);
}

static const char *frame_of(const char *line)
{
	static char buf[800];
	struct script_frame f;

	if (!script_line_frame(line, strlen(line), &f))
		return "-";
	snprintf(buf, sizeof(buf), "%s|%s|%s", text_of(f.addr), text_of(f.symbol),
		 text_of(f.module));
	return buf;
}

static void the_last_parentheses_are_the_module(void **state)
{
	(void)state;
	assert_string_equal(frame_of("\t  7f12 main+0x1 (/bin/x)"), "7f12|main+0x1|/bin/x");
	assert_string_equal(frame_of("7f12 f(int) (/bin/x) tail"), "7f12|f(int)|/bin/x");
	assert_string_equal(frame_of("\t7f12 f (a) (/bin/x)"), "7f12|f (a)|/bin/x");
	assert_string_equal(frame_of("\t7f12 f+0x1 (/bin/x (deleted))"),
			    "7f12|f+0x1 (/bin/x|deleted)");
	assert_string_equal(frame_of("\t7f12 f ()"), "7f12|f|");
	assert_string_equal(frame_of("\t7f12 f (x"), "-");
	assert_string_equal(frame_of("\t[7f12] f (x)"), "-");
	assert_string_equal(frame_of(" (x)"), "-");
	assert_string_equal(frame_of(""), "-");
}

static void a_missing_symbol_is_looked_up_one_byte_before(void **state)
{
	(void)state;
	assert_string_equal(frame_of("\t7f12 (/bin/x)"), "7f1|2|/bin/x");
	assert_string_equal(frame_of("\t7f12  (/bin/x)"), "7f12| |/bin/x");
	assert_string_equal(frame_of("\t7 (/bin/x)"), "-");
}

struct name_case {
	const char *line, *names;
	struct script_name_options options;
	size_t n;
};

static void check_names(const struct name_case *c, const char *sources)
{
	struct outbuf out = outbuf_to(-1);
	struct script_part given = {sources, sources ? strlen(sources) : 0};
	struct script_frame f;

	assert_true(script_line_frame(c->line, strlen(c->line), &f));
	assert_int_equal(script_names(&f, &c->options, given, &out), c->n);
	outbuf_char(&out, '\0');
	assert_int_equal(out.error, 0);
	assert_string_equal(out.data, c->names);
	outbuf_close(&out);
}

static void names_come_out_as_the_script_spells_them(void **state)
{
	static const struct name_case cases[] = {
		{"1 f+0x1f (/x)", "f", {0}, 1},
		{"1 f+0x1+0x2 (/x)", "f+0x1", {0}, 1},
		{"1 f(int)+0x1 (/x)", "f", {0}, 1},
		{"1 (anonymous namespace)::f(int) (/x)", "", {0}, 0},
		{"1 a::(anonymous namespace)::f(int) (/x)", "a::(anonymous namespace)::f", {0}, 1},
		{"1 http.(*C).Do+0x2 (/x)", "http.(*C).Do", {0}, 1},
		{"1 operator-> (/x)", "operator", {0}, 1},
		{"1 a->b->c (/x)", "a;b_[i];c_[i]", {0}, 3},
		{"1 ->b (/x)", ";b_[i]", {0}, 2},
		{"1 -> (/x)", "", {0}, 0},
		{"1 a->b_[i] (/x)", "a;b_[i]", {0}, 2},
		{"1 (proc) (/x)", "", {0}, 0},
		{"1 q\"u';o (/x)", "qu:o", {0}, 1},
		{"1 [unknown] (/a/b.so)", "[b.so]", {0}, 1},
		{"1 [unknown] ([unknown])", "[unknown]", {0}, 1},
		{"7f [unknown] (/a/b.so)", "[b.so <7f>]", {.addrs = true}, 1},
		{"7f [unknown] ([unknown])", "[unknown <7f>]", {.addrs = true}, 1},
		{"1 La/b;.c (/x)", "La/b:.c", {0}, 1},
		{"1 La/b;.c (/x)", "a/b:.c", {.java = true}, 1},
		{"1 Lab:c (/x)", "Lab:c", {.java = true}, 1},
		{"1 f ([nf])", "f_[k]", {.kernel = true}, 1},
		{"1 f ([a unknown])", "f", {.kernel = true}, 1},
		{"1 f (/b/vmlinux)", "f_[k]", {.kernel = true}, 1},
		{"1 f (/b/vmlinux.old)", "f", {.kernel = true}, 1},
		{"1 f (/tmp/perf-1.map)", "f_[j]", {.jit = true}, 1},
		{"1 f (/tmp/perf-.map)", "f", {.jit = true}, 1},
		{"1 f_[j] (/tmp/perf-1.map)", "f_[j]", {.jit = true}, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		check_names(&cases[i], NULL);
}

static void source_lines_belong_to_one_name_each(void **state)
{
	static const struct name_case
		two = {"1 a->b (/x)", "a:x.c:1;b_[i]:y.c:2", {.srcline = true}, 2},
		none = {"1 a->b (/x)", "a;b_[i]:y.c:2", {.srcline = true}, 2},
		brackets = {"1 a (/x)", "a:lib.so", {.srcline = true}, 1},
		lost = {"1 [unknown] ([unknown])", "[unknown]", {.srcline = true}, 1};
	struct script_frame f;

	(void)state;
	check_names(&two, "  x.c:1\ny.c:2 ");
	check_names(&none, "\ny.c:2");
	check_names(&brackets, "  lib.so[27b25] ");
	check_names(&lost, "x.c:1");
	assert_true(script_line_frame("1 a->b (/x)", 11, &f));
	assert_int_equal(script_names_source_count(&f), 2);
	assert_true(script_line_frame(lost.line, strlen(lost.line), &f));
	assert_int_equal(script_names_source_count(&f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_numbers_between_white_space_are_the_ids),
		cmocka_unit_test(names_of_one_byte_take_a_space_or_more),
		cmocka_unit_test(headers_have_ids_and_no_leading_blank),
		cmocka_unit_test(an_event_stands_at_the_end_after_a_colon),
		cmocka_unit_test(a_missing_or_single_zero_period_counts_one),
		cmocka_unit_test(the_last_parentheses_are_the_module),
		cmocka_unit_test(a_missing_symbol_is_looked_up_one_byte_before),
		cmocka_unit_test(names_come_out_as_the_script_spells_them),
		cmocka_unit_test(source_lines_belong_to_one_name_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
