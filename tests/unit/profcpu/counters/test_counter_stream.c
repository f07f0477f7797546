/* counter_event and counter_stream: values from the events of runtimes. */
#include "profcpu/counters/counter_stream.h"

#include "base/clock.h"
#include "tests/unit/counter_events.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct counter_list list;
static struct counter_stream *stream;
static struct ce_description kinds[CE_KINDS];
static struct outbuf seen; /* what came out, since the last expect() */
static uint64_t now_ns;

static void take_value(void *ctx, const struct counter_value *v)
{
	(void)ctx;
	outbuf_printf(&seen, "%s ", v->provider);
	counter_put_title(&seen, v);
	outbuf_char(&seen, '[');
	counter_put_all_tags(&seen, v);
	outbuf_str(&seen, v->is_rate ? "] rate " : "] ");
	counter_put_number(&seen, v->value);
	outbuf_char(&seen, '\n');
}

static void take_ended(void *ctx, const struct counter_value *v)
{
	(void)ctx;
	outbuf_printf(&seen, "%s %s ended\n", v->provider, v->name);
}

static void take_problem(void *ctx, const struct counter_event *e)
{
	(void)ctx;
	outbuf_printf(&seen, "problem %d %s%s%s%s\n", e->type, e->text[COUNTER_MESSAGE],
		      e->text[COUNTER_MAX_HISTOGRAMS], e->text[COUNTER_MAX_SERIES],
		      e->text[COUNTER_INTERVAL]);
}

static void begin(const char *counters, bool totals)
{
	const struct counter_stream_sink sink = {
		.value = take_value, .ended = take_ended, .problem = take_problem};
	const struct counter_stream_options options = {.list = &list,
						       .session = "SHARED",
						       .client = "me",
						       .interval_ms = 1000,
						       .totals = totals};

	counter_stream_free(stream);
	counter_list_free(&list);
	list = (struct counter_list){0};
	seen.len = 0;
	now_ns = 5 * NS_PER_S;
	assert_int_equal(counter_list_add(&list, counters), 0);
	assert_int_equal(counter_stream_new(&options, &sink, &stream), 0);
}

static void expect(const char *text)
{
	outbuf_char(&seen, 0);
	assert_string_equal(seen.data, text);
	seen.len = 0;
}

/* Takes an event with this payload, which it frees. */
static void take(enum ce_kind kind, struct outbuf *payload)
{
	/* An exact allocation makes a read past the end visible. */
	void *copy = malloc(payload->len ? payload->len : 1);
	struct nettrace_event e = {.kind = &kinds[kind].kind, .time_ns = now_ns};

	assert_non_null(copy);
	memcpy(copy, payload->data, payload->len);
	e.blob.payload = copy;
	e.blob.payload_len = (uint32_t)payload->len;
	assert_int_equal(counter_stream_take(stream, &e, 8, now_ns), 0);
	free(copy);
	outbuf_close(payload);
}

static struct outbuf texts(int n, ...)
{
	struct outbuf out = outbuf_to(-1);
	va_list args;

	va_start(args, n);
	while (n--)
		ce_text(&out, va_arg(args, const char *));
	va_end(args);
	return out;
}

static void mean(const char *name, double value, const char *unit, const char *tags)
{
	struct outbuf p = texts(2, name, "");

	for (int i = 0; i < 2; i++)
		ce_f64(&p, i ? 0 : value);
	ipc_put_u32(&p, 1);
	for (int i = 0; i < 2; i++)
		ce_f64(&p, value);
	ipc_put_u32(&p, 0x3f800000);
	ce_text(&p, "Interval=1000");
	ce_text(&p, "Mean");
	ce_text(&p, tags);
	ce_text(&p, unit);
	take(CE_MEAN, &p);
}

static void sum(const char *name, double value, const char *series)
{
	struct outbuf p = texts(3, name, "Sold things", "00:00:01");

	ce_f64(&p, value);
	ipc_put_u32(&p, 0x3f800000);
	ce_text(&p, "");
	ce_text(&p, series);
	ce_text(&p, "Sum");
	ce_text(&p, "");
	take(CE_SUM, &p);
}

static void instrument(const char *meter, const char *name, const char *unit, uint32_t id)
{
	struct outbuf p =
		texts(10, "SHARED", meter, "1.0", name, "Counter`1", unit, "", "i=1", "m=2", "");

	ipc_put_u32(&p, id);
	ce_text(&p, "");
	take(CE_BEGIN, &p);
}

