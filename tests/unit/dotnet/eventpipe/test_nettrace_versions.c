/* nettrace: versions 3 and 6, whose streams differ from those of version 4. */
#include "base/clock.h"
#include "dotnet/eventpipe/event_payload.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct outbuf received;
static struct nettrace_stats stats;
static struct parse_error err;
static struct nettrace_trace trace;
static bool ended, damaged;

static int on_trace(void *ctx, const struct nettrace_trace *t)
{
	(void)ctx;
	trace = *t;
	return 0;
}

static int on_event(void *ctx, const struct nettrace_event *e)
{
	struct reader labels = reader_of(e->labels, e->labels_bytes);
	struct nettrace_label label;

	(void)ctx;
	outbuf_printf(&received,
		      "%s/%u/%s v%u l%u o%u at %llu by %llu of %llu/%llu act %u stack %zu",
		      e->kind->provider, e->kind->event_id, e->kind->name, e->kind->version,
		      e->kind->level, e->kind->opcode, (unsigned long long)e->time_ns,
		      (unsigned long long)e->capture_thread, (unsigned long long)e->pid,
		      (unsigned long long)e->thread, e->blob.activity[0], e->stack_bytes);
	while (nettrace_label_next(&labels, &label))
		outbuf_printf(&received, " [%d %.*s %.*s %lld]", (int)label.kind,
			      (int)label.key_len, label.key ? label.key : "", (int)label.text_len,
			      label.text ? label.text : "", (long long)label.number);
	outbuf_char(&received, ' ');
	struct json_writer w = json_put_document(&received, 0);

	assert_true(event_payload_put(e, trace.pointer_bytes, &w, "p") || damaged);
	json_put_end(&w);
	return 0;
}

static int read_stream(const struct outbuf *o, size_t len, size_t step)
{
	const struct nettrace_listener listener = {.trace = on_trace, .event = on_event};
	struct nettrace *n;
	int r = 0;

	outbuf_close(&received);
	received = outbuf_to(-1);
	err = (struct parse_error){0};
	assert_int_equal(nettrace_new(&listener, &n), 0);
	for (size_t at = 0; at < len && !r; at += step)
		r = nettrace_feed(n, o->data + at, len - at < step ? len - at : step, &err);
	outbuf_char(&received, 0);
	stats = nettrace_stats(n);
	ended = nettrace_ended(n);
	nettrace_free(n);
	return r;
}

/* Version 3: kinds and stacks are among the events. */
static void v3_event(struct outbuf *b, uint32_t kind, uint64_t ticks, const struct outbuf *payload,
		     uint32_t addresses)
{
	ipc_put_u32(b, 56 + (uint32_t)payload->len + 8 * addresses);
	ipc_put_u32(b, kind);
	ipc_put_u32(b, 77);
	ipc_put_u64(b, ticks);
	for (int i = 0; i < 4; i++)
		ipc_put_u64(b, 0);
	ipc_put_u32(b, (uint32_t)payload->len);
	outbuf_put(b, payload->data, payload->len);
	ipc_put_u32(b, 8 * addresses);
	for (uint32_t i = 0; i < addresses; i++)
		ipc_put_u64(b, 0x1000 + i);
	while (b->len % 4)
		ipc_put_u8(b, 0);
}

