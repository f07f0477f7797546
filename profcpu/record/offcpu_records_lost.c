/* Records that are missing because a ring was full. */
#include "profcpu/record/offcpu_records_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Finds the times of a CPU's ring. *ret_times NULL: no such CPU. 0 or -ENOMEM. */
static int ring_times_of(struct record_offcpu *o, int32_t cpu, struct ring_times **ret_times)
{
	*ret_times = NULL;
	if (cpu < 0 || cpu >= CPUS_MAX)
		return 0;
	while (o->ring_times.len <= (size_t)cpu)
		if (vec_push(&o->ring_times, ((struct ring_times){0})))
			return -ENOMEM;
	*ret_times = &o->ring_times.v[cpu];
	return 0;
}

int record_offcpu_note_record(struct record_offcpu *o, const struct perfdata_record *record)
{
	struct ring_times *times;
	int r = ring_times_of(o, record->cpu, &times);

	o->others += record->type == PERF_RECORD_SAMPLE && !record_offcpu_wants(o, record->tid);
	if (times)
		times->read_ns = record->time_ns;
	return r;
}

int record_offcpu_lost(struct record_offcpu *o, int32_t cpu, uint64_t time_ns)
{
	uint64_t from_ns =
		cpu >= 0 && (size_t)cpu < o->ring_times.len ? o->ring_times.v[cpu].read_ns : 0;

	if (from_ns < o->options.begin_ns)
		from_ns = o->options.begin_ns;
	o->due = o->tasks.len;
	return offcpu_add(o->offcpu,
			  &(struct offcpu_event){.time_ns = from_ns < time_ns ? from_ns : time_ns,
						 .until_ns = time_ns,
						 .kind = OFFCPU_LOST});
}

int record_offcpu_full(struct record_offcpu *o, int32_t cpu, uint64_t time_ns)
{
	struct ring_times *times;
	int r = ring_times_of(o, cpu, &times);

	if (times)
		times->full_ns = time_ns;
	o->full |= times != NULL;
	return r;
}

/* Handles rings that were full before this read. If a later record came, the kernel has reported
 * the loss. */
int record_offcpu_take_full(struct record_offcpu *o, uint64_t end_ns)
{
	int r = 0;

	for (size_t i = 0; i < o->ring_times.len && o->full && !r; i++) {
		struct ring_times *times = &o->ring_times.v[i];
		uint64_t until_ns = times->full_ns < end_ns ? times->full_ns : end_ns;

		if (times->read_ns < until_ns)
			r = record_offcpu_lost(o, (int32_t)i, until_ns);
		times->full_ns = 0;
	}
	o->full = false;
	return r;
}