static void published(enum ce_kind kind, const char *meter, const char *name, const char *tags,
		      const char *first, const char *second, uint32_t id)
{
	struct outbuf p = texts(7, "SHARED", meter, "1.0", name, "u", tags, first);

	if (second)
		ce_text(&p, second);
	if (kind != CE_RATE_NET7)
		ipc_put_u32(&p, id);
	take(kind, &p);
}

static void histogram(const char *quantiles)
{
	struct outbuf p = texts(7, "SHARED", "M", "", "h", "u", "r=/", quantiles);

	ipc_put_u32(&p, 3);
	ce_f64(&p, 6);
	ipc_put_u32(&p, 9);
	take(CE_HISTOGRAM, &p);
}

static void event_counters_are_read(void **state)
{
	(void)state;
	begin("EventCounters\\known-events", false);
	mean("level", 42.5, "MB", "shop:main");
	expect("Known-Events level (MB)[shop:main] 42.5\n");
	mean("tiny", 1e-7, "", "");
	expect("Known-Events tiny[] 1E-07\n");
	sum("sold", 100, "Interval=1000");
	expect("Known-Events Sold things (Count / 1 sec)[] rate 100\n");
	assert_int_equal(counter_stream_stats(stream).other_interval_ms, 0);
	sum("sold", 50, "Interval=500");
	expect("Known-Events Sold things (Count / 0.5 sec)[] rate 50\n");
	assert_int_equal(counter_stream_stats(stream).other_interval_ms, 500);
	assert_int_equal(counter_stream_stats(stream).values, 4);
	begin("EventCounters\\Known-Events[sold]", false);
	mean("level", 1, "", "");
	expect("");
}

static void meters_are_read(void **state)
{
	(void)state;
	begin("M", false);
	instrument("M", "c", "{hit}", 1);
	published(CE_RATE, "M", "c", "r=/", "7", "56", 1);
	expect("M c ({hit} / 1 sec)[m=2,i=1,r=/] rate 7\n");
	published(CE_UP_DOWN, "M", "level", "", "", "-12.25", 2);
	expect("M level (u)[] -12.25\n");
	published(CE_GAUGE, "M", "g", "r=a,b", "21.5", NULL, 3);
	expect("M g (u)[r=a,b] 21.5\n");
	published(CE_GAUGE, "M", "g", "", "Infinity", NULL, 3);
	expect("M g (u)[] Infinity\n");
	histogram("0.5=50;x;0.95=9x;=1;0.999=99.5;");
	expect("M h (u)[r=/,Percentile=50] 50\nM h (u)[r=/,Percentile=99.9] 99.5\n");
	histogram("");
	expect("");
	/* The first interval of an observable counter has no change. */
	published(CE_RATE, "M", "c", "", "", "56", 1);
	expect("M c ended\n");
	published(CE_GAUGE, "M", "g", "", "", NULL, 3);
	expect("M g ended\n");
	published(CE_GAUGE, "N", "g", "", "1", NULL, 3);
	expect("");
	begin("M", true);
	published(CE_RATE, "M", "c", "r=/", "7", "56", 1);
	expect("M c (u)[r=/] 56\n");
	published(CE_RATE_NET7, "M", "c", "r=/", "7", NULL, 0);
	expect("M c (u / 1 sec)[r=/] rate 7\n");
}

static void an_id_does_not_lend_its_tags_to_another_name(void **state)
{
	(void)state;
	begin("M", true);
	instrument("M", "c", "{hit}", 1);
	published(CE_RATE, "M", "d", "", "7", "8", 1);
	expect("M d (u)[] 8\n");
	/* Two instruments of one name. */
	instrument("M", "c", "{other}", 2);
	published(CE_RATE, "M", "c", "", "7", "8", 1);
	expect("M c ({hit})[m=2,i=1] 8\n");
	published(CE_RATE, "M", "c", "", "7", "8", 2);
	expect("M c ({other})[m=2,i=1] 8\n");
}