static void version_3_has_kinds_and_stacks_among_its_events(void **state)
{
	struct outbuf o = outbuf_to(-1), b = outbuf_to(-1), kind = outbuf_to(-1),
		      payload = outbuf_to(-1);

	(void)state;
	outbuf_put(&o, "\x14\0\0\0!FastSerialization.1", 24);
	nt_trace_version(&o, NS_PER_S, 3);
	ipc_put_u32(&kind, 5);
	nt_text(&kind, "Mine");
	ipc_put_u32(&kind, 9);
	nt_text(&kind, "Old");
	ipc_put_u64(&kind, 0);
	ipc_put_u32(&kind, 1);
	ipc_put_u32(&kind, 4);
	ipc_put_u32(&kind, 1); /* a field */
	ipc_put_u32(&kind, EVENT_I16);
	nt_text(&kind, "x");
	nt_u16(&payload, 0xfffe);
	v3_event(&b, 0, 1, &kind, 0);
	v3_event(&b, 5, 10, &payload, 3);
	v3_event(&b, 6, 11, &payload, 0);
	nt_block(&o, "EventBlock", &b);
	nt_end(&o);
	for (size_t step = 1; step < 80; step += 13) {
		assert_int_equal(read_stream(&o, o.len, step), 0);
		assert_string_equal(received.data,
				    "Mine/9/Old v1 l4 o0 at 10 by 77 of 42/77 act 0 stack 24 "
				    "{\"p\":{\"x\":-2}}\n");
		assert_true(ended && stats.events == 2 && stats.unknown == 1 && !stats.lost);
		assert_int_equal(trace.version, 3);
	}
	outbuf_close(&o);
	outbuf_close(&kind);
	outbuf_close(&payload);
}

/* Version 6. */

static void v6_text(struct outbuf *b, const char *text)
{
	nt_varuint(b, strlen(text));
	outbuf_str(b, text);
}

/* Takes and frees the block's bytes. */
static void v6_block(struct outbuf *o, uint8_t kind, struct outbuf *b)
{
	ipc_put_u32(o, (uint32_t)b->len | (uint32_t)kind << 24);
	outbuf_put(o, b->data, b->len);
	outbuf_close(b);
	*b = outbuf_to(-1);
}

static void v6_begin(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1);

	outbuf_put(o, "Nettrace\0\0\0\0\6\0\0\0\1\0\0\0", 20);
	for (int i = 0; i < 8; i++)
		nt_u16(&b, (uint16_t)(2026 - i));
	ipc_put_u64(&b, 5000);
	ipc_put_u64(&b, NS_PER_S);
	ipc_put_u32(&b, 8);
	ipc_put_u32(&b, 3);
	v6_text(&b, "HardwareThreadCount");
	v6_text(&b, "16");
	v6_text(&b, "ProcessId");
	v6_text(&b, "42");
	v6_text(&b, "Anything");
	v6_text(&b, "else");
	v6_block(o, 1, &b);
}

/* Appends a row behind its size, which has 16 bits, and frees it. */
static void v6_row(struct outbuf *b, struct outbuf *row)
{
	nt_u16(b, (uint16_t)row->len);
	outbuf_put(b, row->data, row->len);
	outbuf_close(row);
	*row = outbuf_to(-1);
}

static void v6_field(struct outbuf *row, const char *name, const char *type, size_t type_bytes)
{
	struct outbuf f = outbuf_to(-1);

	v6_text(&f, name);
	outbuf_put(&f, type, type_bytes);
	outbuf_str(&f, "later versions");
	v6_row(row, &f);
}

static void v6_kinds(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1), row = outbuf_to(-1), options = outbuf_to(-1);

	nt_u16(&b, 3); /* an unknown header */
	outbuf_put(&b, "abc", 3);
	nt_varuint(&row, 300);
	v6_text(&row, "Mine");
	nt_varuint(&row, 7);
	v6_text(&row, "Tick");
	nt_u16(&row, 4);
	v6_field(&row, "a", "\x14", 1);           /* VarInt */
	v6_field(&row, "s", "\x13\x17", 2);       /* Array of UTF-8 units */
	v6_field(&row, "f", "\x16\x08\x02\0", 4); /* two u16 */
	v6_field(&row, "l", "\x18\x0a", 2);       /* RelLoc of u32 */
	outbuf_put(&options, "\1\2", 2);          /* opcode */
	ipc_put_u8(&options, 3);
	ipc_put_u64(&options, 0x10);
	ipc_put_u8(&options, 6);
	v6_text(&options, "key");
	v6_text(&options, "value");
	outbuf_put(&options, "\x08\4\x09\3", 4); /* level, version */
	v6_row(&row, &options);
	v6_row(&b, &row);
	v6_block(o, 3, &b);
}

