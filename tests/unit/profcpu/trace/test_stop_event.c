#include "profcpu/trace/stop_event.h"

#include "dotnet/eventpipe/session.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct stop_event stop;
static int matched;

static int forget(void **state)
{
	(void)state;
	stop_event_free(&stop);
	stop = (struct stop_event){0};
	return 0;
}

static int take(void *ctx, const struct nettrace_event *event)
{
	(void)ctx;
	matched += stop_event_matches(&stop, event, 8);
	return 0;
}

/* A trace with one event of the runtime: GCStart of a number and a depth. */
static bool matches(const char *of_provider, const char *event, const char *fields)
{
	const struct nettrace_listener listener = {.event = take};
	struct outbuf s = outbuf_to(-1), events = nt_events(true), payload = outbuf_to(-1);
	struct nettrace_blob blob = {.thread = 1, .capture_thread = 1};
	struct parse_error err;
	struct nettrace *n;

	stop.provider = of_provider;
	stop.event = event;
	if (fields)
		assert_int_equal(stop_event_fields(&stop, fields), 0);
	nt_head(&s);
	nt_trace(&s, 1000000000);
	nt_kind(&s, 1, PROVIDER_RUNTIME, 1, "", 2);
	ipc_put_u32(&payload, 17);
	ipc_put_u32(&payload, 2);
	for (int i = 0; i < 3; i++)
		ipc_put_u32(&payload, 0);
	blob.metadata_id = 1;
	blob.sequence = 1;
	blob.payload = (unsigned char *)payload.data;
	blob.payload_len = (uint32_t)payload.len;
	nt_compressed(&events, &blob, 0, 0);
	nt_block(&s, "EventBlock", &events);
	nt_end(&s);
	matched = 0;
	assert_int_equal(nettrace_new(&listener, &n), 0);
	assert_int_equal(nettrace_feed(n, s.data, s.len, &err), 0);
	assert_int_equal(nettrace_stats(n).events, 1);
	nettrace_free(n);
	outbuf_close(&s);
	outbuf_close(&payload);
	stop_event_free(&stop);
	return matched;
}

static void events_are_named_as_here_or_by_trace_event(void **state)
{
	(void)state;
	assert_true(matches(PROVIDER_RUNTIME, NULL, NULL));
	assert_true(matches("microsoft-windows-dotnetruntime", "GCStart", NULL));
	assert_true(matches(PROVIDER_RUNTIME, "gc/start", NULL));
	assert_true(matches(PROVIDER_RUNTIME, "1", NULL));
	assert_false(matches(PROVIDER_RUNTIME, "GCStar", NULL));
	assert_false(matches(PROVIDER_RUNTIME, "GCStarts", NULL));
	assert_false(matches(PROVIDER_RUNTIME, "2", NULL));
	assert_false(matches(PROVIDER_RUNDOWN, "GCStart", NULL));
	assert_false(matches(NULL, "GCStart", NULL));
}

static void all_values_must_match(void **state)
{
	(void)state;
	assert_true(matches(PROVIDER_RUNTIME, "GCStart", "Count:17"));
	assert_true(matches(PROVIDER_RUNTIME, "GCStart", "Depth:2,Count:17"));
	assert_false(matches(PROVIDER_RUNTIME, "GCStart", "Depth:2,Count:18"));
	assert_false(stop.field_missing);
	assert_false(matches(PROVIDER_RUNTIME, "GCStart", "Deep:2"));
	assert_true(stop.field_missing);
}

static void wrong_filters_are_refused(void **state)
{
	(void)state;
	assert_int_equal(stop_event_fields(&stop, "Depth"), -EINVAL);
	forget(NULL);
	assert_int_equal(stop_event_fields(&stop, ":2"), -EINVAL);
	forget(NULL);
	assert_int_equal(stop_event_fields(&stop, "Depth:2,"), -EINVAL);
	forget(NULL);
	assert_int_equal(stop_event_fields(&stop, "Depth:"), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(events_are_named_as_here_or_by_trace_event, forget),
		cmocka_unit_test_teardown(all_values_must_match, forget),
		cmocka_unit_test_teardown(wrong_filters_are_refused, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
