/* Options of a recording: targets, events, stacks, and where it is written. */
#ifndef PROFCPU_RECORD_OPTIONS_H
#define PROFCPU_RECORD_OPTIONS_H

#include "container/opener.h"
#include "profcpu/jit/capture.h"
#include "profcpu/record/unwind.h"
#include "sampler/sampler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RECORD_MAX_OVERHEAD 0.05

struct recording_manifest;

/* Something that is recorded beside the samples, by a thread of its own. */
struct record_beside {
	/* Begins, once samples are recorded. command: its process; 0: none. Does not wait. */
	void (*begin)(void *ctx, pid_t command);
	/* Asks for its end. Samples are still recorded until has_ended, for at most 15 s. */
	void (*end)(void *ctx);
	bool (*has_ended)(void *ctx);
	/* Completes the manifest, after has_ended or that time. */
	void (*note)(void *ctx, struct recording_manifest *m);
	uint64_t (*bytes)(void *ctx); /* written; they count for max_bytes */
	void *ctx;
};

struct record_options {
	const pid_t *pids; /* processes with all their threads and children */
	size_t npids;
	bool system_wide;
	/* A command to start, ended by NULL; NULL: none. Alone it is the target. With system_wide
	 * or pids only its end ends the recording. */
	char *const *argv;
	const char *const *events; /* perf's names; NULL: sampler_event_default */
	size_t nevents;
	bool no_cpu;      /* takes no samples: no events, frequency or period */
	uint32_t freq_hz; /* 0 with period 0: 99 */
	uint64_t period;
	uint64_t duration_ns; /* 0: until a signal or the end of the targets */
	/* Ends the recording when its records have these bytes; 0: no limit. Records that are in
	 * the rings at that moment are still written. */
	uint64_t max_bytes;
	/* Borrowed. manifest.json and perf.data in it are replaced; symbols/names and outputs of an
	 * older recording are removed. */
	int dir_fd;
	const char *dir; /* its path, for messages */
	bool quiet;      /* no progress line, no notes */
	bool count;      /* counts samples for record_result, at a small cost */
	bool no_kernel_stacks, no_user_stacks;
	uint16_t max_stack;   /* frames of the kernel's callchains */
	uint32_t stack_bytes; /* struct sampler_options; 0: callchains by frame pointers */
	bool stack_fixed;     /* stack_bytes is constant; else it adapts (unwind/copy_size.h) */
	size_t frames_max;    /* of an unwound stack; 0: as many as fit into a record */
	enum keep_stacks keep_stacks;
	bool off_cpu;            /* also records waits; needs stack_bytes */
	uint64_t off_cpu_min_ns; /* shorter waits are only counted */
	bool wakers_unused;      /* no warning if off_cpu cannot record wakers */
	/* Limit for off_cpu, recorder and target together: 0.05 for 5 percent; 0:
	 * RECORD_MAX_OVERHEAD; 1 and more: no limit. */
	double max_overhead;
	const char *target;    /* manifest "target", without arguments; NULL: made from the pids */
	struct opener *opener; /* borrowed; pins target processes; may be NULL */
	enum jit_names jit_names;           /* how names of JIT-compiled code are captured */
	bool jit_lines;                     /* captures data for its source lines too */
	size_t reserved_descriptors;        /* fails to begin if fewer are left; 0: no check */
	const struct record_beside *beside; /* borrowed; NULL: none */
	struct sampler_roots roots;         /* for tests */
	enum sampler_mode mode;             /* for tests */
};

#endif
