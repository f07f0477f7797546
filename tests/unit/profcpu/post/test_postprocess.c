/* profcpu/post/postprocess: the work for all outputs of a recording with waits. */
#include "profcpu/post/postprocess.h"

#include "base/cleanup.h"
#include "base/exit_status.h"
#include "base/file.h"
#include "profile/samples.h"
#include "recording/perfdata.h"
#include "tests/unit/offcpu_recording.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SLEEPER 8
#define WAKER 9

/* Counts of calls, by -Wl,--wrap. */
static int passes, headers;

int __real_samples_each(struct samples *s,
			int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx);
int __wrap_samples_each(struct samples *s,
			int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx);
int __real_perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err);
int __wrap_perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err);

int __wrap_samples_each(struct samples *s,
			int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx)
{
	passes++;
	return __real_samples_each(s, fn, ctx);
}

int __wrap_perfdata_open(int fd, struct perfdata **ret_data, struct parse_error *err)
{
	headers++;
	return __real_perfdata_open(fd, ret_data, err);
}

static int make_file(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

/* Records a thread that runs, sleeps and is woken by another one. */
static void record(int dir_fd)
{
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x4000};
	const struct perfdata_offcpu samples[] = {
		{.id = ON_CPU, .pid = 7, .tid = SLEEPER, .time_ns = 1000, .off_ns = 500},
		{.id = WAKERS, .pid = 7, .tid = WAKER, .time_ns = 1900, .off_ns = 1},
		{.id = WAITS, .pid = 7, .tid = SLEEPER, .time_ns = 2000, .off_ns = 900}};
	struct perfdata_offcpu with_stacks[3];
	struct offcpu_idx_thread thread = {.tid = SLEEPER,
					   .pid = 7,
					   .begin_ns = 500,
					   .end_ns = 2000,
					   .running_ns = 600,
					   .blocked_ns = 900};
	struct recording_manifest manifest = {
		.format = RECORDING_FORMAT, .finished = true, .unwound = true};
	AUTO_CLOSE int data_fd = make_file(dir_fd, RECORDING_PERF_DATA),
		       idx_fd = make_file(dir_fd, RECORDING_OFFCPU);
	struct offcpu_idx_row rows[2];
	struct idx_file file;
	uint64_t offs[3];

	for (size_t i = 0; i < 3; i++) {
		with_stacks[i] = samples[i];
		with_stacks[i].callchain = chain;
		with_stacks[i].ncallchain = 2;
	}
	offcpu_recording_write(data_fd, with_stacks, 3, offs);
	struct offcpu_idx_wait wait = {.file_off = offs[2],
				       .waker_off = offs[1],
				       .woken_ns = 1900,
				       .runnable_ns = 100,
				       .count = 1,
				       .waker = WAKER};

	assert_int_equal(offcpu_idx_begin(idx_fd, 0, &file), 0);
	assert_int_equal(idx_file_append(&file, rows, offcpu_idx_put_wait(&wait, rows)), 0);
	offcpu_idx_put_thread(&thread, rows);
	assert_int_equal(idx_file_append(&file, rows, 2), 0);
	assert_int_equal(idx_file_end(&file), 0);
	assert_int_equal(recording_manifest_write(dir_fd, &manifest), 0);
}

static void all_outputs_read_header_and_samples_once(void **state)
{
	static const char *const made[] = {
		RECORDING_SVG,           RECORDING_FOLDED,        RECORDING_OFFCPU_SVG,
		RECORDING_OFFCPU_FOLDED, RECORDING_WALL_SVG,      RECORDING_WALL_FOLDED,
		RECORDING_WAKEUP_SVG,    RECORDING_WAKEUP_FOLDED, RECORDING_REPORT,
		RECORDING_SCRIPT,        RECORDING_ARCHIVE};
	struct postprocess_options options = {.load = {.offline = true, .write_store_dir_fd = -1}};
	char path[] = "/tmp/profcpu-test-XXXXXX";
	struct post_source source;
	struct outdir dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	assert_int_equal(post_outdir_make(path, &dir), 0);
	record(dir.fd);
	assert_int_equal(post_open_dir(dir.fd, path, NULL, &source), 0);
	assert_int_equal(postprocess_run(&source, path, &dir, &options, NULL), EXIT_DONE);
	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		if (faccessat(dir.fd, made[i], F_OK, 0))
			fail_msg("%s is missing", made[i]);
	/* Only the script needs the samples in their order. */
	assert_int_equal(passes, 1);
	assert_int_equal(headers, 1);
	post_open_close(&source);
	file_remove_contents(dir.fd);
	post_outdir_release(&dir);
	assert_int_equal(rmdir(path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_outputs_read_header_and_samples_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
