/* Input: a byte of options, then events: a kind of tests/unit/counter_events.h, the number of
 * payload bytes in two bytes, and the payload. covers: profcpu/counters/counter_event.c
 * profcpu/counters/counter_stream.c profcpu/counters/counter_value.c
 * profcpu/counters/counter_output.c profcpu/counters/counter_screen.c */
#include "base/json.h"
#include "profcpu/counters/counter_output.h"
#include "profcpu/counters/counter_screen.h"
#include "profcpu/counters/counter_stream.h"
#include "tests/unit/counter_events.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct counter_output lines, csv, json;
	struct counter_screen screen;
	uint64_t values;
} seen;

static void take_value(void *ctx, const struct counter_value *v)
{
	(void)ctx;
	seen.values++;
	counter_output_value(&seen.lines, v);
	counter_output_value(&seen.csv, v);
	counter_output_value(&seen.json, v);
	counter_screen_value(&seen.screen, v);
}

static void take_ended(void *ctx, const struct counter_value *v)
{
	(void)ctx;
	counter_screen_ended(&seen.screen, v);
}

static void take_problem(void *ctx, const struct counter_event *e)
{
	(void)ctx;
	counter_screen_note(&seen.screen, e->text[COUNTER_MESSAGE]);
}

static void feed(struct counter_stream *stream, const struct ce_description *kinds,
		 const uint8_t *data, size_t size)
{
	struct reader r = reader_of(data, size);

	for (uint64_t now_ns = 1; reader_left(&r) >= 3; now_ns += 400000000) {
		uint8_t kind = reader_u8(&r);
		uint16_t len = reader_u16(&r);
		size_t n = len < reader_left(&r) ? len : reader_left(&r);
		/* An exact allocation, so that an overread is visible. */
		void *payload = malloc(n ? n : 1);
		struct nettrace_event e = {.kind = &kinds[kind % CE_KINDS].kind, .time_ns = now_ns};

		if (!payload)
			abort();
		memcpy(payload, reader_bytes(&r, n), n);
		e.blob.payload = payload;
		e.blob.payload_len = (uint32_t)n;
		if (counter_stream_take(stream, &e, 8, now_ns))
			abort();
		free(payload);
	}
	counter_stream_tick(stream, UINT64_MAX);
}

/* Each line is one value; the JSON document is whole. */
static void check(void)
{
	size_t newlines = 0, screen_lines = 0;
	struct outbuf out = outbuf_to(-1);
	struct json j;

	for (size_t i = 0; i < seen.lines.out.len; i++)
		newlines += seen.lines.out.data[i] == '\n';
	if (newlines != seen.values)
		abort();
	outbuf_str(&seen.json.out, "]}");
	j = json_of(seen.json.out.data, seen.json.out.len);
	if (json_skip(&j) || json_end(&j))
		abort();
	counter_screen_put(&seen.screen, &out, 24, 80);
	for (size_t i = 0; i < out.len; i++) {
		screen_lines += out.data[i] == '\n';
		if (out.data[i] == '\033' && (i + 1 >= out.len || out.data[i + 1] != '['))
			abort();
	}
	if (screen_lines > 23)
		abort();
	outbuf_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct counter_stream_sink sink = {
		.value = take_value, .ended = take_ended, .problem = take_problem};
	static struct ce_description kinds[CE_KINDS];
	struct counter_list list = {0};
	struct counter_stream_options options = {
		.list = &list, .session = "SHARED", .client = "me", .interval_ms = 1000};
	struct counter_stream *stream;

	if (!size)
		return 0;
	for (int i = 0; i < CE_KINDS && !kinds[i].kind.fields; i++)
		ce_describe(&kinds[i], (enum ce_kind)i);
	options.totals = *data & 1;
	seen.values = 0;
	seen.lines = counter_output_new(COUNTER_LINES);
	seen.csv = counter_output_new(COUNTER_CSV);
	seen.json = counter_output_new(COUNTER_JSON);
	seen.screen = counter_screen_to(-1, "head");
	if (counter_list_add(&list, *data & 2 ? "M,Known-Events"
					      : "M[c,h,g],EventCounters\\Known-Events") ||
	    counter_stream_new(&options, &sink, &stream) ||
	    counter_output_begin(&seen.json, "/dev/null", "app"))
		abort();
	feed(stream, kinds, data + 1, size - 1);
	check();
	counter_stream_free(stream);
	counter_list_free(&list);
	(void)counter_output_end(&seen.lines);
	(void)counter_output_end(&seen.csv);
	(void)counter_output_end(&seen.json);
	(void)counter_screen_close(&seen.screen);
	return 0;
}
