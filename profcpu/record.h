/* Recording into a directory: what `profcpu collect` does before post-processing. */
#ifndef PROFCPU_RECORD_H
#define PROFCPU_RECORD_H

#include "container/opener.h"
#include "profcpu/jit_capture.h"
#include "profcpu/record_unwind.h"
#include "sampler/sampler.h"
#include "unwind/copy_size.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_MAX_OVERHEAD 0.05

struct record_options {
	const pid_t *pids; /* processes with all their threads and children */
	size_t npids;
	bool system_wide;
	char *const *argv; /* a command to start, ended by NULL; NULL: none. Alone: it is the
			    * target; with system_wide or pids: its end ends the recording */
	const char *const *events; /* perf's names; NULL: hardware cycles or cpu-clock, as the
				      machine has it */
	size_t nevents;
	uint32_t freq_hz; /* 0 with period 0: 99 */
	uint64_t period;
	uint64_t duration_ns; /* 0: until a signal or the targets' end */
	int dir_fd;           /* borrowed; manifest.json and perf.data are written into this directory,
				 replacing such files; symbols/names and derived
				 outputs of an older recording are removed */
	const char *dir;      /* its path, for messages */
	bool quiet;           /* no progress line, no notes */
	bool count;           /* record_result tells of samples; a little dearer */
	bool no_kernel_stacks, no_user_stacks;
	uint16_t max_stack; /* frames of the kernel's callchains */
	uint32_t stack_bytes; /* struct sampler_options; 0: stacks are the kernel's chains of frame pointers */
	bool stack_fixed; /* stack_bytes stays as it is; else it follows what stacks need (unwind/copy_size.h) */
	size_t frames_max; /* of an unwound stack; 0: as many as a record has room for */
	enum keep_stacks keep_stacks;
	bool off_cpu; /* what threads do while they do not run, too; with stack_bytes */
	uint64_t off_cpu_min_ns; /* shorter waits are only counted */
	double max_overhead; /* of off_cpu: recorder and target's loss together, 0.05 for 5 percent; 0: RECORD_MAX_OVERHEAD; 1 and more: as
			      * much as it takes */
	const char *target; /* manifest "target", in words, program names only; NULL: made from the
			       pids */
	struct opener *opener; /* borrowed; target processes are held in it as they are seen; may be
				  NULL */
	enum jit_names jit_names; /* how names of JIT-compiled code are taken meanwhile */
	bool jit_lines;           /* and what its source lines are found by */
	size_t spare_descriptors; /* with fewer left for all else it does not begin; 0: it tries */
	struct sampler_roots roots; /* for tests */
	enum sampler_mode mode;     /* for tests */
};

enum record_end {
	RECORD_END_DURATION,
	RECORD_END_SIGNAL, /* SIGINT, SIGTERM or SIGHUP, once */
	RECORD_END_TARGET, /* all target processes, or the command, have ended */
	RECORD_END_ERROR,  /* what came before is on disk (no space left, ...); record_run gives
			      -errno */
};

struct record_result {
	bool started; /* perf.data has a header and sampling began: what is there can be
			 post-processed */
	enum record_end end;
	int end_signal; /* with RECORD_END_SIGNAL */
	int command_error; /* -errno: the command could not be executed, so nothing was recorded */
	bool command_ended;
	int command_status; /* as of waitpid, with command_ended */
	uint64_t start_realtime_ns, start_monotonic_ns, duration_ns;
	uint64_t samples; /* with count; else those that were looked at */
	uint64_t lost, data_bytes;
	bool names_lost; /* of JIT-compiled code: they could not be written; said by log_warn */
	size_t detached; /* processes that the kernel stopped sampling at an exec; said by log_warn */
	char event[SAMPLER_EVENT_NAME_MAX]; /* first event's name, as in the recording */
	char event_why[128]; /* why it was chosen, in words; empty when the user named it */
	struct sampler_setup setup;
};

/*
 * Records until the duration is over, the targets have ended or SIGINT, SIGTERM or SIGHUP came (a
 * second SIGINT or SIGTERM quits the process at once, with what is on disk by then and a line on
 * stderr that says where, also after this has returned). Messages go through log_error, log_warn
 * and log_note. 0; or -errno, said by log_error (-EINTR: a signal while recording began, nothing
 * was kept): ret_result->started tells whether there is something to post-process. Blocks these
 * signals while it runs and gives the signal mask back as it was; SIGPIPE and SIGXFSZ are ignored
 * from then on, and SIGHUP after one came.
 */
int record_run(const struct record_options *options, struct record_result *ret_result);

#endif
