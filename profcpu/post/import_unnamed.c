/* Stacks of traces are named between the samples of the recording, by their times. */
#include "profcpu/post/import_impl.h"

#include <linux/perf_event.h>

static int begin_unnamed(struct import *in, uint32_t source, const struct unnamed_stack *stack)
{
	const struct symbolizer_stack plain = SYMBOLIZER_STACK_PLAIN;
	struct perfdata_record record = {
		.type = PERF_RECORD_SAMPLE,
		.misc = PERF_RECORD_MISC_USER,
		.time_ns = stack->time_ns,
		.pid = in->sources[source].pid,
		.tid = stack->tid,
		.cpu = -1,
		.sample = {.callchain = stack->callchain, .ncallchain = stack->ncallchain}};
	struct import_deferred deferred = {.sample = {.time_ns = stack->time_ns},
					   .file_off = stack->number,
					   .source = source,
					   .of_trace = true};
	int r = symbolizer_begin(in->symbols, &record, &plain, &deferred.begun);

	return r ? r : post_import_defer(in, &deferred);
}

int post_import_unnamed(struct import *in, uint64_t before_ns)
{
	struct unnamed_stack stack;
	int r = 0;

	for (uint32_t i = 0; i < in->nsources; i++)
		while (!r && in->sources[i].next(in->sources[i].ctx, before_ns, &stack))
			r = begin_unnamed(in, i, &stack);
	return r;
}

int post_import_end_unnamed(struct import *in, const struct import_deferred *deferred)
{
	const struct unnamed_source *source = &in->sources[deferred->source];
	uint32_t thread, stack;
	int r = symbolizer_end(in->symbols, &deferred->begun, deferred->sample.time_ns, &thread,
			       &stack);

	if (!r)
		source->name(source->ctx, deferred->file_off, thread, stack);
	return r;
}
