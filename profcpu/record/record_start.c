/*
 * From opened to sampling. Everything that takes time comes first: the files of the recording, pins
 * of running processes, the capture of names, and the records so far. Sampling begins last. A
 * command is executed after that.
 */
#include "profcpu/record/record_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/remedy.h"
#include "symbols/jit/methods_file.h"
#include "symbols/jit/users.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RECORD_OLDER RECORDING_PERF_DATA ".old" /* the name that perf record uses too */

/* Removes files of an older recording, which do not match this one. */
static void remove_older(const struct record *rec)
{
	static const char *const names[] = {
		RECORDING_SVG,           RECORDING_FOLDED,       RECORDING_SCRIPT,
		RECORDING_REPORT,        RECORDING_ARCHIVE,      RECORDING_SAMPLES,
		RECORDING_OFFCPU_FOLDED, RECORDING_OFFCPU_SVG,   RECORDING_OFFCPU,
		RECORDING_WALL_FOLDED,   RECORDING_WALL_SVG,     RECORDING_WAKEUP_FOLDED,
		RECORDING_WAKEUP_SVG,    RECORDING_COMPARE,      RECORDING_COMPARE_TEXT,
		RECORDING_COMPARE_SVG,   RECORDING_COMPARE_DIFF, RECORDING_TRACE,
		RECORDING_TRACE_THREADS};
	AUTO_CLOSE int symbols_fd = openat(rec->options->dir_fd, RECORDING_SYMBOLS,
					   O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (symbols_fd >= 0) {
		(void)unlinkat(symbols_fd, RECORDING_NAMES, 0);
		(void)unlinkat(symbols_fd, RECORDING_STACKS, 0);
		(void)unlinkat(symbols_fd, JIT_USERS_FILE, 0);
		(void)jit_methods_remove(symbols_fd);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(rec->options->dir_fd, names[i], 0);
}

/* Replaces an older recording only now, so that a failed start keeps it. */
static int take_place(struct record *rec)
{
	const struct record_options *o = rec->options;
	bool older = !renameat(o->dir_fd, RECORDING_PERF_DATA, o->dir_fd, RECORD_OLDER);

	if (!older && errno != ENOENT)
		return record_report_io(rec, "move aside", RECORDING_PERF_DATA, -errno);
	if (renameat(o->dir_fd, RECORD_BEGUN, o->dir_fd, RECORDING_PERF_DATA))
		return record_report_io(rec, "write", RECORDING_PERF_DATA, -errno);
	rec->in_place = true;
	remove_older(rec);
	if (rec->unwind && renameat(o->dir_fd, RECORD_IDX_BEGUN, o->dir_fd, RECORDING_SAMPLES))
		return record_report_io(rec, "write", RECORDING_SAMPLES, -errno);
	if (rec->unwind && rec->switches.offcpu &&
	    renameat(o->dir_fd, RECORD_OFFCPU_IDX_BEGUN, o->dir_fd, RECORDING_OFFCPU))
		return record_report_io(rec, "write", RECORDING_OFFCPU, -errno);
	if (older && !o->quiet)
		log_note("%s: replaces an older recording; its samples are kept in " RECORD_OLDER,
			 o->dir);
	return record_write_manifest(rec);
}

static int start_command(struct record *rec)
{
	rec->command.opener = rec->pin.opener;
	int r = rec->command.pid ? record_child_go(&rec->command) : 0;

	rec->result->command_error = r;
	if (r)
		log_error("cannot execute %s: %s", rec->options->argv[0], strerror(-r));
	return r;
}

static void pin_targets(struct record *rec)
{
	const struct record_options *o = rec->options;
	size_t n;
	const pid_t *targets = sampler_targets(rec->sampler, &n);

	if (o->system_wide)
		record_pin_all(&rec->pin);
	for (size_t i = 0; i < n && o->opener; i++)
		(void)opener_pin(o->opener, targets[i]);
}

/* Starts the capture of JIT names. A failure is not fatal. Its thread inherits the blocked signals.
 */
static void begin_capture(struct record *rec)
{
	const struct record_options *o = rec->options;
	size_t n;
	const pid_t *targets = sampler_targets(rec->sampler, &n);
	int r = jit_capture_new(o->jit_names, o->dir_fd, &rec->capture);

	if (!r && o->jit_lines)
		jit_capture_want_lines(rec->capture);
	if (!r && o->max_bytes)
		jit_capture_limit_bytes(rec->capture, o->max_bytes);
	for (size_t i = 0; i < n && !r; i++)
		jit_capture_add_process(rec->capture, targets[i]);
	if (!r && rec->command.pid)
		jit_capture_add_process(rec->capture, rec->command.pid);
	if (!r)
		r = jit_capture_start(rec->capture, o->system_wide);
	if (r)
		log_warn("names of JIT-compiled code: cannot be captured: %s%s", strerror(-r),
			 remedy_for(r));
}

/* Sets the start of the recording, CLOCK_MONOTONIC. */
static void note_start(struct record *rec, uint64_t start_ns)
{
	uint64_t passed_ns = clock_monotonic_ns() - start_ns;

	rec->result->start_monotonic_ns = rec->manifest.start_monotonic_ns = start_ns;
	rec->result->start_realtime_ns = rec->manifest.start_realtime_ns =
		clock_realtime_ns() - passed_ns;
	rec->result->setup = *sampler_setup(rec->sampler);
}

/* Handles the records so far, so that samples find empty rings. 0 or -errno. */
static int begin_sampling(struct record *rec)
{
	int r = record_drain(rec);
	uint64_t begin_ns = clock_monotonic_ns(), start_ns = sampler_start(rec->sampler);

	/* If descriptors were short, samples came before. */
	note_start(rec, start_ns < begin_ns ? start_ns : begin_ns);
	return r ? r : record_switches_start(&rec->switches, begin_ns);
}

static int begin_names(struct record *rec)
{
	int r = take_place(rec);

	if (r)
		return r;
	pin_targets(rec);
	begin_capture(rec);
	return 0;
}

int record_start(struct record *rec)
{
	int r;

	if (!rec->command.pid) {
		r = begin_names(rec);
		if (!r)
			rec->error = begin_sampling(rec);
		return r;
	}
	r = begin_sampling(rec);
	if (r)
		return record_report_io(rec, "write", RECORDING_PERF_DATA, r);
	r = start_command(rec);
	if (!r && (r = begin_names(rec)))
		kill(rec->command.pid, SIGTERM);
	return r;
}
