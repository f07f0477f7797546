/* profcpu/import: perf.data into a profile. */
#include "profcpu/post/import.h"

#include "base/cleanup.h"
#include "flamegraph/collapse.h"
#include "profcpu/post/report_waits.h"
#include "profcpu/post/wall.h"
#include "tests/unit/cpu_limit.h"
#include "tests/unit/offcpu_recording.h"
#include "tests/unit/perfdata_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int recorded(const struct perfdata_offcpu *waits, size_t n, uint64_t *ret_offs)
{
	int fd = memfd_create("perf.data", 0);

	assert_true(fd >= 0);
	offcpu_recording_write(fd, waits, n, ret_offs);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void check_folded(struct profile *profile, struct collapse_options *options,
			 const char *expected)
{
	struct outbuf out = outbuf_to(-1);
	struct collapse_stats stats;

	options->event_filter = PERFDATA_OFFCPU_NAME;
	assert_int_equal(collapse_write(profile, options, &out, &stats), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, expected);
	outbuf_close(&out);
}

static void all_outputs_mark_a_wait_without_a_stack(void **state)
{
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x4000};
	const struct perfdata_offcpu waits[] = {
		{.id = WAITS, .pid = 7, .tid = 8, .time_ns = 2000, .off_ns = 700},
		{.id = WAITS,
		 .pid = 7,
		 .tid = 8,
		 .time_ns = 3000,
		 .off_ns = 300,
		 .callchain = chain,
		 .ncallchain = 2}};
	struct offcpu_idx_thread row = {.tid = 8,
					.pid = 7,
					.begin_ns = 1300,
					.end_ns = 3000,
					.running_ns = 700,
					.blocked_ns = 1000};
	const struct offcpu_idx idx = {.threads = &row, .nthreads = 1};
	const struct import_options options = {
		.symbols = {.store_dir_fd = -1, .offline = true, .by_function = true},
		.write_store_dir_fd = -1,
		.offcpu = &idx};
	struct collapse_options off_cpu = {0}, wall = {.include_pid = true, .include_tid = true};
	AUTO_FREE struct profile_group *groups = NULL;
	AUTO_CLOSE int fd = recorded(waits, 2, NULL);
	struct import_result result;
	struct profile *profile;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(post_import_perfdata(fd, &options, profile, &result), 0);
	check_folded(profile, &off_cpu, ":8;[no stack] 700\n:8;[unknown] 300\n");
	assert_int_equal(post_wall_groups(profile, &idx, NULL, &groups, &wall.ngroups), 0);
	wall.groups = groups;
	check_folded(profile, &wall,
		     ":8-7/8;[no stack] 700\n:8-7/8;[not sampled] 700\n:8-7/8;[unknown] 300\n");
	profile_free(profile);
}

/* A period that no recorder writes is a weight like others. */
static void the_largest_period_is_a_weight(void **state)
{
	const struct perfdata_offcpu waits[] = {
		{.id = WAITS, .pid = 7, .tid = 8, .time_ns = 2000, .off_ns = UINT64_MAX}};
	const struct import_options options = {
		.symbols = {.store_dir_fd = -1, .offline = true, .by_function = true},
		.write_store_dir_fd = -1};
	struct collapse_options off_cpu = {0};
	AUTO_CLOSE int fd = recorded(waits, 1, NULL);
	struct import_result result;
	struct profile *profile;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(post_import_perfdata(fd, &options, profile, &result), 0);
	check_folded(profile, &off_cpu, ":8;[no stack] 18446744073709551615\n");
	profile_free(profile);
}

