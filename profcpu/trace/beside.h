/*
 * Records events of a .NET runtime beside the samples of its CPUs: trace.nettrace in the recording.
 * A thread of its own reads the session, so that a slow runtime delays no samples.
 */
#ifndef PROFCPU_TRACE_BESIDE_H
#define PROFCPU_TRACE_BESIDE_H

#include "dotnet/eventpipe/session.h"
#include "profcpu/record/options.h"

#include <sys/types.h>

#define BESIDE_PROVIDERS_MAX 3
#define BESIDE_IDS_MAX 64 /* of one provider */

struct beside_options {
	pid_t pid;                                /* 0: the command of the recording */
	const struct session_provider *providers; /* copied, except texts */
	size_t nproviders;
	const char *events; /* manifest "trace_events"; borrowed; NULL: none */
	uint32_t buffer_mb;
	int dir_fd; /* of the recording; borrowed */
};

struct beside;

/* 0; -ENOMEM; -E2BIG: too many providers or ids. */
int beside_new(const struct beside_options *options, struct beside **ret_beside);

/* For record_options; valid as long as b. */
const struct record_beside *beside_of_recording(const struct beside *b);

/* After the recording: reports what the trace lacks. 0; -errno after one log_error line. */
int beside_check(struct beside *b);

/* Abandons the thread if it hangs. NULL: nothing to do. */
void beside_free(struct beside *b);

#endif