static void v6_threads(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1), row = outbuf_to(-1);

	nt_varuint(&row, 1000);
	ipc_put_u8(&row, 1);
	v6_text(&row, "main");
	ipc_put_u8(&row, 2);
	nt_varuint(&row, 55);
	ipc_put_u8(&row, 3);
	nt_varuint(&row, 56);
	v6_row(&b, &row);
	v6_block(o, 6, &b);
}

static void v6_labels(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u32(&b, 8);
	ipc_put_u32(&b, 2);
	ipc_put_u8(&b, 0x81); /* the list 8: an activity */
	for (int i = 0; i < 2; i++)
		ipc_put_u64(&b, 0x0909);
	ipc_put_u8(&b, 5); /* the list 9 */
	v6_text(&b, "k");
	v6_text(&b, "v");
	ipc_put_u8(&b, 6);
	v6_text(&b, "n");
	nt_varuint(&b, 5);             /* -3 */
	outbuf_put(&b, "\x8a\x63", 2); /* the version is 99 */
	v6_block(o, 8, &b);
}

static void v6_stacks(struct outbuf *o)
{
	struct outbuf b = outbuf_to(-1);

	ipc_put_u32(&b, 3);
	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, 16);
	ipc_put_u64(&b, 0x1000);
	ipc_put_u64(&b, 0x2000);
	v6_block(o, 5, &b);
}

static const unsigned char payload[] = {
	3,              /* -2 */
	2, 0, 'h', 'i', /* "hi" */
	1, 0, 2,   0,   /* 1, 2 */
	1, 0, 8,   0,   /* 8 bytes, 1 byte behind this field */
	0, 7, 0,   0,   0, 8, 0, 0, 0,
};

static struct outbuf v6_events(uint16_t flags)
{
	struct outbuf b = outbuf_to(-1);

	nt_u16(&b, 22);
	nt_u16(&b, flags);
	ipc_put_u64(&b, 0);
	ipc_put_u64(&b, UINT64_MAX);
	nt_u16(&b, 0); /* an unknown field of the header */
	return b;
}

static void v6_compressed(struct outbuf *b, uint32_t sequence_step, uint8_t labels)
{
	ipc_put_u8(b, 0x9f);
	nt_varuint(b, 300);
	nt_varuint(b, sequence_step);
	nt_varuint(b, 1000);
	nt_varuint(b, 2);
	nt_varuint(b, 1000);
	nt_varuint(b, 3);
	nt_varuint(b, 100);
	nt_varuint(b, labels);
	nt_varuint(b, sizeof(payload));
	outbuf_put(b, payload, sizeof(payload));
}

static void v6_plain(struct outbuf *b, uint32_t sequence, uint64_t ticks)
{
	ipc_put_u32(b, 48 + sizeof(payload));
	ipc_put_u32(b, 300);
	ipc_put_u32(b, sequence);
	ipc_put_u64(b, 1000);
	ipc_put_u64(b, 1001); /* a thread that nothing describes */
	ipc_put_u32(b, 2);
	ipc_put_u32(b, 3);
	ipc_put_u64(b, ticks);
	ipc_put_u32(b, 0);
	ipc_put_u32(b, sizeof(payload));
	outbuf_put(b, payload, sizeof(payload));
}

static struct outbuf v6_stream(void)
{
	struct outbuf o = outbuf_to(-1), b;

	v6_begin(&o);
	v6_kinds(&o);
	v6_threads(&o);
	v6_labels(&o);
	v6_stacks(&o);
	b = v6_events(1);
	v6_compressed(&b, 0, 8);
	v6_compressed(&b, 2, 9);
	v6_block(&o, 2, &b);
	b = outbuf_to(-1);
	outbuf_str(&b, "whatever");
	v6_block(&o, 99, &b);
	b = outbuf_to(-1); /* a sequence point that forgets threads */
	ipc_put_u64(&b, 300);
	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, 1);
	nt_varuint(&b, 1000);
	nt_varuint(&b, 9);
	v6_block(&o, 4, &b);
	b = v6_events(0);
	v6_plain(&b, 1, 400);
	v6_plain(&b, 2, 500);
	v6_block(&o, 2, &b);
	b = outbuf_to(-1);
	v6_block(&o, 0, &b);
	return o;
}

