/* Records, then makes the outputs: what `profcpu collect` and `profcpu compare` share. */
#ifndef PROFCPU_COLLECT_H
#define PROFCPU_COLLECT_H

#include "base/vec.h"
#include "profcpu/arguments.h"
#include "profcpu/post/postprocess.h"
#include "profcpu/record/record.h"

#define COLLECT_SECONDS 30
#define COLLECT_HZ 99
/* bytes of the first copies of stacks: enough for 93 to 99 % of the stacks of .NET services */
#define COLLECT_STACK_BYTES 24576

struct collect_arguments {
	struct record_options record;
	struct postprocess_options post;
	struct fetch_options fetch;
	struct options_pids pids;
	VEC(const char *) events;
	const char *out;
	bool record_only, has_duration;
	bool eventpipe;    /* records samples of the .NET runtime's own sampler, too */
	unsigned profiles; /* records these event profiles: bits of enum managed_kind */
};

/*
 * Records the targets of a, or the only .NET process in sight, and makes the outputs. Returns an
 * exit status of base/exit_status.h.
 */
int collect_run(struct collect_arguments *a);

void collect_free(struct collect_arguments *a);

#endif
