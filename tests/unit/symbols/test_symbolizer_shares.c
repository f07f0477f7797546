/* Processes that take all the memory for names they may, and a neighbour that comes later. */
#include "profile/profile.h"
#include "symbols/symbolizer_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static uint64_t little_memory(void)
{
	return 1 << 20;
}

/* Returns the thread of a sample with that name. */
static const struct profile_thread *sample(struct profile *p, struct symbolizer *s, int32_t pid,
					   const char *comm)
{
	const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1000};
	struct perfdata_record r = {.type = PERF_RECORD_COMM, .pid = pid, .tid = pid, .time_ns = 1};
	struct symbolizer_sample begun;
	uint32_t thread, stack;

	r.comm.name = comm;
	assert_int_equal(symbolizer_apply(s, &r), 0);
	r.type = PERF_RECORD_SAMPLE;
	r.sample.callchain = chain;
	r.sample.ncallchain = 2;
	assert_int_equal(symbolizer_begin(s, &r, &SYMBOLIZER_STACK_PLAIN, &begun), 0);
	assert_int_equal(symbolizer_end(s, &begun, r.time_ns, &thread, &stack), 0);
	assert_int_equal(s->lookup_cache.taker, pid);
	return profile_thread_of(p, thread);
}

static void a_neighbour_of_threads_with_many_names_keeps_its_own(void **state)
{
	enum { GREEDY = 4, NAMES = 2000 };
	struct symbolizer_options options = {.offline = true, .store_dir_fd = -1};
	const struct profile_thread *t = NULL;
	struct symbolizer *s;
	struct profile *p;
	char name[16];

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	profile_limit_memory(p, little_memory);
	assert_int_equal(symbolizer_new(p, &options, &s), 0);
	assert_in_range(s->lookup_cache.names.limit, 1, UINT64_MAX / 2);
	for (int32_t pid = 1; pid <= GREEDY; pid++)
		for (int i = 0; i < NAMES; i++) {
			snprintf(name, sizeof(name), "t%d.%d", pid, i);
			t = sample(p, s, pid, name);
			assert_true(i || t->pid == pid);
		}
	/* Samples beyond the share have no thread of their own, and are counted. */
	assert_int_equal(t->tid, -1);
	assert_string_equal(profile_text_of(p, t->comm, NULL), PROFILE_LEFT_OUT);
	assert_in_range(profile_left_out(p), GREEDY * NAMES / 2, 2 * GREEDY * NAMES);
	t = sample(p, s, GREEDY + 1, "neighbour");
	assert_int_equal(t->pid, GREEDY + 1);
	assert_string_equal(profile_text_of(p, t->comm, NULL), "neighbour");
	symbolizer_free(s);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_neighbour_of_threads_with_many_names_keeps_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
