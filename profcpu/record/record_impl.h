/*
 * Shared by the parts of record: setup (record_begin.c), the start of sampling (record_start.c),
 * the loop (record.c), messages (record_messages.c).
 */
#ifndef PROFCPU_RECORD_RECORD_IMPL_H
#define PROFCPU_RECORD_RECORD_IMPL_H

#include "base/progress.h"
#include "profcpu/record/child.h"
#include "profcpu/record/detached.h"
#include "profcpu/record/pin.h"
#include "profcpu/record/record.h"
#include "profcpu/record/switches.h"
#include "profcpu/record/watch.h"
#include "recording/manifest.h"
#include "recording/perfdata_writer.h"

/* Names until the recording has begun. */
#define RECORD_BEGUN RECORDING_PERF_DATA ".new"
#define RECORD_IDX_BEGUN RECORDING_SAMPLES ".new"
#define RECORD_OFFCPU_IDX_BEGUN RECORDING_OFFCPU ".new"

struct record {
	const struct record_options *options;
	struct record_result *result;
	struct sampler_event events[SAMPLER_EVENTS_MAX];
	size_t nevents;
	int data_fd;
	bool in_place; /* perf.data has its final name */
	struct record_command command;
	struct record_watch watch;
	struct sampler *sampler;
	struct perfdata_writer *writer;
	uint32_t stack_bytes; /* present size of copied stacks */
	struct record_switches switches;
	struct record_unwind *unwind; /* NULL: the kernel's callchains are written unchanged */
	struct recording_manifest manifest;
	struct progress progress;
	struct record_pin pin;
	struct record_detached detached;
	struct jit_capture *capture; /* NULL: names of JIT-compiled code are not captured */
	uint64_t trimmed_ns;         /* heap_trim */
	int error;                   /* reason of an early end; 0: none */
};

/* record_begin.c */
/* Opens all. 0 or -errno, logged. */
int record_begin(struct record *rec);
int record_write_manifest(struct record *rec);
/* Removes the files of a recording that never began. */
void record_remove_unbegun(const struct record *rec);

/* record_start.c: begins sampling and starts the command. 0; -errno, logged: nothing is kept.
 * rec->error is set if sampling began but records could not be written. */
int record_start(struct record *rec);

/* record.c */
/* Reads the rings. 0 or -errno. */
int record_drain(struct record *rec);
/* -EINTR, logged: a signal came before the recording began. Else 0. */
int record_check_signal(struct record *rec);
struct sampler_listener record_listener(struct record *rec);

/* record_messages.c */
/* Logs "cannot VERB DIR/NAME"; returns error. */
int record_report_io(const struct record *rec, const char *verb, const char *name, int error);
/* Logs what is missing at the end, and notes damage in the manifest. */
void record_report_end(struct record *rec);

#endif
