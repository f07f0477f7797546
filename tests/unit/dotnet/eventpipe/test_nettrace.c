#include "dotnet/eventpipe/nettrace.h"

#include "base/clock.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Received events, as text. */
static struct outbuf received;

static int on_trace(void *ctx, const struct nettrace_trace *t)
{
	(void)ctx;
	outbuf_printf(&received, "trace %u %u %u %u\n", t->pointer_bytes, t->pid, t->cpus,
		      t->utc[0]);
	return 0;
}

static int on_event(void *ctx, const struct nettrace_event *e)
{
	outbuf_printf(&received,
		      "%s/%u/%s v%u at %llu by %llu of %llu cpu %u seq %u act %u %u sorted %d",
		      e->kind->provider, e->kind->event_id, e->kind->name, e->kind->version,
		      (unsigned long long)e->time_ns, (unsigned long long)e->blob.capture_thread,
		      (unsigned long long)e->blob.thread, e->blob.processor, e->blob.sequence,
		      e->blob.activity[0], e->blob.related_activity[0], e->blob.sorted);
	outbuf_printf(&received, " stack %zu:%u", e->stack_bytes, e->stack ? e->stack[0] : 0);
	outbuf_printf(&received, " \"%.*s\"\n", (int)e->blob.payload_len,
		      (const char *)e->blob.payload);
	return ctx ? *(int *)ctx : 0;
}

static struct nettrace_stats stats;
static struct parse_error err;
static bool ended;

static struct share *memory; /* of the next streams */

/* Feeds a stream in pieces of `step` bytes; `received` gets the events. */
static int read_stream(const struct outbuf *o, size_t len, size_t step, int *give)
{
	const struct nettrace_listener listener = {
		.trace = on_trace, .event = on_event, .ctx = give, .memory = memory};
	struct nettrace *n;
	int r = 0;

	outbuf_close(&received);
	received = outbuf_to(-1);
	err = (struct parse_error){0};
	assert_int_equal(nettrace_new(&listener, &n), 0);
	for (size_t at = 0; at < len && !r; at += step) {
		/* An exact allocation makes a read past the end visible. */
		size_t piece = len - at < step ? len - at : step;
		char *copy = malloc(piece);

		assert_non_null(copy);
		memcpy(copy, o->data + at, piece);
		r = nettrace_feed(n, copy, piece, &err);
		free(copy);
	}
	outbuf_char(&received, 0);
	stats = nettrace_stats(n);
	ended = nettrace_ended(n);
	nettrace_free(n);
	return r;
}

static const struct nettrace_blob first = {
	.metadata_id = 1,
	.sequence = 1,
	.capture_thread = 100,
	.thread = 101,
	.processor = 3,
	.ticks = 7000,
	.activity = {9},
	.related_activity = {8},
	.payload = (const unsigned char *)"one",
	.payload_len = 3,
};

/* A stream with two events of one kind, the second older than the first. */
static struct outbuf make(bool compressed, uint64_t frequency)
{
	struct nettrace_blob second = first;
	struct outbuf o = outbuf_to(-1), b = nt_events(compressed);

	second.sequence = 2;
	second.ticks = 6000;
	second.sorted = true;
	second.payload = (const unsigned char *)"";
	second.payload_len = 0;
	nt_head(&o);
	nt_trace(&o, frequency);
	nt_kind(&o, 1, "Mine", 7, "Tick", 2);
	if (compressed) {
		nt_compressed(&b, &first, 0, 0);
		nt_compressed(&b, &second, first.ticks, first.sequence);
	} else {
		nt_plain(&b, &first);
		nt_plain(&b, &second);
	}
	nt_block(&o, "EventBlock", &b);
	nt_end(&o);
	return o;
}

static const char want[] =
	"trace 8 42 2 2026\n"
	"Mine/7/Tick v2 at 7000 by 100 of 101 cpu 3 seq 1 act 9 8 sorted 0 stack 0:0 \"one\"\n"
	"Mine/7/Tick v2 at 6000 by 100 of 101 cpu 3 seq 2 act 9 8 sorted 1 stack 0:0 \"\"\n";

static void both_forms_of_headers_give_the_same(void **state)
{
	(void)state;
	for (int compressed = 0; compressed < 2; compressed++) {
		struct outbuf o = make(compressed, NS_PER_S);

		assert_int_equal(read_stream(&o, o.len, o.len, NULL), 0);
		assert_string_equal(received.data, want);
		assert_true(ended && stats.events == 2 && !stats.lost && !stats.unknown &&
			    stats.bytes == o.len);
		outbuf_close(&o);
	}
}

