/* nettrace_writer: the reader gets what was written, in both versions, alone and behind a stream.
 */
#include "dotnet/eventpipe/nettrace_writer.h"
#include "base/clock.h"
#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/nettrace_format.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct nettrace_trace head = {.sync_ticks = 5000,
					   .ticks_per_second = NS_PER_S,
					   .pointer_bytes = 8,
					   .pid = 42,
					   .cpus = 2,
					   .sampling_ns = 1000000,
					   .utc = {2026, 11, 0, 29, 1, 2, 3, 4}};

static struct outbuf received;
static struct nettrace_stats stats;
static struct nettrace_trace trace;
static uint64_t whole;
static bool ended;

static int on_trace(void *ctx, const struct nettrace_trace *t)
{
	(void)ctx;
	trace = *t;
	return 0;
}

static int on_event(void *ctx, const struct nettrace_event *e)
{
	const struct nettrace_kind *k = e->kind;

	(void)ctx;
	outbuf_printf(&received, "%s/%u/%s v%u l%u o%u k%llx at %llu by %llu/%u of %llu/%llu",
		      k->provider, k->event_id, k->name, k->version, k->level, k->opcode,
		      (unsigned long long)k->keywords, (unsigned long long)e->time_ns,
		      (unsigned long long)e->capture_thread, e->blob.sequence,
		      (unsigned long long)e->pid, (unsigned long long)e->thread);
	outbuf_printf(&received, " cpu %u act %u/%u stack", e->blob.processor, e->blob.activity[0],
		      e->blob.related_activity[0]);
	for (size_t i = 0; i < e->stack_bytes; i += 8)
		outbuf_printf(&received, " %x", e->stack[i]);
	outbuf_char(&received, ' ');
	struct json_writer w = json_put_document(&received, 0);

	assert_true(event_payload_put(e, trace.pointer_bytes, &w, "p") || !k->nfields);
	json_put_end(&w);
	return 0;
}

static void read_stream(const struct outbuf *o, size_t step)
{
	const struct nettrace_listener listener = {.trace = on_trace, .event = on_event};
	struct parse_error err = {0};
	struct nettrace *n;

	outbuf_close(&received);
	received = outbuf_to(-1);
	assert_int_equal(o->error, 0);
	assert_int_equal(nettrace_new(&listener, &n), 0);
	for (size_t at = 0; at < o->len; at += step)
		assert_int_equal(nettrace_feed(n, o->data + at,
					       o->len - at < step ? o->len - at : step, &err),
				 0);
	outbuf_char(&received, 0);
	stats = nettrace_stats(n);
	ended = nettrace_ended(n);
	whole = nettrace_whole(n);
	nettrace_free(n);
}

/* A name beyond ASCII, and fields of all forms. */
static const struct event_field plain_fields[] = {
	{.name = "count", .type = EVENT_U16, .next = 1},
	{.name = "t\xc3\xa4xt", .type = EVENT_TEXT16, .next = 2},
	{.name = "inner", .type = EVENT_OBJECT, .next = 4},
	{.name = "x", .type = EVENT_I8, .next = 4},
};
static const struct event_field array_fields[] = {
	{.name = "list", .type = EVENT_ARRAY, .next = 2},
	{.name = "", .type = EVENT_U16, .next = 2},
};
static const unsigned char plain_payload[] = {7, 0, 'h', 0, 'i', 0, 0, 0, 0xfe};
static const unsigned char xy[] = {'x', 'y'};
static const unsigned char array_payload[] = {2, 0, 1, 0, 2, 1};

#define EVENT(id, number, time, bytes)                \
	((struct nettrace_blob){.metadata_id = (id),  \
				.sequence = (number), \
				.capture_thread = 77, \
				.thread = 78,         \
				.processor = 1,       \
				.ticks = (time),      \
				.payload = (bytes),   \
				.payload_len = sizeof(bytes)})

