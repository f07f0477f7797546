/* Records into a directory: the part of `profcpu collect` before post-processing. */
#ifndef PROFCPU_RECORD_RECORD_H
#define PROFCPU_RECORD_RECORD_H

#include "profcpu/record/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum record_end {
	RECORD_END_DURATION,
	RECORD_END_SIGNAL, /* one of record_watch_signals */
	RECORD_END_SIZE,   /* max_bytes */
	RECORD_END_TARGET, /* all target processes, or the command, have ended */
	RECORD_END_ERROR,  /* such as a full disk; earlier data are on disk */
};

struct record_result {
	bool started; /* perf.data has a header, so the recording can be post-processed */
	enum record_end end;
	int end_signal;    /* with RECORD_END_SIGNAL */
	int command_error; /* -errno: the command could not be executed; nothing was recorded */
	bool command_ended;
	int command_status; /* of waitpid, with command_ended */
	uint64_t start_realtime_ns, start_monotonic_ns, duration_ns;
	uint64_t samples; /* all with count; else only the samples walked */
	uint64_t lost, data_bytes;
	/* The new perf.data. Some file systems give our files to another user than us. */
	struct stat written;
	bool names_lost; /* names of JIT-compiled code could not be written; logged */
	size_t detached; /* processes that the kernel stopped sampling at an exec; logged */
	char event[SAMPLER_EVENT_NAME_MAX]; /* first event's name, as in the recording */
	char event_why[128];                /* why it was chosen; empty if the user named it */
	struct sampler_setup setup;
};

/*
 * Records until the duration is over, the targets have ended, or a signal of record_watch_signals
 * comes. A second one ends the process at once, also after the return, with the exit notice
 * (exit_notice.h), except a second SIGHUP or SIGXCPU. Logs errors, warnings and notes.
 *
 * 0, or -errno, already logged. -EINTR: a signal came before the recording began; nothing is kept.
 * ret_result->started: there is a recording to post-process.
 *
 * Blocks these signals while it runs and restores the signal mask. SIGPIPE and SIGXFSZ stay
 * ignored, and so do SIGHUP and SIGXCPU after one came.
 */
int record_run(const struct record_options *options, struct record_result *ret_result);

#endif