static void meters_come_before_event_counters(void **state)
{
	struct outbuf all;

	(void)state;
	/* Unknown: the value waits, and the meter appears. */
	begin("Known-Events", false);
	mean("level", 1, "", "");
	now_ns += NS_PER_S / 2;
	counter_stream_tick(stream, now_ns);
	expect("");
	instrument("Known-Events", "c", "", 1);
	counter_stream_tick(stream, now_ns + 9 * NS_PER_S);
	mean("level", 2, "", "");
	expect("");
	/* No meter appears. */
	begin("Known-Events", false);
	mean("level", 1, "", "");
	now_ns += NS_PER_S;
	mean("level", 2, "", "");
	expect("Known-Events level[] 1\nKnown-Events level[] 2\n");
	/* The runtime has listed all instruments. */
	begin("Known-Events", false);
	all = texts(1, "SHARED");
	take(CE_ALL_BEGUN, &all);
	mean("level", 1, "", "");
	expect("Known-Events level[] 1\n");
	/* The end comes before the second has passed. */
	begin("Known-Events", false);
	mean("level", 1, "MB", "a:b");
	counter_stream_tick(stream, UINT64_MAX);
	expect("Known-Events level (MB)[a:b] 1\n");
	/* An instrument that is not in the list does not count. */
	begin("Known-Events[level]", false);
	instrument("Known-Events", "c", "", 1);
	mean("level", 1, "", "");
	counter_stream_tick(stream, UINT64_MAX);
	expect("Known-Events level[] 1\n");
	begin("EventCounters\\Known-Events", false);
	instrument("Known-Events", "c", "", 1);
	mean("level", 1, "", "");
	published(CE_GAUGE, "Known-Events", "c", "", "1", NULL, 1);
	expect("Known-Events level[] 1\n");
}

static void problems_of_our_session_are_told(void **state)
{
	struct outbuf p;
	char text[64];

	(void)state;
	begin("M", false);
	p = texts(1, "SHARED");
	take(CE_SERIES_LIMIT, &p);
	snprintf(text, sizeof(text), "problem %d \n", COUNTER_EVENT_SERIES_LIMIT);
	expect(text);
	p = texts(2, "SHARED", "why\nmore");
	take(CE_ERROR, &p);
	snprintf(text, sizeof(text), "problem %d why\nmore\n", COUNTER_EVENT_ERROR);
	expect(text);
	p = texts(7, "me", "10", "9", "500", "8", "2", "1");
	take(CE_OTHER_LIMITS, &p);
	snprintf(text, sizeof(text), "problem %d 105002\n", COUNTER_EVENT_OTHER_LIMITS);
	expect(text);
	p = texts(1, "another");
	take(CE_OTHER_SESSION, &p);
	snprintf(text, sizeof(text), "problem %d \n", COUNTER_EVENT_OTHER_SESSION);
	expect(text);
	/* Those of other tools are not ours. */
	p = texts(2, "another", "why");
	take(CE_CALLBACK_ERROR, &p);
	p = texts(7, "you", "10", "9", "500", "8", "2", "1");
	take(CE_OTHER_LIMITS, &p);
	p = texts(1, "SHARED");
	take(CE_OTHER_SESSION, &p);
	p = texts(1, "another");
	take(CE_HISTOGRAM_LIMIT, &p);
	p = texts(1, "x");
	take(CE_OTHER, &p);
	expect("");
}

static void damaged_events_are_counted(void **state)
{
	struct outbuf p;

	(void)state;
	begin("EventCounters\\Known-Events,M", false);
	p = texts(3, "sold", "Sold", "00:00:01");
	ipc_put_u32(&p, 1);
	take(CE_SUM, &p);
	expect("");
	assert_int_equal(counter_stream_stats(stream).damaged, 1);
	/* One that ends between two fields has no value. */
	p = texts(2, "SHARED", "M");
	take(CE_GAUGE, &p);
	expect("M  ended\n");
	p = texts(1, "x");
	take(CE_ALL_BEGUN, &p);
	expect("");
	assert_int_equal(counter_stream_stats(stream).damaged, 1);
}

static void quantiles_are_numbers_of_dotnet(void **state)
{
	const char *list_of = "0x1=2;0.5=0x2; 0.5=1;1=NaN;2=-Infinity";
	double q, v;

	(void)state;
	assert_true(counter_event_quantile(&list_of, &q, &v));
	assert_true(q == 1 && v != v);
	assert_true(counter_event_quantile(&list_of, &q, &v));
	assert_true(q == 2 && v < 0);
	assert_false(counter_event_quantile(&list_of, &q, &v));
}

static int set_up(void **state)
{
	(void)state;
	seen = outbuf_to(-1);
	for (int i = 0; i < CE_KINDS; i++)
		ce_describe(&kinds[i], (enum ce_kind)i);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < CE_KINDS; i++)
		ce_free(&kinds[i]);
	counter_stream_free(stream);
	counter_list_free(&list);
	outbuf_close(&seen);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_counters_are_read),
		cmocka_unit_test(meters_are_read),
		cmocka_unit_test(an_id_does_not_lend_its_tags_to_another_name),
		cmocka_unit_test(meters_come_before_event_counters),
		cmocka_unit_test(problems_of_our_session_are_told),
		cmocka_unit_test(damaged_events_are_counted),
		cmocka_unit_test(quantiles_are_numbers_of_dotnet),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