static void put_kinds(struct nettrace_writer *w)
{
	nettrace_writer_kind(w, &(struct nettrace_kind){.provider = "Mine",
							.name = "Pl\xc3\xa4in",
							.metadata_id = 3,
							.event_id = 9,
							.version = 1,
							.level = 4,
							.opcode = 2,
							.keywords = 0xabcdef0123456789,
							.fields = plain_fields,
							.nfields = 4});
	nettrace_writer_kind(w, &(struct nettrace_kind){.provider = "Mine",
							.name = "",
							.metadata_id = 400,
							.event_id = 10,
							.level = 5,
							.fields = array_fields,
							.nfields = 2});
	nettrace_writer_thread(w, 77, 42, 77);
	nettrace_writer_thread(w, 78, 42, 78);
}

static struct outbuf small_stream(unsigned version)
{
	struct outbuf o = outbuf_to(-1);
	struct nettrace_writer w = nettrace_writer_to(&o, version, 0);
	const uint64_t stack[] = {1, 2, 3};
	struct nettrace_blob e = EVENT(3, 1, 1000, plain_payload);

	nettrace_writer_head(&w, &head);
	put_kinds(&w);
	nettrace_writer_stack(&w, 5, stack, sizeof(stack));
	e.stack_id = 5;
	e.activity[0] = version == 6 ? 0 : 9;
	e.related_activity[0] = version == 6 ? 0 : 8;
	nettrace_writer_event(&w, &e);
	e = EVENT(400, 2, 990, array_payload); /* older than the one before */
	nettrace_writer_event(&w, &e);
	e = EVENT(400, 5, 2000, array_payload); /* two are lost */
	nettrace_writer_event(&w, &e);
	nettrace_writer_end(&w);
	return o;
}

#define PLAIN "{\"p\":{\"count\":7,\"t\xc3\xa4xt\":\"hi\",\"inner\":{\"x\":-2}}}\n"
#define ARRAY "{\"p\":{\"list\":[1,258]}}\n"
#define OF " of 42/78 cpu 1 act "

static void the_reader_gets_what_was_written(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct outbuf o = small_stream(version);

		for (size_t step = 1; step < 200; step += 33) {
			read_stream(&o, step);
			assert_string_equal(
				received.data,
				version == 4
					? "Mine/9/Pl\xc3\xa4in v1 l4 o2 kabcdef0123456789 at 1000 "
					  "by 77/1" OF "9/8 stack 1 2 3 " PLAIN
					  "Mine/10/ v0 l5 o0 k0 at 990 by 77/2" OF
					  "0/0 stack " ARRAY
					  "Mine/10/ v0 l5 o0 k0 at 2000 by 77/5" OF
					  "0/0 stack " ARRAY
					: "Mine/9/Pl\xc3\xa4in v1 l4 o2 kabcdef0123456789 at 1000 "
					  "by 77/1" OF "0/0 stack 1 2 3 " PLAIN
					  "Mine/10/ v0 l5 o0 k0 at 990 by 77/2" OF
					  "0/0 stack " ARRAY
					  "Mine/10/ v0 l5 o0 k0 at 2000 by 77/5" OF
					  "0/0 stack " ARRAY);
			assert_true(ended && stats.events == 3 && stats.lost == 2 &&
				    !stats.unknown);
		}
		assert_true(trace.version == version && trace.pid == 42 && trace.cpus == 2 &&
			    trace.sampling_ns == 1000000 && trace.sync_ticks == 5000 &&
			    trace.pointer_bytes == 8 && !memcmp(trace.utc, head.utc, 16));
		outbuf_close(&o);
	}
}

/* Any size before it, because blocks of version 4 are aligned in the whole stream. */
static void events_follow_the_last_whole_object_of_a_stream(void **state)
{
	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct outbuf o = small_stream(version);

		read_stream(&o, o.len);
		for (uint32_t i = 0; i < 9; i++) {
			o.len = whole;
			struct outbuf more = outbuf_to(-1);
			struct nettrace_writer w = nettrace_writer_to(&more, version, whole);
			struct nettrace_blob e = EVENT(500, 1, 3000, plain_payload);

			e.payload_len = 2;
			e.capture_thread = 100 + i;
			nettrace_writer_kind(&w,
					     &(struct nettrace_kind){.provider = &"Long name"[i],
								     .name = "",
								     .metadata_id = 500});
			nettrace_writer_thread(&w, e.capture_thread, 42, e.capture_thread);
			nettrace_writer_event(&w, &e);
			nettrace_writer_end(&w);
			outbuf_put(&o, more.data, more.len);
			outbuf_close(&more);
			read_stream(&o, o.len);
			assert_true(ended && stats.events == 4 + i && stats.lost == 2 &&
				    !stats.unknown);
			assert_int_equal(trace.version, version);
		}
		assert_non_null(strstr(received.data, "name/0/ v0 l0 o0 k0 at 3000 by 100/1"));
		outbuf_close(&o);
	}
}

