/* profcpu/post/open: who may have forged an input. */
#include "profcpu/post/open.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/opener.h"
#include "recording/manifest.h"
#include "tests/unit/offcpu_recording.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USER 65534

/* Skips the test if it may not give files to another user. */
static void give(int fd)
{
	if (fchown(fd, USER, USER))
		skip();
}

static void a_pipe_belongs_to_nobody(void **state)
{
	static const char text[] = "a 1 1.0: 1 cpu-clock:\n\t1 f (x)\n\n";
	struct post_source source;
	int ends[2], before = dup(STDIN_FILENO);

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], text, sizeof(text) - 1), sizeof(text) - 1);
	close(ends[1]);
	give(ends[0]);
	assert_true(dup2(ends[0], STDIN_FILENO) >= 0);
	close(ends[0]);
	assert_int_equal(post_open("-", &source), 0);
	assert_int_equal(source.forger, 0);
	post_open_close(&source);
	dup2(before, STDIN_FILENO);
	close(before);
}

/* But the owner of a FIFO writes what is read there. */
static void a_fifo_belongs_to_its_owner(void **state)
{
	static const char text[] = "a 1 1.0: 1 cpu-clock:\n\t1 f (x)\n\n";
	char dir[] = "/tmp/test_open.XXXXXX", path[sizeof(dir) + 8];
	struct post_source source;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/fifo", dir);
	assert_int_equal(mkfifo(path, 0644), 0);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	give(fd);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_int_equal(post_open(path, &source), 0);
	assert_int_equal(source.forger, USER);
	post_open_close(&source);
	close(fd);
	unlink(path);
	rmdir(dir);
}

/* A recording of root in a new directory. */
struct fixture {
	char path[32];
	int dir_fd;
};

static void write_file(int dir_fd, const char *name)
{
	AUTO_CLOSE int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
}

static struct stat record(struct fixture *f, const char *name)
{
	static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x4000};
	const struct perfdata_offcpu sample = {.id = ON_CPU,
					       .pid = 7,
					       .tid = 7,
					       .time_ns = 1000,
					       .callchain = chain,
					       .ncallchain = 2};
	AUTO_CLOSE int fd = openat(f->dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	assert_true(fd >= 0);
	offcpu_recording_write(fd, &sample, 1, NULL);
	assert_int_equal(fstat(fd, &st), 0);
	return st;
}

static int make_recording(void **state)
{
	static const char *const files[] = {RECORDING_SAMPLES,  RECORDING_OFFCPU, RECORDING_SVG,
					    "symbols/users",    "symbols/names",  "symbols/stacks",
					    "symbols/7.methods"};
	const struct recording_manifest manifest = {.format = RECORDING_FORMAT, .finished = true};
	static struct fixture f;

	strcpy(f.path, "/tmp/profcpu-test-XXXXXX");
	assert_non_null(mkdtemp(f.path));
	f.dir_fd = open(f.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f.dir_fd >= 0);
	assert_int_equal(mkdirat(f.dir_fd, RECORDING_SYMBOLS, 0700), 0);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		write_file(f.dir_fd, files[i]);
	assert_int_equal(recording_manifest_write(f.dir_fd, &manifest), 0);
	record(&f, RECORDING_PERF_DATA);
	*state = &f;
	return 0;
}

static int remove_recording(void **state)
{
	struct fixture *f = *state;

	file_remove_contents(f->dir_fd);
	close(f->dir_fd);
	return rmdir(f->path);
}

static void give_path(const struct fixture *f, const char *path, uid_t uid)
{
	if (fchownat(f->dir_fd, path, uid, uid, 0))
		skip();
}

/* Opens the recording, or its perf.data alone. */
static void assert_forger(const struct fixture *f, bool by_data, uid_t forger)
{
	AUTO_FREE char *data = file_join(f->path, RECORDING_PERF_DATA);
	struct post_source source;

	assert_int_equal(post_open(by_data ? data : f->path, &source), 0);
	assert_int_equal(source.forger, forger);
	assert_false(source.only_dir_forged);
	post_open_close(&source);
}

static void each_file_that_is_read_has_an_owner_that_counts(void **state)
{
	static const char *const paths[] = {".",
					    RECORDING_PERF_DATA,
					    RECORDING_MANIFEST,
					    RECORDING_SAMPLES,
					    RECORDING_OFFCPU,
					    RECORDING_SYMBOLS,
					    "symbols/users",
					    "symbols/names",
					    "symbols/stacks",
					    "symbols/7.methods"};
	const struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		give_path(f, paths[i], USER);
		assert_forger(f, false, USER);
		assert_forger(f, true, USER);
		give_path(f, paths[i], 0);
	}
	give_path(f, RECORDING_SVG, USER);
	assert_forger(f, false, 0);
	assert_forger(f, true, 0);
}

static void several_owners_have_only_common_rights(void **state)
{
	const struct fixture *f = *state;

	give_path(f, ".", USER);
	give_path(f, RECORDING_MANIFEST, USER - 1);
	give_path(f, RECORDING_SAMPLES, USER);
	assert_forger(f, false, OPENER_NOBODY);
	assert_forger(f, true, OPENER_NOBODY);
}

static void assert_just_written(const struct fixture *f, const struct stat *written, uid_t forger,
				bool only_dir)
{
	struct post_source source;

	assert_int_equal(post_open_dir(f->dir_fd, f->path, written, &source), 0);
	assert_int_equal(source.forger, forger);
	assert_int_equal(source.only_dir_forged, only_dir);
	post_open_close(&source);
}

static void a_recorder_trusts_the_owner_that_its_files_get(void **state)
{
	const struct fixture *f = *state;
	struct stat written;

	give_path(f, ".", USER);
	give_path(f, RECORDING_PERF_DATA, USER);
	assert_int_equal(fstatat(f->dir_fd, RECORDING_PERF_DATA, &written, 0), 0);
	assert_just_written(f, NULL, USER, false);
	assert_just_written(f, &written, 0, false);
}

static void a_recorder_trusts_what_it_wrote_in_the_directory_of_a_user(void **state)
{
	struct fixture *f = *state;
	const struct stat written = record(f, RECORDING_PERF_DATA);

	give_path(f, ".", USER);
	assert_just_written(f, &written, USER, true);
	give_path(f, RECORDING_MANIFEST, USER);
	assert_just_written(f, &written, USER, false);
	give_path(f, RECORDING_MANIFEST, 0);
	/* The user puts an older perf.data of root in its place. */
	record(f, "older");
	assert_int_equal(renameat(f->dir_fd, "older", f->dir_fd, RECORDING_PERF_DATA), 0);
	assert_just_written(f, &written, USER, false);
}

#define WITH_RECORDING(test) cmocka_unit_test_setup_teardown(test, make_recording, remove_recording)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pipe_belongs_to_nobody),
		cmocka_unit_test(a_fifo_belongs_to_its_owner),
		WITH_RECORDING(each_file_that_is_read_has_an_owner_that_counts),
		WITH_RECORDING(several_owners_have_only_common_rights),
		WITH_RECORDING(a_recorder_trusts_the_owner_that_its_files_get),
		WITH_RECORDING(a_recorder_trusts_what_it_wrote_in_the_directory_of_a_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