#define V6_PAYLOAD " {\"p\":{\"a\":-2,\"s\":\"hi\",\"f\":[1,2],\"l\":[7,8]}}\n"

static void version_6_has_threads_and_labels(void **state)
{
	struct outbuf o = v6_stream();

	(void)state;
	for (size_t step = 1; step < 1000; step += 111) {
		assert_int_equal(read_stream(&o, o.len, step), 0);
		assert_string_equal(
			received.data,
			"Mine/7/Tick v3 l4 o2 at 100 by 56 of 55/56 act 9 stack 16 [1   "
			"0]" V6_PAYLOAD
			"Mine/7/Tick v99 l4 o2 at 200 by 56 of 55/56 act 0 stack 16 [5 k v 0]"
			" [6 n  -3] [10   99]" V6_PAYLOAD
			"Mine/7/Tick v3 l4 o2 at 400 by 1001 of 42/1000 act 0 stack 0" V6_PAYLOAD
			"Mine/7/Tick v3 l4 o2 at 500 by 1001 of 42/1000 act 0 stack 0" V6_PAYLOAD);
		/* Two between the events, and five up to the sequence point. */
		assert_true(ended && stats.events == 4 && stats.unknown == 1 && stats.lost == 7);
		assert_true(trace.version == 6 && trace.pid == 42 && trace.cpus == 16);
	}
	outbuf_close(&o);
}

/* More threads than the reader keeps, one after another. */
static void removed_threads_take_no_room(void **state)
{
	struct outbuf o = outbuf_to(-1), b = outbuf_to(-1), row = outbuf_to(-1);

	(void)state;
	v6_begin(&o);
	v6_kinds(&o);
	for (uint32_t i = 0; i < 2 * NETTRACE_THREADS_MAX; i++) {
		nt_varuint(&row, 5000 + i);
		ipc_put_u8(&row, 3);
		nt_varuint(&row, i);
		v6_row(&b, &row);
		if (i == 7)
			v6_threads(&o); /* stays */
		v6_block(&o, 6, &b);
		nt_varuint(&b, 5000 + i);
		nt_varuint(&b, 0);
		v6_block(&o, 7, &b);
	}
	b = v6_events(1);
	v6_compressed(&b, 0, 0);
	v6_block(&o, 2, &b);
	assert_int_equal(read_stream(&o, o.len, o.len), 0);
	assert_non_null(strstr(received.data, " by 56 of 55/56 "));
	outbuf_close(&o);
	outbuf_close(&b);
	outbuf_close(&row);
}

static void a_cut_stream_of_version_6_gives_its_whole_blocks(void **state)
{
	struct outbuf o = v6_stream();
	uint64_t most = 0;

	(void)state;
	for (size_t cut = 0; cut < o.len; cut++) {
		assert_int_equal(read_stream(&o, cut, cut ? cut : 1), 0);
		assert_false(ended);
		assert_true(stats.events >= most);
		most = stats.events;
	}
	assert_int_equal(most, 4);
	outbuf_close(&o);
}

/* Each byte of the stream takes each value that often ends in a wrong branch. */
static void damage_of_version_6_is_an_error_or_other_events(void **state)
{
	static const unsigned char values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct outbuf o = v6_stream();

	(void)state;
	damaged = true;
	for (size_t at = 0; at < o.len; at++) {
		char before = o.data[at];

		for (size_t i = 0; i < sizeof(values); i++) {
			o.data[at] = (char)values[i];
			int r = read_stream(&o, o.len, o.len);

			assert_true(!r || r == -EBADMSG || r == -E2BIG);
			assert_true(!r || err.what);
		}
		o.data[at] = before;
	}
	outbuf_close(&o);
	outbuf_close(&received);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(version_3_has_kinds_and_stacks_among_its_events),
		cmocka_unit_test(version_6_has_threads_and_labels),
		cmocka_unit_test(removed_threads_take_no_room),
		cmocka_unit_test(a_cut_stream_of_version_6_gives_its_whole_blocks),
		cmocka_unit_test(damage_of_version_6_is_an_error_or_other_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
