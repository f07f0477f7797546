#include "profcpu/counters/counter_list.h"

#include "profcpu/counters/counter_session.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct counter_list list;

static int forget(void **state)
{
	(void)state;
	counter_list_free(&list);
	list = (struct counter_list){0};
	return 0;
}

/* The groups as text, "!" before those of EventCounters only. */
static const char *groups(const char *text)
{
	static char out[512];
	size_t len = 0;

	forget(NULL);
	*out = 0;
	if (counter_list_add(&list, text))
		return list.why;
	for (size_t i = 0; i < list.v.len; i++) {
		const struct counter_group *g = &list.v.v[i];

		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s%s%s", i ? " " : "",
					g->events_only ? "!" : "", g->provider);
		for (size_t k = 0; k < g->names.len; k++)
			len += (size_t)snprintf(out + len, sizeof(out) - len, "/%s",
						g->names.v[k].name);
	}
	return out;
}

static void lists_are_those_of_dotnet_counters(void **state)
{
	(void)state;
	assert_string_equal(groups("System.Runtime"), "System.Runtime");
	assert_string_equal(groups("System.Runtime[cpu-usage,gc-heap-size],EventCounters\\A[b],M"),
			    "System.Runtime/cpu-usage/gc-heap-size !A/b M");
	assert_string_equal(groups(" A , B[ x , y ]"), "A B/x/y");
	assert_string_equal(groups("A[],B"), "A B");
	assert_string_equal(groups("A[,x,]"), "A/x");
	/* One provider twice: its names together, or all of them. */
	assert_string_equal(groups("A[x],B,a[y,x]"), "A/x/y B");
	assert_string_equal(groups("A[x],A"), "A");
	assert_string_equal(groups("A,A[x]"), "A");
	assert_string_equal(groups("*"), "*");
}

static void wrong_lists_are_refused(void **state)
{
	(void)state;
	assert_string_equal(groups(""), "the name of a provider is missing");
	assert_string_equal(groups("A,"), "the name of a provider is missing");
	assert_string_equal(groups("A,,B"), "the name of a provider is missing");
	assert_string_equal(groups("[x]"), "the name of a provider is missing");
	assert_string_equal(groups("A[x"), "'A[x' lacks a ]");
	assert_string_equal(groups("A[x[y]"), "'A[x[y]' has [ twice");
	assert_string_equal(groups("A[x]y"), "'A[x]y' has text after ]");
	assert_string_equal(groups("A,EventCounters\\A"),
			    "A stands with and without EventCounters\\");
	assert_string_equal(groups("A\"b"), "'A\"b': a provider has no quote and no backslash");
	assert_string_equal(groups("A\\b"), "'A\\b': a provider has no quote and no backslash");
}

static void counters_are_found_and_marked(void **state)
{
	struct counter_group *g;

	(void)state;
	groups("A[x,y],B");
	g = counter_list_find(&list, "a", "y");
	assert_ptr_equal(g, &list.v.v[0]);
	assert_null(counter_list_find(&list, "A", "Y"));
	assert_null(counter_list_find(&list, "C", "x"));
	assert_ptr_equal(counter_list_find(&list, "B", "any"), &list.v.v[1]);
	counter_group_mark(g, "y");
	assert_true(g->seen && g->names.v[1].seen);
	assert_false(g->names.v[0].seen || list.v.v[1].seen);
}

static void sessions_have_the_arguments_of_the_runtime(void **state)
{
	const struct counter_session_limits limits = {
		.interval_ms = 1500, .max_series = 7, .max_histograms = 3, .shared = true};
	struct counter_session s;
	char expected[512];

	(void)state;
	groups("A[x,y],EventCounters\\E,B");
	assert_int_equal(counter_session_make(&s, &list, &limits), 0);
	assert_int_equal(s.providers.len, 4);
	assert_string_equal(s.providers.v[1].name, "E");
	assert_string_equal(s.providers.v[1].arguments, "EventCounterIntervalSec=1.5");
	assert_string_equal(s.providers.v[3].name, "System.Diagnostics.Metrics");
	assert_int_equal(strlen(s.client), 36);
	snprintf(expected, sizeof(expected),
		 "SessionId=SHARED;Metrics=A\\x,A\\y,B;RefreshInterval=1.5;MaxTimeSeries=7;"
		 "MaxHistograms=3;ClientId=%s",
		 s.client);
	assert_string_equal(s.providers.v[3].arguments, expected);
	counter_session_free(&s);

	/* Older runtimes share nothing, and = would end a value. */
	const struct counter_session_limits alone = {.interval_ms = 1000};

	groups("A=;B");
	assert_int_equal(counter_session_make(&s, &list, &alone), 0);
	assert_string_not_equal(s.id, s.client);
	assert_non_null(strstr(s.providers.v[1].arguments, ";Metrics=\"A=;B\";RefreshInterval=1;"));
	counter_session_free(&s);
	groups("EventCounters\\E");
	assert_int_equal(counter_session_make(&s, &list, &alone), 0);
	assert_int_equal(s.providers.len, 1);
	counter_session_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_are_those_of_dotnet_counters),
		cmocka_unit_test(wrong_lists_are_refused),
		cmocka_unit_test(counters_are_found_and_marked),
		cmocka_unit_test(sessions_have_the_arguments_of_the_runtime),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
