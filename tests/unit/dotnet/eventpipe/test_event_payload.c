/* event_fields and event_payload: values of every type, of descriptions and of layouts. */
#include "dotnet/eventpipe/event_payload.h"

#include "base/json.h"
#include "dotnet/eventpipe/event_table.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct outbuf text, out;
static struct event_fields fields;
static struct nettrace_kind kind;
static bool whole;

static void forget_fields(void)
{
	event_fields_free(&fields);
	outbuf_close(&text);
	text = outbuf_to(-1);
	fields = (struct event_fields){.text = &text};
}

static void use_fields(void)
{
	event_fields_place(&fields, text.data);
	kind = (struct nettrace_kind){.fields = fields.v.v, .nfields = fields.v.len};
}

static void use_layout(const char *layout)
{
	forget_fields();
	assert_int_equal(event_fields_of_layout(&fields, layout), 0);
	use_fields();
}

static struct nettrace_event event_of(const void *payload, size_t len)
{
	return (struct nettrace_event){.kind = &kind,
				       .blob = {.payload = payload, .payload_len = (uint32_t)len}};
}

/* The values as JSON, without the braces and the newline of the document. */
static const char *values(const void *payload, size_t len)
{
	/* An exact allocation makes a read past the end visible. */
	void *copy = malloc(len ? len : 1);
	struct nettrace_event event;
	struct json_writer w;
	struct json j;

	outbuf_close(&out);
	out = outbuf_to(-1);
	assert_non_null(copy);
	memcpy(copy, payload, len);
	event = event_of(copy, len);
	w = json_put_document(&out, 0);
	whole = event_payload_put(&event, 8, &w, "p");
	json_put_end(&w);
	free(copy);
	outbuf_char(&out, 0);
	assert_int_equal(out.error, 0);
	j = json_of(out.data, out.len - 1);
	assert_int_equal(json_skip(&j), 0);
	assert_int_equal(json_end(&j), 0);
	out.data[out.len - 3] = 0; /* }\n */
	return out.data + strlen("{\"p\":");
}

#define VALUES(payload) values(payload, sizeof(payload) - 1)

static void layouts_give_values_of_each_type(void **state)
{
	static const char numbers[] = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
				      "\xfe\xff\xff\xff\xfd\xff\xff\xff\xff\xff\xff\xff"
				      "\x00\x00\xc0\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f\1\0\0\0"
				      "\0\x10\0\0\0\0\0\0";

	(void)state;
	use_layout("a:u8 b:u16 c:u32 d:u64 e:i32 f:i64 g:f32 h:f64 i:bool j:ptr");
	assert_string_equal(VALUES(numbers),
			    "{\"a\":255,\"b\":65535,\"c\":4294967295,\"d\":18446744073709551615,"
			    "\"e\":-2,\"f\":-3,\"g\":1.5,\"h\":0.1,\"i\":true,\"j\":4096}");
	assert_true(whole);
	use_layout("g:guid t:text u:text8");
	assert_string_equal(VALUES("\x33\x22\x11\x00\x55\x44\x77\x66\x88\x99\xaa\xbb\xcc\xdd\xee"
				   "\xff"
				   "\xe4\0\"\0\x3d\xd8\0\0"
				   "x\n\0"),
			    "{\"g\":\"00112233-4455-6677-8899-aabbccddeeff\",\"t\":\"\xc3\xa4\\\""
			    "\xef\xbf\xbd\",\"u\":\"x\\u000a\"}");
	assert_true(whole);
	/* NaN and the infinities are no numbers of JSON. */
	use_layout("a:f32 b:f32 c:f32");
	assert_string_equal(VALUES("\0\0\xc0\x7f\0\0\x80\x7f\0\0\x80\xff"),
			    "{\"a\":\"NaN\",\"b\":\"Infinity\",\"c\":\"-Infinity\"}");
}

static void layouts_have_arrays_with_earlier_numbers(void **state)
{
	(void)state;
	use_layout("n:u16 v:[n]{id:u32 m:u8 name:text8 in:[m]u16} tail:u8");
	assert_string_equal(VALUES("\2\0"
				   "\1\0\0\0\2a\0\3\0\4\0"
				   "\2\0\0\0\0b\0"
				   "\7"),
			    "{\"n\":2,\"v\":[{\"id\":1,\"m\":2,\"name\":\"a\",\"in\":[3,4]},"
			    "{\"id\":2,\"m\":0,\"name\":\"b\",\"in\":[]}],\"tail\":7}");
	assert_true(whole);
	use_layout("n:u32 bytes:[n]u8");
	assert_string_equal(VALUES("\2\0\0\0\xab\1"), "{\"n\":2,\"bytes\":\"0xab01\"}");
	/* More elements than the payload has. */
	assert_string_equal(VALUES("\xff\xff\xff\xff\xab"), "{\"n\":4294967295}");
	assert_false(whole);
}