static void time_without_a_cpu_has_a_frame_of_its_own(void **state)
{
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x4000};
	struct perfdata_offcpu waits[4];
	uint64_t offs[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		waits[i] = (struct perfdata_offcpu){.id = WAITS,
						    .pid = 7,
						    .tid = 8,
						    .time_ns = 2000 + 1000 * i,
						    .off_ns = 300,
						    .callchain = chain,
						    .ncallchain = i < 3 ? 2 : 0};
	AUTO_CLOSE int fd = recorded(waits, 4, offs);
	/* Woken, blocked only, preempted; one without a stack. */
	struct offcpu_idx_wait rows[] = {{.file_off = offs[0], .runnable_ns = 120, .count = 1},
					 {.file_off = offs[1], .count = 1},
					 {.file_off = offs[2],
					  .runnable_ns = 300,
					  .count = 1,
					  .flags = OFFCPU_IDX_PREEMPTED},
					 {.file_off = offs[3], .runnable_ns = 1000, .count = 1}};
	const struct offcpu_idx idx = {.waits = rows, .nwaits = 4};
	const struct import_options options = {
		.symbols = {.store_dir_fd = -1, .offline = true, .by_function = true},
		.write_store_dir_fd = -1,
		.offcpu = &idx};
	struct import_result result;
	struct profile *profile;
	struct report_waits sums;
	struct idle *idle;

	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(post_import_perfdata(fd, &options, profile, &result), 0);
	assert_int_equal(idle_new(profile, &idle), 0);
	assert_int_equal(report_waits_sum(profile, idle, &sums), 0);
	idle_free(idle);
	assert_int_equal(sums.ns, 4 * 300);
	assert_int_equal(result.waits, 4);
	assert_int_equal(result.off_runnable_ns, 120 + 300 + 300);
	check_folded(profile, &(struct collapse_options){.names = COLLAPSE_FULL},
		     ":8;[no stack];[waiting for a CPU] 300\n:8;[unknown] 480\n"
		     ":8;[unknown];[waiting for a CPU] 420\n");
	/* As perf script prints the waits. */
	check_folded(profile, &(struct collapse_options){0},
		     ":8;[no stack] 300\n:8;[unknown] 900\n");
	profile_free(profile);
}

/* It is not code that lacks a name. */
static void samples_without_stack_are_not_audited(void **state)
{
	const struct perfdata_offcpu wait = {
		.id = WAITS, .pid = 7, .tid = 8, .time_ns = 2000, .off_ns = 700};
	AUTO_CLOSE int fd = recorded(&wait, 1, NULL);
	struct audit audit = {0};
	const struct import_options options = {.symbols = {.store_dir_fd = -1, .offline = true},
					       .write_store_dir_fd = -1,
					       .ret_audit = &audit};
	struct import_result result;
	struct profile *profile;

	(void)state;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(post_import_perfdata(fd, &options, profile, &result), 0);
	assert_int_equal(audit.samples, 1);
	assert_int_equal(audit.groups.len, 0);
	audit_free(&audit);
	profile_free(profile);
}

/* The stack of a group's sample is read once, and counts for each of the group's counters. */
static void a_group_has_one_stack(void **state)
{
	enum { RECORDS = 200, VALUES = 3900, FRAMES = 4000 };
	struct build_event e = {.attr = {.type = PERF_TYPE_SOFTWARE,
					 .size = sizeof(e.attr),
					 .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
							PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN,
					 .read_format = PERF_FORMAT_GROUP,
					 .sample_id_all = 1}};
	const struct import_options options = {
		.symbols = {.store_dir_fd = -1, .offline = true, .by_function = true},
		.write_store_dir_fd = -1};
	struct collapse_options folding = {0};
	struct collapse_stats stats;
	struct outbuf out = outbuf_to(-1);
	struct build b = {0};
	struct import_result result;
	struct profile *profile;
	clock_t begun;

	(void)state;
	build_file(&b, &e, 1);
	for (size_t i = 0; i < RECORDS; i++) {
		build_record(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
		build_u64(&b, 7 | 7ULL << 32);
		build_u64(&b, 1000 + i);
		build_u64(&b, VALUES);
		for (uint64_t k = 0; k < VALUES; k++)
			build_u64(&b, 1 + k + i * VALUES); /* grows by more than 0 */
		build_u64(&b, FRAMES);
		build_u64(&b, PERF_CONTEXT_USER);
		for (size_t k = 1; k < FRAMES; k++)
			build_u64(&b, 0x1000);
		build_record_end(&b);
	}
	build_data_end(&b);
	AUTO_CLOSE int fd = build_fd(&b);

	begun = clock();
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(post_import_perfdata(fd, &options, profile, &result), 0);
	assert_int_equal(result.data.samples, result.data.records);
	assert_in_range(result.data.samples, RECORDS * (VALUES - 1), RECORDS * VALUES);
	assert_int_equal(collapse_write(profile, &folding, &out, &stats), 0);
	assert_true(clock() - begun < cpu_limit(1));
	outbuf_char(&out, 0);
	assert_non_null(strstr(out.data, ":7;[unknown];[unknown]"));
	assert_ptr_equal(strchr(out.data, '\n') + 1, out.data + out.len - 1); /* one stack */
	outbuf_close(&out);
	profile_free(profile);
	build_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_outputs_mark_a_wait_without_a_stack),
		cmocka_unit_test(the_largest_period_is_a_weight),
		cmocka_unit_test(time_without_a_cpu_has_a_frame_of_its_own),
		cmocka_unit_test(samples_without_stack_are_not_audited),
		cmocka_unit_test(a_group_has_one_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