static void pieces_of_any_size_give_the_same(void **state)
{
	struct outbuf o = make(true, NS_PER_S);

	(void)state;
	for (size_t step = 1; step < 50; step++) {
		assert_int_equal(read_stream(&o, o.len, step, NULL), 0);
		assert_string_equal(received.data, want);
		assert_true(ended);
	}
	outbuf_close(&o);
}

static void a_cut_stream_gives_its_whole_blocks(void **state)
{
	struct outbuf o = make(false, NS_PER_S);

	(void)state;
	for (size_t len = 0; len < o.len; len++) {
		assert_int_equal(read_stream(&o, len, 4096, NULL), 0);
		assert_false(ended);
		assert_memory_equal(received.data, want, received.len - 1);
	}
	outbuf_close(&o);
}

static void other_clocks_are_converted_to_nanoseconds(void **state)
{
	struct outbuf o = make(true, 10000);

	(void)state;
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), 0);
	assert_non_null(strstr(received.data, " at 700000000 "));
	outbuf_close(&o);
	o = make(true, 0);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
	outbuf_close(&o);
}

static void put_event(struct outbuf *o, uint32_t kind, uint32_t stack, uint32_t sequence)
{
	struct outbuf b = nt_events(true);
	struct nettrace_blob e = first;

	e.metadata_id = kind;
	e.stack_id = stack;
	e.sequence = sequence;
	nt_compressed(&b, &e, 0, 0);
	nt_block(o, "EventBlock", &b);
}

static void put_stacks(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u32(&b, 5);
	ipc_put_u32(&b, 2);
	ipc_put_u32(&b, 16);
	ipc_put_u64(&b, 0x11);
	ipc_put_u64(&b, 0x22);
	ipc_put_u32(&b, 0);
	nt_block(o, "StackBlock", &b);
}

static void put_sequence_point(struct outbuf *o, uint32_t sequence)
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u64(&b, 9000);
	ipc_put_u32(&b, 1);
	ipc_put_u64(&b, 100);
	ipc_put_u32(&b, sequence);
	nt_block(o, "SPBlock", &b);
}

static void stacks_are_valid_until_a_sequence_point(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	nt_head(&o);
	nt_trace(&o, NS_PER_S);
	nt_kind(&o, 1, "Mine", 7, "", 0);
	put_stacks(&o);
	put_event(&o, 1, 5, 1);
	put_event(&o, 1, 6, 2);
	put_event(&o, 1, 7, 3);
	put_sequence_point(&o, 3);
	put_event(&o, 1, 5, 4);
	nt_end(&o);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), 0);
	const char *p = received.data;
	static const char *const stacks[] = {"stack 16:17", "stack 0:0", "stack 0:0", "stack 0:0"};

	for (int i = 0; i < 4; i++) {
		p = strstr(p + 1, "stack ");
		assert_non_null(p);
		assert_memory_equal(p, stacks[i], strlen(stacks[i]));
	}
	assert_true(!stats.lost);
	outbuf_close(&o);
}

static void dropped_records_are_counted(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	nt_head(&o);
	nt_trace(&o, NS_PER_S);
	nt_kind(&o, 1, "Mine", 7, "", 0);
	put_event(&o, 1, 0, 3); /* 1 and 2 */
	put_event(&o, 1, 0, 4);
	put_event(&o, 1, 0, 10);    /* 5 to 9 */
	put_sequence_point(&o, 20); /* 11 to 20 */
	put_event(&o, 1, 0, 21);
	put_event(&o, 2, 0, 22); /* an event without metadata */
	nt_end(&o);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), 0);
	assert_int_equal(stats.lost, 2 + 5 + 10);
	assert_int_equal(stats.unknown, 1);
	assert_int_equal(stats.events, 5);
	outbuf_close(&o);
}

static void blocks_of_unknown_types_are_skipped(void **state)
{
	struct outbuf o = outbuf_to(-1), b = outbuf_to(-1);

	(void)state;
	nt_head(&o);
	nt_trace(&o, NS_PER_S);
	outbuf_str(&b, "whatever");
	nt_block(&o, "FutureBlock", &b);
	nt_kind(&o, 1, "Mine", 7, "Tick", 2);
	put_event(&o, 1, 0, 1);
	nt_end(&o);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), 0);
	assert_true(ended && stats.unknown == 1 && stats.events == 1);
	outbuf_close(&o);
}

