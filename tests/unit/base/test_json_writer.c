#include "base/json.h"
#include "base/json_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct outbuf document(int lines)
{
	struct outbuf out = outbuf_to(-1);
	struct json_writer top = json_put_document(&out, lines);

	json_put_text(&top, "text", "a\"\n");
	json_put_text(&top, "none", NULL);
	struct json_writer list = json_put_array(&top, "list");
	struct json_writer item = json_put_object(&list, NULL);

	json_put_u64(&item, "most", UINT64_MAX);
	json_put_i64(&item, "least", INT32_MIN);
	json_put_end(&item);
	json_put_bool(&list, NULL, false);
	json_put_end(&list);
	struct json_writer empty = json_put_object(&top, "empty");

	json_put_end(&empty);
	json_put_end(&top);
	outbuf_char(&out, 0);
	assert_int_equal(out.error, 0);
	return out;
}

static void levels_above_the_limit_have_lines(void **state)
{
	(void)state;
	struct outbuf all = document(JSON_LINES_ALL), two = document(2), none = document(0);

	assert_string_equal(all.data, "{\n"
				      "  \"text\": \"a\\\"\\u000a\",\n"
				      "  \"none\": null,\n"
				      "  \"list\": [\n"
				      "    {\n"
				      "      \"most\": 18446744073709551615,\n"
				      "      \"least\": -2147483648\n"
				      "    },\n"
				      "    false\n"
				      "  ],\n"
				      "  \"empty\": {}\n"
				      "}\n");
	assert_string_equal(two.data, "{\n"
				      "  \"text\": \"a\\\"\\u000a\",\n"
				      "  \"none\": null,\n"
				      "  \"list\": [\n"
				      "    {\"most\":18446744073709551615,\"least\":-2147483648},\n"
				      "    false\n"
				      "  ],\n"
				      "  \"empty\": {}\n"
				      "}\n");
	assert_string_equal(none.data,
			    "{\"text\":\"a\\\"\\u000a\",\"none\":null,\"list\":[{\"most\":"
			    "18446744073709551615,\"least\":-2147483648},false],\"empty\":{}}\n");
	outbuf_close(&all);
	outbuf_close(&two);
	outbuf_close(&none);
}

static void the_reader_reads_it(void **state)
{
	(void)state;
	for (int lines = 0; lines < 4; lines++) {
		struct outbuf out = document(lines);
		struct json j = json_of(out.data, out.len - 1);

		assert_int_equal(json_skip(&j), 0);
		assert_int_equal(json_end(&j), 0);
		outbuf_close(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_above_the_limit_have_lines),
		cmocka_unit_test(the_reader_reads_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