/* Older versions of an event have fewer fields, newer ones more. */
static void payloads_may_end_early_or_late(void **state)
{
	struct event_value value;

	(void)state;
	use_layout("a:u32 b:u16 c:text");
	assert_string_equal(VALUES("\1\0\0\0"), "{\"a\":1}");
	assert_true(whole);
	assert_string_equal(VALUES("\1\0\0\0\2"), "{\"a\":1}");
	assert_false(whole);
	assert_string_equal(VALUES("\1\0\0\0\2\0x\0"), "{\"a\":1,\"b\":2}");
	assert_false(whole);
	assert_string_equal(VALUES("\1\0\0\0\2\0x\0\0\0more"), "{\"a\":1,\"b\":2,\"c\":\"x\"}");
	assert_false(whole);
	struct nettrace_event event = event_of("\1\0\0\0\2\0x\0\0\0", 10);

	assert_int_equal(event_payload_find(&event, 8, "b", &value), 0);
	assert_true(value.type == EVENT_U16 && value.number == 2);
	assert_int_equal(event_payload_find(&event, 8, "c", &value), 0);
	assert_true(value.type == EVENT_TEXT16 && value.len == 1);
	assert_int_equal(event_payload_find(&event, 8, "d", &value), -ENOENT);
	event.blob.payload_len = 5;
	assert_int_equal(event_payload_find(&event, 8, "b", &value), -EBADMSG);
	event.blob.payload_len = 4;
	assert_int_equal(event_payload_find(&event, 8, "b", &value), -ENOENT);
}

static void wrong_layouts_are_refused(void **state)
{
	static const char *const wrong[] = {
		"a",     "a:",      ":u8",       "a:u9",       "a:{b:u8",
		"a:u8}", "a:[b]u8", "b:u8 a:[b", "b:u8 a:[b]", "a:{b:u8} c:[b]u8",
		"a:u8u8"};
	char deep[512] = "";

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		forget_fields();
		assert_int_equal(event_fields_of_layout(&fields, wrong[i]), -EBADMSG);
	}
	for (int i = 0; i < 40; i++)
		strcat(deep, "a:{");
	forget_fields();
	assert_int_equal(event_fields_of_layout(&fields, deep), -E2BIG);
}

static void all_layouts_are_right_and_found(void **state)
{
	const struct event_layout *layout;
	const char *provider = NULL;
	size_t n = 0;

	(void)state;
	for (; (layout = event_layout_at(n, &provider)); n++) {
		use_layout(layout->fields);
		assert_true(kind.nfields <= 64);
		assert_ptr_equal(event_layout_find(provider, layout->id, layout->version), layout);
		assert_true(*layout->name);
	}
	assert_true(n > 200);
	layout = event_layout_find("Microsoft-Windows-DotNETRuntime", 80, 1);
	assert_string_equal(layout->name, "ExceptionThrown");
	/* A version that is newer than the table. */
	assert_ptr_equal(event_layout_find("Microsoft-Windows-DotNETRuntime", 80, 200), layout);
	assert_null(event_layout_find("Microsoft-Windows-DotNETRuntime", 60000, 1));
	assert_null(event_layout_find("Mine", 80, 1));
}

static void put_v1(struct outbuf *b, uint32_t type, const char *name)
{
	ipc_put_u32(b, type);
	if (name)
		nt_text(b, name);
}

/* As EventSource describes fields: nested objects of counters, and arrays in a second list. */
static void descriptions_of_version_4_are_read(void **state)
{
	struct outbuf b = outbuf_to(-1), array = outbuf_to(-1);

	(void)state;
	ipc_put_u32(&b, 1);
	ipc_put_u32(&b, EVENT_OBJECT); /* one object without a name, with two fields */
	ipc_put_u32(&b, 2);
	put_v1(&b, EVENT_TEXT16, "Name");
	put_v1(&b, EVENT_TIME, "At");
	nt_text(&b, "");
	struct reader r = reader_of(b.data, b.len);

	forget_fields();
	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V1), 0);
	assert_int_equal(reader_left(&r), 0);
	use_fields();
	assert_string_equal(VALUES("c\0\0\0\x80\x16\xd7\xd5\xde\xb1\x9d\x01"),
			    "{\"\":{\"Name\":\"c\",\"At\":\"1970-01-01T00:00:01.0000000Z\"}}");
	assert_true(whole);
	/* Times before 1970, and after the last year of four digits. */
	use_layout("a:u8");
	fields.v.v[0].type = EVENT_TIME;
	assert_string_equal(VALUES("\0\0\0\0\0\0\0\0"), "{\"a\":\"1601-01-01T00:00:00.0000000Z\"}");
	assert_string_equal(VALUES("\xff\xff\xff\xff\xff\xff\xff\xff"),
			    "{\"a\":18446744073709551615}");
	/* The second list: each field has its size. */
	ipc_put_u32(&array, 1);
	ipc_put_u32(&array, 4 + 4 + 8);
	nt_text(&array, "a");
	ipc_put_u32(&array, EVENT_ARRAY);
	ipc_put_u32(&array, EVENT_I8);
	r = reader_of(array.data, array.len);
	forget_fields();
	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V2), 0);
	use_fields();
	assert_string_equal(VALUES("\2\0\1\xff"), "{\"a\":[1,-1]}");
	/* No array was possible in the first list. */
	array.len = 0;
	ipc_put_u32(&array, 1);
	put_v1(&array, EVENT_ARRAY, NULL);
	put_v1(&array, EVENT_I8, "a");
	r = reader_of(array.data, array.len);
	forget_fields();
	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V1), -EBADMSG);
	outbuf_close(&b);
	outbuf_close(&array);
}

