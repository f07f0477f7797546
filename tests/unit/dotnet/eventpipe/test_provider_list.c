#include "dotnet/eventpipe/provider_list.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct provider_list list;
static char shown[4096];

static int forget(void **state)
{
	(void)state;
	provider_list_free(&list);
	list = (struct provider_list){0};
	return 0;
}

/* "NAME:KEYWORDS:LEVEL[:ARGUMENTS]", one after another. */
static const char *show(void)
{
	*shown = 0;
	for (size_t i = 0; i < list.v.len; i++) {
		const struct session_provider *p = &list.v.v[i];
		size_t len = strlen(shown);

		snprintf(shown + len, sizeof(shown) - len, "%s%s:%llx:%u%s%s", i ? " " : "",
			 p->name, (unsigned long long)p->keywords, p->level,
			 p->arguments ? ":" : "", p->arguments ? p->arguments : "");
	}
	return shown;
}

static const char *after(const char *text)
{
	assert_int_equal(provider_list_add(&list, text), 0);
	return show();
}

static void providers_are_read_as_dotnet_trace_reads_them(void **state)
{
	(void)state;
	assert_string_equal(after("A"), "A:0:4");
	forget(NULL);
	assert_string_equal(after("A:1F:5,B:0x10::,C::verbose,D:ffffffffffffffff:LogAlways"),
			    "A:1f:5 B:10:4 C:0:5 D:ffffffffffffffff:0");
	forget(NULL);
	/* Levels over the highest are the highest. */
	assert_string_equal(after("A:1:99"), "A:1:5");
	forget(NULL);
	assert_string_equal(after("System.Runtime:0:1:EventCounterIntervalSec=1"),
			    "System.Runtime:0:1:EventCounterIntervalSec=1");
}

static void quotes_and_escapes_keep_separators(void **state)
{
	(void)state;
	assert_string_equal(after("A:1:5:Spec=\"x,y;z=1\";Other=2;,B"),
			    "A:1:5:Spec=\"x,y;z=1\";Other=2; B:0:4");
	forget(NULL);
	assert_string_equal(after("A:1:5:Spec=\\\"x,y\\r\\n\\\\\\\""), "A:1:5:Spec=\"x,y\r\n\\\"");
}

static void one_provider_named_twice_is_merged(void **state)
{
	(void)state;
	assert_string_equal(after("A:1:2,B,a:4:4:k=v"), "A:5:4:k=v B:0:4");
	/* 0 means all levels. */
	assert_string_equal(after("A:0:0"), "A:5:0:k=v B:0:4");
	assert_int_equal(provider_list_add(&list, "A:0:0:k=w"), -EINVAL);
	assert_string_equal(list.why, "A has arguments twice");
}

static void refused(const char *text, const char *why)
{
	assert_int_equal(provider_list_add(&list, text), -EINVAL);
	if (!strstr(list.why, why))
		fail_msg("'%s': %s", text, list.why);
}

static void wrong_texts_are_refused(void **state)
{
	(void)state;
	refused("", "the name of a provider is missing");
	refused("A,,B", "the name of a provider is missing");
	refused(":1", "the name of a provider is missing");
	refused("A:xyz", "keywords 'xyz' are not a hexadecimal number");
	refused("A:-1", "keywords '-1'");
	refused("A:10000000000000000", "of 64 bits");
	refused("A:1:loud", "level 'loud' is neither");
	refused("A:1:-2", "level '-2' is neither");
	refused("A:1:5:novalue", "arguments of A are not KEY=VALUE");
	refused("A:1:5:k=v;novalue", "arguments of A");
	refused("A:1:5:=v", "arguments of A");
	refused("A:1:5:k=\"open", "arguments of A");
}

static void profiles_leave_named_providers_alone(void **state)
{
	(void)state;
	assert_int_equal(provider_list_add(&list, PROVIDER_RUNTIME ":1:1"), 0);
	assert_int_equal(provider_list_add_profile(&list, "Dotnet-Common"), 0);
	assert_int_equal(provider_list_add_profile(&list, "dotnet-sampled-thread-time"), 0);
	assert_string_equal(show(), PROVIDER_RUNTIME ":1:1 " PROVIDER_SAMPLER ":0:4");
	forget(NULL);
	assert_int_equal(provider_list_add_profile(&list, "gc-verbose"), 0);
	assert_string_equal(show(), PROVIDER_RUNTIME ":8003:5");
	assert_int_equal(provider_list_add_profile(&list, "gc-collect"), 0);
	assert_int_equal(provider_list_add_profile(&list, "database"), 0);
	assert_true(provider_list_has(&list, "Microsoft-Diagnostics-DiagnosticSource"));
	assert_int_equal(provider_list_add_profile(&list, "cpu"), -EINVAL);
	assert_string_equal(list.why,
			    "'cpu' is not a profile; the profiles are dotnet-common, "
			    "dotnet-sampled-thread-time, gc-verbose, gc-collect, database");
}

static void groups_of_the_runtimes_events_are_keywords(void **state)
{
	(void)state;
	assert_int_equal(provider_list_add_runtime(&list, "gc+Exception+gc", "verbose"), 0);
	assert_string_equal(show(), PROVIDER_RUNTIME ":8001:5");
	/* The provider is in the list already. */
	assert_int_equal(provider_list_add_runtime(&list, "jit", NULL), 0);
	assert_string_equal(show(), PROVIDER_RUNTIME ":8001:5");
	assert_int_equal(provider_list_add_runtime(&list, "gc+", NULL), 0);
	assert_int_equal(provider_list_add_runtime(&list, "gc++jit", NULL), -EINVAL);
	assert_int_equal(provider_list_add_runtime(&list, "gcs", NULL), -EINVAL);
	assert_string_equal(list.why, "'gcs' is not a group of the runtime's events");
	assert_int_equal(provider_list_add_runtime(&list, "gc", "loud"), -EINVAL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(providers_are_read_as_dotnet_trace_reads_them, forget),
		cmocka_unit_test_teardown(quotes_and_escapes_keep_separators, forget),
		cmocka_unit_test_teardown(one_provider_named_twice_is_merged, forget),
		cmocka_unit_test_teardown(wrong_texts_are_refused, forget),
		cmocka_unit_test_teardown(profiles_leave_named_providers_alone, forget),
		cmocka_unit_test_teardown(groups_of_the_runtimes_events_are_keywords, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
