/* The samples of the recording that those of a runtime's own sampler are compared with, the waits
 * that get causes, and the CPU samples of the runtime's own work. */
#include "profcpu/managed/profiles.h"
#include "profcpu/post/import_impl.h"

/* Short or estimated waits may be this part of a thread's life, and it is still compared. */
#define IMPORT_MISSING_PART 100

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

int post_import_cause(struct import *in, uint64_t file_off, const struct profile_sample *sample)
{
	const struct offcpu_idx_wait *row;
	uint64_t runnable_ns, length_ns;

	if (!in->managed)
		return 0;
	if (sample->event == in->compared_event)
		return managed_profiles_take_cpu(in->managed, sample);
	row = in->offcpu && profile_event_of(in->profile, sample->event)->off_cpu
		      ? offcpu_idx_find(in->offcpu, file_off)
		      : NULL;
	if (!row)
		return 0;
	runnable_ns = row->runnable_ns < sample->weight ? row->runnable_ns : sample->weight;
	struct cause_wait wait = {.end_ns = row->end_ns ? row->end_ns : sample->time_ns,
				  .blocked_ns = sample->weight - runnable_ns,
				  .runnable_ns = runnable_ns,
				  .thread = sample->thread,
				  .stack = sample->stack};

	/* One that stands for others has no time of its own. */
	wait.is_estimated = row->flags & OFFCPU_IDX_ESTIMATED || row->count != 1;
	if (wait.is_estimated)
		wait.end_ns = 0;
	length_ns = sample->weight;
	wait.begin_ns = wait.end_ns > length_ns ? wait.end_ns - length_ns : 0;
	wait.end_ns = wait.end_ns > runnable_ns ? wait.end_ns - runnable_ns : 0;
	if (wait.end_ns < wait.begin_ns)
		wait.end_ns = wait.begin_ns;
	return managed_profiles_take_wait(in->managed, &wait);
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
