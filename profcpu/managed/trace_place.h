/*
 * The place of a trace in a recording: its process, the ids of its threads, and its clock, as the
 * recording knows them.
 */
#ifndef PROFCPU_MANAGED_TRACE_PLACE_H
#define PROFCPU_MANAGED_TRACE_PLACE_H

#include "base/hashmap.h"
#include "dotnet/eventpipe/nettrace.h"

#include <sys/types.h>

struct trace_place_options {
	/* Thread ids in both PID namespaces (RECORDING_TRACE_THREADS); borrowed; -1: the same. */
	int threads_fd;
	pid_t pid; /* as the recording knows the process; 0: as the trace does */
	/* Our clock before the session was asked for and after it began; 0: not known. */
	uint64_t sent_ns, received_ns;
};

struct trace_place {
	pid_t pid;
	int64_t offset_ns;    /* clock of the trace minus that of the recording */
	uint64_t error_ns;    /* at most; 0: not known, so the clocks are taken as equal */
	uint64_t begin_ns;    /* when the trace began, by the clock of the recording */
	struct hashmap outer; /* tid in its namespace -> tid */
};

/* 0; -ENOMEM. The caller frees *ret_place in any case. */
int trace_place_find(const struct trace_place_options *options, const struct nettrace_trace *head,
		     struct trace_place *ret_place);
void trace_place_free(struct trace_place *place);

/* The id of a thread; 0: not known. */
int32_t trace_place_tid(const struct trace_place *place, uint64_t inner);

/* A time of the trace, by the clock of the recording. */
uint64_t trace_place_ns(const struct trace_place *place, uint64_t trace_ns);

#endif
