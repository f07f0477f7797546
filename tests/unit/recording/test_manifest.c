#include "base/json.h"
#include "recording/manifest.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char text_damage[] = "perf.data was cut off", text_tool[] = "profcpu 0.1.0";
static char text_host[] = "h\"\\\n\x01\xc3\xa9", text_empty[] = "",
	    text_rings[] = RECORDING_RINGS_FREE, text_ended[] = RECORDING_KILLED;

static void a_manifest_is_read_as_it_was_written(void **state)
{
	(void)state;
	char dir[] = "/tmp/profcpu-manifest.XXXXXX";
	struct recording_manifest m =
					  {
						  .format = RECORDING_FORMAT,
						  .tool = text_tool,
						  .host = text_host,
						  .ring_memory = text_rings,
						  .ended = text_ended,
						  .os_release = text_empty,
						  .freq_hz = UINT32_MAX,
						  .start_realtime_ns = UINT64_MAX,
						  .start_monotonic_ns = 1,
						  .duration_ns = 0,
						  .limits.cost[LIMIT_DEFERRED] = 7,
						  .unwound = true,
						  .blanks_copies = true,
						  .finished = true,
					  },
				  back = {0};

	assert_non_null(mkdtemp(dir));
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(recording_manifest_read(fd, &back, NULL, NULL), -ENOENT);
	assert_int_equal(recording_manifest_write(fd, &m), 0);
	m.symbols_complete = true;
	assert_int_equal(recording_manifest_write(fd, &m), 0);
	assert_int_equal(recording_manifest_read(fd, &back, NULL, NULL), 0);
	assert_int_equal(back.format, RECORDING_FORMAT);
	assert_string_equal(back.tool, text_tool);
	assert_string_equal(back.host, "h\"\\\\x0a\\x01\xc3\xa9"); /* printable */
	assert_string_equal(back.target, "");
	assert_string_equal(back.ring_memory, text_rings);
	assert_string_equal(back.ended, text_ended);
	assert_int_equal(back.freq_hz, UINT32_MAX);
	assert_true(back.start_realtime_ns == UINT64_MAX);
	assert_true(back.unwound && back.finished && back.symbols_complete);
	assert_true(back.blanks_copies);
	assert_null(back.damage);
	for (int i = 0; i < LIMITS; i++)
		assert_int_equal(back.limits.cost[i], i == LIMIT_DEFERRED ? 7 : 0);
	recording_manifest_free(&back);
	m.damage = text_damage;
	assert_int_equal(recording_manifest_write(fd, &m), 0);
	assert_int_equal(recording_manifest_read(fd, &back, NULL, NULL), 0);
	assert_string_equal(back.damage, text_damage);
	assert_true(back.finished);
	recording_manifest_free(&back);
	assert_int_equal(unlinkat(fd, RECORDING_MANIFEST, 0), 0);
	assert_int_equal(rmdir(dir), 0); /* no temporary file remains */
}

static int parse(const char *text, struct recording_manifest *m)
{
	return recording_manifest_parse(text, strlen(text), m, NULL);
}

static void fields_of_later_versions_are_skipped(void **state)
{
	(void)state;
	struct recording_manifest m;

	assert_int_equal(parse("{\"new\": {\"a\": [1, -2.5e3, {}, [], null, \"x\"], \"b\": false}, "
			       "\"format\": 1, "
			       "\"host\": \"\\u00e9\\ud83d\\ude00\\/\"}\n",
			       &m),
			 0);
	assert_string_equal(m.host, "\xc3\xa9\xf0\x9f\x98\x80/");
	recording_manifest_free(&m);
	assert_int_equal(parse("{\"format\": 2}", &m), -ENOTSUP);
}

static void texts_for_outputs_are_printable_and_bounded(void **state)
{
	(void)state;
	struct recording_manifest m;
	AUTO_FREE char *text = NULL;

	assert_true(asprintf(&text,
			     "{\"format\": 1, \"target\": \"\\u001b]0;x\\u0007%*d\", "
			     "\"damage\": \"\\u202e\\u009b2J\"}",
			     60000, 7) > 0);
	assert_int_equal(parse(text, &m), 0);
	assert_int_equal(strlen(m.target), RECORDING_TEXT_MAX);
	assert_memory_equal(m.target, "\\x1b]0;x\\x07 ", 13);
	assert_string_equal(m.target + RECORDING_TEXT_MAX - 3, "...");
	assert_string_equal(m.damage, "\\xe2\\x80\\xae\\xc2\\x9b2J");
	recording_manifest_free(&m);
}

static void damaged_manifests_are_refused(void **state)
{
	(void)state;
	static const char *const wrong[] = {
		"",
		"{",
		"{}",
		"[]",
		"{\"format\": 0}",
		"{\"format\": -1}",
		"{\"format\": 01}",
		"{\"format\": 1.0}",
		"{\"format\": \"1\"}",
		"{\"format\": 99999999999999999999}",
		"{\"format\": 4294967297}",
		"{\"format\": 1,}",
		"{\"format\": 1 \"host\": \"a\"}",
		"{,\"format\": 1}",
		"{\"format\": 1} x",
		"{\"format\" 1}",
		"{\"format\": 1, \"host\": 5}",
		"{\"format\": 1, \"host\": \"a}",
		"{\"format\": 1, \"host\": \"\\\"}",
		"{\"format\": 1, \"host\": \"\\x\"}",
		"{\"format\": 1, \"host\": \"\\u12\"}",
		"{\"format\": 1, \"host\": \"\\u0000\"}",
		"{\"format\": 1, \"host\": \"\\ud800\"}",
		"{\"format\": 1, \"host\": \"\\udc00\\ud800\"}",
		"{\"format\": 1, \"host\": \"a\nb\"}",
		"{\"format\": 1, \"finished\": 1}",
		"{\"format\": 1, \"x\": [1 2]}",
		"{\"format\": 1, \"x\": [,]}",
		"{\"format\": 1, \"x\": nul}",
		"{\"format\": 1, \"x\": }",
		"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
		"{\"x\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct recording_manifest m = {.format = 77};
		struct parse_error err = {0};

		assert_int_equal(recording_manifest_parse(wrong[i], strlen(wrong[i]), &m, &err),
				 -EBADMSG);
		assert_int_equal(m.format, 77);
		assert_non_null(err.what);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_manifest_is_read_as_it_was_written),
		cmocka_unit_test(fields_of_later_versions_are_skipped),
		cmocka_unit_test(texts_for_outputs_are_printable_and_bounded),
		cmocka_unit_test(damaged_manifests_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
