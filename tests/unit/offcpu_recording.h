/* A perf.data as profcpu records it with --off-cpu. */
#ifndef TESTS_OFFCPU_RECORDING_H
#define TESTS_OFFCPU_RECORDING_H

#include "recording/perfdata_offcpu.h"
#include "recording/perfdata_writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* Ids of the events. */
#define ON_CPU 97
#define WAITS 98
#define WAKERS 99

/* Writes the samples to fd, each at ret_offs[i]; ret_offs may be NULL. */
static inline void offcpu_recording_write(int fd, const struct perfdata_offcpu *samples, size_t n,
					  uint64_t *ret_offs)
{
	static const uint64_t ids[] = {ON_CPU, WAITS, WAKERS};
	const struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.read_format = PERF_FORMAT_ID,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD |
			       PERF_SAMPLE_CALLCHAIN,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC};
	const struct perfdata_writer_event events[] = {
		{.attr = clock, .name = "cpu-clock", .ids = &ids[0], .nids = 1},
		{.attr = perfdata_offcpu_attr(&clock, PERFDATA_OFFCPU_WAIT),
		 .name = PERFDATA_OFFCPU_NAME,
		 .ids = &ids[1],
		 .nids = 1},
		{.attr = perfdata_offcpu_attr(&clock, PERFDATA_OFFCPU_WAKER),
		 .name = PERFDATA_WAKER_NAME,
		 .ids = &ids[2],
		 .nids = 1}};
	const struct perfdata_writer_info info = {.version = "profcpu 1"};
	_Alignas(8) unsigned char out[PERFDATA_OFFCPU_BYTES + 64];
	struct perfdata_writer *w;

	assert_int_equal(perfdata_writer_new(fd, events, 3, &info, &w), 0);
	for (size_t i = 0; i < n; i++) {
		size_t bytes = perfdata_offcpu_write(&samples[i], out);

		if (ret_offs)
			ret_offs[i] = perfdata_writer_next(w);
		assert_int_equal(perfdata_writer_records(w, out, bytes), 0);
		assert_int_equal(perfdata_writer_round(w), 0);
	}
	assert_int_equal(perfdata_writer_finish(w, 1, 9999), 0);
	perfdata_writer_free(w);
}

#endif
