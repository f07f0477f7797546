/* counter_value, counter_output and counter_screen: values as text. */
#include "profcpu/counters/counter_output.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "profcpu/counters/counter_screen.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char dir[] = "/tmp/test_counter_output.XXXXXX";

static const struct nettrace_trace head = {
	.sync_ticks = 1000, .ticks_per_second = 1000, .utc = {2026, 11, 0, 29, 12, 30, 5, 250}};

static struct counter_value value_of(const char *name, double x)
{
	return (struct counter_value){.time_ns = NS_PER_S + 1234567,
				      .provider = "M",
				      .name = name,
				      .title = "",
				      .unit = "",
				      .tags = "",
				      .meter_tags = "",
				      .instrument_tags = "",
				      .value = x};
}

/* The file that these values give; free it. */
static char *written(enum counter_format format, const struct counter_value *v, size_t n)
{
	struct counter_output o = counter_output_new(format);
	char *data;
	size_t len;

	assert_int_equal(counter_output_begin(&o, "out", "app"), 0);
	o.clock = event_clock_of(&head);
	for (size_t i = 0; i < n; i++) {
		counter_output_value(&o, &v[i]);
		assert_int_equal(counter_output_flush(&o), 0);
	}
	assert_int_equal(counter_output_end(&o), 0);
	assert_int_equal(file_read_at(AT_FDCWD, "out", 1 << 20, &data, &len), 0);
	return data;
}

static void numbers_are_those_of_dotnet(void **state)
{
	static const struct {
		double x;
		const char *text;
	} numbers[] = {
		{0, "0"},
		{-0.0, "-0"},
		{1, "1"},
		{-12.25, "-12.25"},
		{0.1, "0.1"},
		{1.0 / 3, "0.3333333333333333"},
		{0.0001, "0.0001"},
		{0.00001, "1E-05"},
		{1.5e-7, "1.5E-07"},
		{100, "100"},
		{123456, "123456"},
		{1234.5, "1234.5"},
		{999999999999999, "999999999999999"},
		{1e15, "1E+15"},
		{123456789012345680, "1.2345678901234568E+17"},
		{1e100, "1E+100"},
		{NAN, "NaN"},
		{INFINITY, "Infinity"},
		{-INFINITY, "-Infinity"},
	};
	struct outbuf out = outbuf_to(-1);

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		out.len = 0;
		counter_put_number(&out, numbers[i].x);
		outbuf_char(&out, 0);
		assert_string_equal(out.data, numbers[i].text);
	}
	outbuf_close(&out);
}

static void csv_is_that_of_dotnet_counters(void **state)
{
	struct counter_value v[3] = {value_of("c", 7), value_of("h", 50), value_of("a,\"b\"", 1)};
	char *text;

	(void)state;
	v[0].is_rate = v[0].counts = true;
	v[0].interval_ms = 1000;
	v[0].unit = "{hit}";
	v[0].tags = "r=/a,s=b";
	v[0].meter_tags = "m=1";
	v[1].has_quantile = true;
	v[1].quantile = 0.95;
	v[1].instrument_tags = "i=2";
	v[2].title = "x,\"y\"\x1b]0;z";
	text = written(COUNTER_CSV, v, 3);
	assert_string_equal(text, "Timestamp,Provider,Counter Name,Counter Type,Mean/Increment\n"
				  "11/29/2026 12:30:05,M,c ({hit} / 1 sec)[m=1;r=/a;s=b],Rate,7\n"
				  "11/29/2026 12:30:05,M,h[i=2;Percentile=95],Metric,50\n"
				  "11/29/2026 12:30:05,M,\"x,\"\"y\"\"\\x1b]0;z\",Metric,1\n");
	free(text);
	text = written(COUNTER_LINES, v, 2);
	assert_string_equal(text, "2026-11-29T12:30:05 M 7 c ({hit} / 1 sec)[m=1,r=/a,s=b]\n"
				  "2026-11-29T12:30:05 M 50 h[i=2,Percentile=95]\n");
	free(text);
}

static void json_has_the_keys_of_dotnet_counters(void **state)
{
	struct counter_value v[2] = {value_of("c\n", 0.1), value_of("n", NAN)};
	char *text, *events;

	(void)state;
	v[0].tags = "r=\"/a\"";
	v[0].meter_tags = "m=1";
	v[0].instrument_tags = "i=2";
	text = written(COUNTER_JSON, v, 2);
	events = strstr(text, "\"Events\"");
	assert_ptr_equal(strstr(text, "{\n  \"TargetProcess\": \"app\",\n  \"StartTime\": \"20"),
			 text);
	assert_string_equal(
		events,
		"\"Events\": [\n    {\"timestamp\":\"2026-11-29T12:30:05.2512345+00:00\","
		"\"provider\":\"M\",\"name\":\"c\\u000a\",\"tags\":\"r=\\\"/a\\\"\","
		"\"counterType\":\"Metric\",\"meterTags\":\"m=1\",\"instrumentTags\":\"i=2\","
		"\"value\":0.1},\n    {\"timestamp\":\"2026-11-29T12:30:05.2512345+00:00\","
		"\"provider\":\"M\",\"name\":\"n\",\"tags\":\"\",\"counterType\":\"Metric\","
		"\"meterTags\":\"\",\"instrumentTags\":\"\",\"value\":\"NaN\"}\n  ]\n}\n");
	free(text);
	text = written(COUNTER_JSON, NULL, 0);
	events = strstr(text, "\"Events\"");
	assert_string_equal(events, "\"Events\": []\n}\n");
	free(text);
}