static void other_bytes_are_refused(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	outbuf_str(&o, "HTTP/1.1 200 OK");
	assert_int_equal(read_stream(&o, o.len, 1, NULL), -EBADMSG);
	assert_string_equal(err.what, "not a nettrace stream");
	outbuf_close(&o);
	o = outbuf_to(-1);
	outbuf_put(&o, "Nettrace\0\0\0\0\7\0\0\0\0\0\0\0", 20);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
	assert_string_equal(err.what, "the trace is newer than version 6");
	outbuf_close(&o);
	for (uint32_t version = 2; version <= 6; version += 4) {
		o = outbuf_to(-1);
		nt_head(&o);
		nt_object(&o, "Trace", version);
		assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
		assert_string_equal(err.what, version == 2 ? "the trace is older than version 3"
							   : "the trace is newer than version 6");
		outbuf_close(&o);
	}
	o = outbuf_to(-1);
	nt_head(&o);
	put_event(&o, 1, 0, 1);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
	assert_string_equal(err.what, "a block comes before the head of the trace");
	outbuf_close(&o);
}

static void damage_and_excessive_sizes_end_the_reading(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	nt_head(&o);
	nt_trace(&o, NS_PER_S);
	size_t at = o.len;

	nt_object(&o, "EventBlock", 2);
	ipc_put_u32(&o, UINT32_MAX);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), -E2BIG);
	/* A number that never ends, and a payload longer than its block. */
	static const unsigned char *const bad[] = {
		(const unsigned char *)"\x01\xff\xff\xff\xff\xff\xff",
		(const unsigned char *)"\x80\x00\x7f"};

	for (int i = 0; i < 2; i++) {
		struct outbuf b = nt_events(true);

		outbuf_put(&b, bad[i], i ? 3 : 7);
		o.len = at;
		nt_block(&o, "EventBlock", &b);
		assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
		assert_string_equal(err.what, "a block of events is damaged");
		assert_true(err.offset > at && err.offset < o.len);
	}
	o.len = at;
	ipc_put_u8(&o, 9);
	assert_int_equal(read_stream(&o, o.len, o.len, NULL), -EBADMSG);
	assert_int_equal(err.offset, at);
	outbuf_close(&o);
}

/* A long block, and short ones that fill the tables. */
static void streams_take_their_share_of_memory(void **state)
{
	struct share_total total = {.limit = SHARE_SMALL};
	struct share share = {.of = &total};
	struct outbuf o = outbuf_to(-1), stacks = outbuf_to(-1), zeros = outbuf_to(-1);

	(void)state;
	memory = &share;
	nt_head(&o);
	nt_trace(&o, NS_PER_S);
	size_t at = o.len;

	for (size_t i = 0; i < SHARE_SMALL + 1; i++)
		outbuf_char(&zeros, 0);
	nt_block(&o, "Other", &zeros);
	assert_int_equal(read_stream(&o, o.len, 1 << 16, NULL), -ENOMEM);
	assert_string_equal(err.what, "too little memory is left for its events");
	assert_int_equal(total.taken, 0);
	/* Empty stacks. */
	ipc_put_u32(&stacks, 1);
	ipc_put_u32(&stacks, 1 << 17);
	for (size_t i = 0; i < 1 << 17; i++)
		ipc_put_u32(&stacks, 0);
	o.len = at;
	nt_block(&o, "StackBlock", &stacks);
	nt_end(&o);
	assert_int_equal(read_stream(&o, o.len, 1 << 16, NULL), -ENOMEM);
	assert_string_equal(err.what, "too little memory is left for its events");
	assert_int_equal(share.taken, 0);
	total.limit = 4 * SHARE_SMALL;
	assert_int_equal(read_stream(&o, o.len, 1 << 16, NULL), 0);
	assert_true(ended);
	memory = NULL;
	outbuf_close(&o);
}

static void an_error_of_the_listener_ends_the_reading(void **state)
{
	struct outbuf o = make(true, NS_PER_S);
	int give = -ENOSPC;

	(void)state;
	assert_int_equal(read_stream(&o, o.len, o.len, &give), -ENOSPC);
	assert_int_equal(stats.events, 1);
	outbuf_close(&o);
	outbuf_close(&received);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_forms_of_headers_give_the_same),
		cmocka_unit_test(pieces_of_any_size_give_the_same),
		cmocka_unit_test(a_cut_stream_gives_its_whole_blocks),
		cmocka_unit_test(other_clocks_are_converted_to_nanoseconds),
		cmocka_unit_test(stacks_are_valid_until_a_sequence_point),
		cmocka_unit_test(dropped_records_are_counted),
		cmocka_unit_test(blocks_of_unknown_types_are_skipped),
		cmocka_unit_test(other_bytes_are_refused),
		cmocka_unit_test(damage_and_excessive_sizes_end_the_reading),
		cmocka_unit_test(streams_take_their_share_of_memory),
		cmocka_unit_test(an_error_of_the_listener_ends_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
