/* Samples of a runtime's own sampler, and the samples of the recording that they are compared with.
 */
#include "profcpu/post/import_impl.h"

#include <linux/perf_event.h>

/* Short or estimated waits may be this part of a thread's life, and it is still compared. */
#define IMPORT_MISSING_PART 100

int post_import_trace_samples(struct import *in, uint64_t before_ns)
{
	const struct symbolizer_stack plain = SYMBOLIZER_STACK_PLAIN;
	struct compare_unnamed unnamed;
	int r = 0;

	while (!r && in->compare && compare_next(in->compare, before_ns, &unnamed)) {
		struct perfdata_record record = {.type = PERF_RECORD_SAMPLE,
						 .misc = PERF_RECORD_MISC_USER,
						 .time_ns = unnamed.time_ns,
						 .pid = compare_pid(in->compare),
						 .tid = unnamed.tid,
						 .cpu = -1,
						 .sample = {.callchain = unnamed.callchain,
							    .ncallchain = unnamed.ncallchain}};
		struct import_deferred deferred = {.sample = {.time_ns = unnamed.time_ns},
						   .file_off = unnamed.number,
						   .of_trace = true};

		r = symbolizer_begin(in->symbols, &record, &plain, &deferred.begun);
		if (!r)
			r = post_import_defer(in, &deferred);
	}
	return r;
}

int post_import_end_trace_sample(struct import *in, const struct import_deferred *deferred)
{
	uint32_t thread, stack;
	int r = symbolizer_end(in->symbols, &deferred->begun, deferred->sample.time_ns, &thread,
			       &stack);

	if (!r)
		compare_name(in->compare, deferred->file_off, thread, stack);
	return r;
}

int post_import_compare(struct import *in, uint64_t file_off, const struct profile_sample *sample)
{
	const struct offcpu_idx_wait *row;

	if (!in->compare)
		return 0;
	if (!profile_event_of(in->profile, sample->event)->off_cpu)
		return sample->event == in->compared_event ? compare_take_cpu(in->compare, sample)
							   : 0;
	row = in->offcpu ? offcpu_idx_find(in->offcpu, file_off) : NULL;
	if (!row || row->flags & OFFCPU_IDX_ESTIMATED)
		return 0;
	struct timeline_wait wait = {.end_ns = row->end_ns ? row->end_ns : sample->time_ns,
				     .runnable_ns = row->runnable_ns};

	wait.begin_ns = wait.end_ns > sample->weight ? wait.end_ns - sample->weight : 0;
	return compare_take_wait(in->compare, sample, &wait);
}

int post_import_compare_finish(struct import *in)
{
	const struct offcpu_idx *idx = in->offcpu;
	int r = 0;

	for (size_t i = 0; idx && i < idx->nthreads && !r; i++) {
		const struct offcpu_idx_thread *t = &idx->threads[i];
		bool known = t->estimated_ns + t->short_ns <=
			     (t->end_ns - t->begin_ns) / IMPORT_MISSING_PART;

		r = compare_take_life(in->compare, t->pid, t->tid, t->begin_ns, t->end_ns, known);
	}
	for (size_t i = 0; idx && i < idx->nunknowns && !r; i++)
		r = compare_take_unknown(in->compare, idx->unknowns[i].tid,
					 idx->unknowns[i].begin_ns, idx->unknowns[i].end_ns);
	return r ? r : compare_finish(in->compare);
}