/* The file system takes 8 KiB. */
static void a_full_disk_leaves_whole_values(void **state)
{
	struct rlimit old, small = {.rlim_cur = 8192};
	struct counter_value v = value_of("c", 7);
	struct counter_output o;
	char *data;
	size_t len;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small.rlim_max = old.rlim_max;
	for (int format = COUNTER_LINES; format <= COUNTER_JSON; format++) {
		o = counter_output_new((enum counter_format)format);
		assert_int_equal(counter_output_begin(&o, "out", "app"), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
		int r = 0;

		for (int i = 0; i < 1000 && !r; i++) {
			counter_output_value(&o, &v);
			r = counter_output_flush(&o);
		}
		assert_int_equal(r, -EFBIG);
		assert_int_equal(counter_output_end(&o), -EFBIG);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
		assert_int_equal(file_read_at(AT_FDCWD, "out", 1 << 20, &data, &len), 0);
		assert_in_range(len, 7000, 8192);
		assert_int_equal(data[len - 1], '\n');
		if (format == COUNTER_JSON) {
			struct json j = json_of(data, len);

			assert_int_equal(json_skip(&j), 0);
			assert_int_equal(json_end(&j), 0);
		}
		free(data);
	}
}

/* Lines of the table, without the codes of the terminal and the blanks at their ends. */
static const char *table(struct counter_screen *s, int lines, int columns)
{
	static char text[8192];
	struct outbuf out = outbuf_to(-1);
	size_t len = 0;

	counter_screen_put(s, &out, lines, columns);
	for (size_t i = 0; i < out.len; i++) {
		if (out.data[i] == '\033') {
			i += 2;
			continue;
		}
		while (out.data[i] == '\n' && len && text[len - 1] == ' ')
			len--;
		text[len++] = out.data[i];
	}
	text[len] = 0;
	outbuf_close(&out);
	return text;
}

static void tables_are_sorted_and_fit_the_terminal(void **state)
{
	struct counter_screen s = counter_screen_to(-1, "head");
	struct counter_value v[4] = {value_of("z", 1234567.125), value_of("a", 1),
				     value_of("a", -2), value_of("\033[2Jm", 3)};
	const char *text;
	char row[64];

	(void)state;
	assert_string_equal(table(&s, 10, 60), "head\nno value yet\n");
	v[1].tags = "k=2";
	v[2].tags = "k=1";
	v[3].provider = "A";
	for (int i = 0; i < 4; i++)
		counter_screen_value(&s, &v[i]);
	counter_screen_note(&s, "note");
	text = table(&s, 20, 60);
	assert_string_equal(text, "head\n"
				  "note\n"
				  "\n"
				  "Name                                                  Value\n"
				  "[A]\n"
				  "    \\x1b[2Jm                                              3\n"
				  "[M]\n"
				  "    a\n"
				  "        k=1                                              -2\n"
				  "        k=2                                               1\n"
				  "    z                                         1,234,567.125\n");
	v[0].value += 2;
	counter_screen_value(&s, &v[0]);
	counter_screen_ended(&s, &v[1]);
	text = table(&s, 20, 80);
	assert_non_null(strstr(text, "1,234,569.125                  2\n"));
	assert_null(strstr(text, "k=2"));
	/* A value after the end has no change. */
	counter_screen_value(&s, &v[1]);
	text = table(&s, 20, 80);
	snprintf(row, sizeof(row), "\n        %-33s%19s\n", "k=2", "1");
	assert_non_null(strstr(text, row));
	text = table(&s, 9, 60);
	assert_non_null(strstr(text, "\n(3 more values)\n"));
	for (int lines = 1; lines < 20; lines++)
		for (int columns = 1; columns < 90; columns += 11) {
			int n = 0;

			for (text = table(&s, lines, columns); *text; text++)
				n += *text == '\n';
			assert_true(n < lines);
		}
	assert_int_equal(counter_screen_close(&s), 0);
}

static void numbers_are_readable(void **state)
{
	static const struct {
		double x;
		const char *text;
	} numbers[] = {
		{0, "0"},
		{0.25, "0.25"},
		{-1000, "-1,000"},
		{999.9996, "1,000"},
		{1234567890.5, "1,234,567,890"},
		{1e13, "1e+13"},
		{1e-7, "1e-07"},
		{NAN, "nan"},
	};
	struct outbuf out = outbuf_to(-1);

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		out.len = 0;
		counter_put_readable(&out, numbers[i].x);
		outbuf_char(&out, 0);
		assert_string_equal(out.data, numbers[i].text);
	}
	outbuf_close(&out);
}

static int set_up(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	return mkdtemp(dir) && !chdir(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	unlink("out");
	return chdir("/") || rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_those_of_dotnet),
		cmocka_unit_test(csv_is_that_of_dotnet_counters),
		cmocka_unit_test(json_has_the_keys_of_dotnet_counters),
		cmocka_unit_test(a_full_disk_leaves_whole_values),
		cmocka_unit_test(tables_are_sorted_and_fit_the_terminal),
		cmocka_unit_test(numbers_are_readable),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