/* Descriptions can promise more than any payload has. */
static void hostile_descriptions_cost_little(void **state)
{
	struct outbuf b = outbuf_to(-1);

	(void)state;
	/* Arrays of arrays of objects without fields: 65,535 x 65,535 elements in 2 bytes. */
	forget_fields();
	nt_u16(&b, 1);
	nt_u16(&b, 2 + 3 + 3 + 3);
	outbuf_put(&b, "\1a\x16\x16\1\0\0\xff\xff\xff\xff", 11);
	struct reader r = reader_of(b.data, b.len);

	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V6), 0);
	use_fields();
	values("\1\1", 2);
	assert_false(whole);
	assert_true(out.len < 100000);
	/* Types in one another without end. */
	b.len = 0;
	nt_u16(&b, 1);
	nt_u16(&b, 1000);
	outbuf_put(&b, "\1a", 2);
	for (int i = 0; i < 998; i++)
		outbuf_char(&b, EVENT_ARRAY);
	r = reader_of(b.data, b.len);
	forget_fields();
	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V6), -E2BIG);
	/* Too many fields. */
	b.len = 0;
	nt_u16(&b, EVENT_FIELDS_MAX + 1);
	for (int i = 0; i <= EVENT_FIELDS_MAX; i++) {
		nt_u16(&b, 2);
		outbuf_put(&b, "\0\6", 2);
	}
	r = reader_of(b.data, b.len);
	forget_fields();
	assert_int_equal(event_fields_parse(&fields, &r, EVENT_FIELDS_V6), -E2BIG);
	outbuf_close(&b);
}

static void put_one(void *ctx, const char *name, const struct event_value *value)
{
	(void)ctx;
	outbuf_printf(&out, "%s=%llu ", name, (unsigned long long)value->number);
}

/* The values outside of arrays, as text. */
static const char *each(const char *layout, const void *payload, size_t len, int result)
{
	use_layout(layout);
	outbuf_close(&out);
	out = outbuf_to(-1);
	struct nettrace_event event = event_of(payload, len);

	assert_int_equal(event_payload_each(&event, 8, put_one, NULL), result);
	outbuf_char(&out, 0);
	return out.data;
}

static void each_value_outside_of_arrays_is_passed_on(void **state)
{
	(void)state;
	assert_string_equal(each("a:u8 o:{b:u8 p:{c:u16}} d:u8", "\1\2\3\0\4", 5, 0),
			    "a=1 b=2 c=3 d=4 ");
	assert_string_equal(each("n:u8 v:[n]{x:u8} z:u8", "\2\7\7\3", 4, 0), "n=2 z=3 ");
	/* An older version ends earlier, a damaged one in a value or an object. */
	assert_string_equal(each("a:u8 b:u8", "\1", 1, 0), "a=1 ");
	assert_string_equal(each("a:u8 b:u16", "\1\2", 2, -EBADMSG), "a=1 ");
	assert_string_equal(each("o:{a:u8 b:u16}", "\1", 1, -EBADMSG), "a=1 ");
}

static int tear_down(void **state)
{
	(void)state;
	forget_fields();
	outbuf_close(&text);
	outbuf_close(&out);
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(layouts_give_values_of_each_type),
		cmocka_unit_test(layouts_have_arrays_with_earlier_numbers),
		cmocka_unit_test(payloads_may_end_early_or_late),
		cmocka_unit_test(wrong_layouts_are_refused),
		cmocka_unit_test(all_layouts_are_right_and_found),
		cmocka_unit_test(descriptions_of_version_4_are_read),
		cmocka_unit_test(hostile_descriptions_cost_little),
		cmocka_unit_test(each_value_outside_of_arrays_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, tear_down);
}