static void many_events_are_several_blocks(void **state)
{
	const uint32_t n = 100000;

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct outbuf o = outbuf_to(-1);
		struct nettrace_writer w = nettrace_writer_to(&o, version, 0);

		nettrace_writer_head(&w, &head);
		put_kinds(&w);
		for (uint32_t i = 0; i < n; i++) {
			struct nettrace_blob e = EVENT(400, i + 1, 1000 + i, array_payload);

			nettrace_writer_event(&w, &e);
		}
		nettrace_writer_end(&w);
		read_stream(&o, 1 << 20);
		assert_true(ended && stats.events == n && !stats.lost && !stats.unknown);
		/* A header of an event like the last one: flags and a step in time. */
		assert_true(o.len < n * (sizeof(array_payload) + 3));
		outbuf_close(&o);
	}
}

/* Fields that only layouts have, and those that only version 6 has. */
static void a_kind_has_no_fields_if_the_version_lacks_one(void **state)
{
	static const struct event_field of_layout[] = {
		{.name = "a", .type = EVENT_U16, .next = 1},
		{.name = "b", .type = EVENT_POINTER, .next = 2}};
	static const struct event_field of_v6[] = {
		{.name = "a", .type = EVENT_FIXED_ARRAY, .count = 2, .next = 2},
		{.name = "", .type = EVENT_CHAR8, .next = 2}};
	struct nettrace_kind kinds[] = {
		{.provider = "A", .name = "", .metadata_id = 1, .fields = of_layout, .nfields = 2},
		{.provider = "B", .name = "", .metadata_id = 2, .fields = of_v6, .nfields = 2}};

	(void)state;
	for (unsigned version = 4; version <= 6; version += 2) {
		struct outbuf o = outbuf_to(-1);
		struct nettrace_writer w = nettrace_writer_to(&o, version, 0);

		nettrace_writer_head(&w, &head);
		for (int i = 0; i < 2; i++)
			nettrace_writer_kind(&w, &kinds[i]);
		for (uint32_t i = 0; i < 2; i++) {
			struct nettrace_blob e = EVENT(i + 1, i + 1, 1000, xy);

			nettrace_writer_event(&w, &e);
		}
		nettrace_writer_end(&w);
		read_stream(&o, o.len);
		assert_int_equal(stats.events, 2);
		assert_non_null(strstr(received.data, "A/0/"));
		assert_null(strstr(received.data, "\"b\""));
		assert_true(!strstr(received.data, "\"a\":\"xy\"") == (version == 4));
		outbuf_close(&o);
	}
}

static void a_failed_write_is_an_error(void **state)
{
	struct outbuf o = outbuf_to(-1);
	struct nettrace_writer w = nettrace_writer_to(&o, 4, 0);
	struct nettrace_blob e = EVENT(3, 1, 1000, plain_payload);

	(void)state;
	o.error = -ENOSPC;
	nettrace_writer_head(&w, &head);
	put_kinds(&w);
	nettrace_writer_event(&w, &e);
	nettrace_writer_end(&w);
	assert_int_equal(o.error, -ENOSPC);
	assert_int_equal(o.len, 0);
	outbuf_close(&o);
}

static int free_received(void **state)
{
	(void)state;
	return outbuf_close(&received);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_reader_gets_what_was_written),
		cmocka_unit_test(events_follow_the_last_whole_object_of_a_stream),
		cmocka_unit_test(many_events_are_several_blocks),
		cmocka_unit_test(a_kind_has_no_fields_if_the_version_lacks_one),
		cmocka_unit_test(a_failed_write_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, free_received);
}
