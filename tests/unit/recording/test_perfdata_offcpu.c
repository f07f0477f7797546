/* Samples that are waits, as written and as readers return them. */
#include "recording/perfdata_offcpu.h"

#include "recording/perfdata_records.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const struct perf_event_attr beside = {.type = PERF_TYPE_SOFTWARE,
					      .read_format = PERF_FORMAT_ID,
					      .use_clockid = 1,
					      .clockid = CLOCK_MONOTONIC};

static struct perfdata *reader(void)
{
	const struct perf_event_attr attr = perfdata_offcpu_attr(&beside, PERFDATA_OFFCPU_WAIT);
	struct perfdata *d;

	assert_int_equal(perfdata_records_new(&attr, 1, &d), 0);
	assert_int_equal(perfdata_records_add_id(d, 0, 99), 0);
	return d;
}

static void a_wait_is_read_as_it_was_written(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010),
				  PERF_CONTEXT_USER, 0x4000};
	const struct perfdata_offcpu wait = {.id = 99,
					     .pid = 7,
					     .tid = 8,
					     .cpu = 3,
					     .time_ns = 5000,
					     .off_ns = 1234,
					     .callchain = words,
					     .ncallchain = 4};
	_Alignas(8) unsigned char out[PERFDATA_OFFCPU_BYTES + sizeof(words)];
	struct perfdata *d = reader();
	struct perfdata_record r;

	(void)state;
	assert_int_equal(perfdata_offcpu_write(&wait, out), sizeof(out));
	assert_int_equal(perfdata_records_parse(d, (const void *)out, &r), 0);
	assert_int_equal(r.type, PERF_RECORD_SAMPLE);
	assert_int_equal(r.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_KERNEL);
	assert_int_equal(r.pid, 7);
	assert_int_equal(r.tid, 8);
	assert_int_equal(r.cpu, 3);
	assert_int_equal(r.time_ns, 5000);
	assert_int_equal(r.sample.period, 1234);
	assert_int_equal(r.sample.ip, words[1]);
	assert_int_equal(r.sample.ncallchain, 4);
	assert_memory_equal(r.sample.callchain, words, sizeof(words));
	perfdata_close(d);
}

static void a_wait_without_a_stack_is_a_sample_too(void **state)
{
	const struct perfdata_offcpu wait = {
		.id = 99, .pid = 7, .tid = 8, .time_ns = 5000, .off_ns = 1};
	_Alignas(8) unsigned char out[PERFDATA_OFFCPU_BYTES];
	struct perfdata *d = reader();
	struct perfdata_record r;

	(void)state;
	assert_int_equal(perfdata_offcpu_write(&wait, out), sizeof(out));
	assert_int_equal(perfdata_records_parse(d, (const void *)out, &r), 0);
	assert_int_equal(r.sample.ncallchain, 0);
	assert_int_equal(r.misc & PERF_RECORD_MISC_CPUMODE_MASK, PERF_RECORD_MISC_USER);
	perfdata_close(d);
}

/* The kernel makes such ids if others record the same event of a CPU. */
static void samples_with_foreign_ids_belong_to_the_named_event(void **state)
{
	const struct perfdata_offcpu wait = {
		.id = 98, .pid = 7, .tid = 8, .time_ns = 5000, .off_ns = 1};
	const struct perf_event_attr one = perfdata_offcpu_attr(&beside, PERFDATA_OFFCPU_WAIT),
				     attrs[] = {one, one};
	_Alignas(8) unsigned char out[PERFDATA_OFFCPU_BYTES];
	struct perfdata_record r;
	struct perfdata *d;

	(void)state;
	assert_int_equal(perfdata_records_new(attrs, 2, &d), 0);
	assert_int_equal(perfdata_records_add_id(d, 0, 99), 0);
	assert_int_equal(perfdata_offcpu_write(&wait, out), sizeof(out));
	assert_int_equal(perfdata_records_parse(d, (const void *)out, &r), -EBADMSG);
	perfdata_records_assign_unknown_ids(d, 1);
	assert_int_equal(perfdata_records_parse(d, (const void *)out, &r), 0);
	assert_true(r.event == 1 && r.tid == 8);
	assert_int_equal(perfdata_records_time(d, (const void *)out), 5000);
	perfdata_close(d);
}

static void a_callchain_too_long_for_a_record_is_refused(void **state)
{
	uint64_t *words = calloc(8200, 8);
	unsigned char *out = malloc(1 << 17);
	struct perfdata_offcpu wait = {.callchain = words,
				       .ncallchain = (UINT16_MAX - PERFDATA_OFFCPU_BYTES) / 8};

	(void)state;
	assert_true(words && out);
	assert_int_equal(perfdata_offcpu_write(&wait, out),
			 PERFDATA_OFFCPU_BYTES + wait.ncallchain * 8);
	wait.ncallchain++;
	assert_int_equal(perfdata_offcpu_write(&wait, out), 0);
	wait.ncallchain = SIZE_MAX / 8;
	assert_int_equal(perfdata_offcpu_write(&wait, out), 0);
	free(words);
	free(out);
}

static void the_event_is_known_without_its_name(void **state)
{
	const struct perf_event_attr wait = perfdata_offcpu_attr(&beside, PERFDATA_OFFCPU_WAIT),
				     waker = perfdata_offcpu_attr(&beside, PERFDATA_OFFCPU_WAKER);
	struct perf_event_attr other = wait;

	(void)state;
	assert_int_equal(perfdata_offcpu_kind(&wait), PERFDATA_OFFCPU_WAIT);
	assert_int_equal(perfdata_offcpu_kind(&waker), PERFDATA_OFFCPU_WAKER);
	assert_int_equal(perfdata_offcpu_kind(&beside), PERFDATA_OFFCPU_NONE);
	other.config1 = 0; /* written by perf */
	assert_int_equal(perfdata_offcpu_kind(&other), PERFDATA_OFFCPU_NONE);
	other.config1 = waker.config1 + 1;
	assert_int_equal(perfdata_offcpu_kind(&other), PERFDATA_OFFCPU_NONE);
	assert_string_equal(perfdata_offcpu_name(PERFDATA_OFFCPU_WAIT), PERFDATA_OFFCPU_NAME);
	assert_string_equal(perfdata_offcpu_name(PERFDATA_OFFCPU_WAKER), PERFDATA_WAKER_NAME);
	assert_null(perfdata_offcpu_name(PERFDATA_OFFCPU_NONE));
	assert_int_equal(wait.clockid, CLOCK_MONOTONIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_is_read_as_it_was_written),
		cmocka_unit_test(a_wait_without_a_stack_is_a_sample_too),
		cmocka_unit_test(samples_with_foreign_ids_belong_to_the_named_event),
		cmocka_unit_test(a_callchain_too_long_for_a_record_is_refused),
		cmocka_unit_test(the_event_is_known_without_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
