#include "profcpu/stacks/files.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/replace.h"
#include "base/version.h"
#include "recording/perfdata_offcpu.h"
#include "recording/perfdata_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILES_TOOL "profcpu " PROFCPU_VERSION

struct perf_event_attr stacks_files_attr(void)
{
	const struct perf_event_attr clock = {.use_clockid = 1, .clockid = CLOCK_MONOTONIC};

	return perfdata_offcpu_attr(&clock, PERFDATA_OFFCPU_NONE);
}

static int files_begin_manifest(struct recording_manifest *m)
{
	int r = recording_manifest_begin(m, FILES_TOOL);

	m->start_realtime_ns = clock_realtime_ns();
	m->start_monotonic_ns = clock_monotonic_ns();
	m->unwound = true;
	return r;
}

static int files_begin_data(struct stacks_files *f)
{
	static const char *const cmdline[] = {"profcpu", "stacks", NULL};
	const struct perfdata_writer_event event = {.attr = stacks_files_attr(), .name = "stack"};
	const struct perfdata_writer_info info = {
		.version = FILES_TOOL,
		.cmdline = cmdline,
		.start_realtime_ns = f->manifest.start_realtime_ns,
		.start_monotonic_ns = f->manifest.start_monotonic_ns,
	};
	int idx_fd = -1;
	int r = file_create(f->dir_fd, RECORDING_PERF_DATA, O_RDWR, REPLACE_PRIVATE, &f->data_fd);

	if (!r)
		r = file_create(f->dir_fd, RECORDING_SAMPLES, O_WRONLY, REPLACE_PRIVATE, &idx_fd);
	if (!r)
		r = record_rows_new(idx_fd, -1, f->manifest.start_realtime_ns, &f->rows);
	return r ? r : perfdata_writer_new(f->data_fd, &event, 1, &info, &f->writer);
}

int stacks_files_begin(struct stacks_files *f, int dir_fd, pid_t pid, bool lines)
{
	*f = (struct stacks_files){.dir_fd = dir_fd, .data_fd = -1};
	f->buffer = malloc(PERFDATA_RECORD_BYTES_MAX_OUT);
	int r = f->buffer ? files_begin_manifest(&f->manifest) : -ENOMEM;

	if (!r)
		r = files_begin_data(f);
	if (!r)
		r = jit_capture_new(JIT_NAMES_AUTO, dir_fd, &f->capture);
	if (r)
		return r;
	if (lines)
		jit_capture_want_lines(f->capture);
	jit_capture_add_process(f->capture, pid);
	return jit_capture_start(f->capture, false);
}

void stacks_files_free(struct stacks_files *f)
{
	jit_capture_free(f->capture);
	perfdata_writer_free(f->writer);
	record_rows_free(f->rows);
	recording_manifest_free(&f->manifest);
	if (f->data_fd >= 0)
		close(f->data_fd);
	free(f->buffer);
	*f = (struct stacks_files){.dir_fd = -1, .data_fd = -1};
}

int stacks_files_records(struct stacks_files *f, const void *data, size_t bytes)
{
	int r = perfdata_writer_records(f->writer, data, bytes);

	return r ? r : perfdata_writer_flush(f->writer);
}

int stacks_files_sample(struct stacks_files *f, pid_t pid, pid_t tid, const struct unwound *unwound,
			uint64_t *ret_sample)
{
	const struct perfdata_offcpu sample = {
		.pid = pid,
		.tid = tid,
		.time_ns = clock_monotonic_ns(),
		.off_ns = f->samples + 1,
		.callchain = unwound->callchain,
		.ncallchain = unwound->ncallchain,
	};
	size_t bytes = perfdata_offcpu_write(&sample, f->buffer);
	int r = bytes ? record_rows_sample(f->rows, perfdata_writer_next(f->writer), unwound)
		      : -E2BIG;

	if (!r)
		r = stacks_files_records(f, f->buffer, bytes);
	if (!r)
		*ret_sample = ++f->samples;
	return r;
}

int stacks_files_end(struct stacks_files *f, struct opener *opener)
{
	int r = record_rows_round(f->rows, 0);

	if (!r)
		r = record_rows_end(f->rows);
	if (!r)
		r = perfdata_writer_round(f->writer);
	if (!r)
		r = perfdata_writer_finish(f->writer, f->manifest.start_monotonic_ns,
					   clock_monotonic_ns());
	jit_capture_end(f->capture);
	jit_capture_note_users(f->capture, opener);
	f->manifest.duration_ns = clock_monotonic_ns() - f->manifest.start_monotonic_ns;
	f->manifest.finished = true;
	return r ? r : recording_manifest_write(f->dir_fd, &f->manifest);
}
