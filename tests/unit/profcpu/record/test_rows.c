#include "profcpu/record/rows.h"

#include "recording/samples_idx.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define IDENTITY 1790000000123456789
#define WAITS 3
#define THREADS 40
#define SMALL_PAGES 16

static const struct unwound guessed = {
	.grade = UNWIND_GUESSED, .end = WALK_START, .first_spliced = UINT16_MAX, .first_guess = 4};
static const struct unwound whole = {.grade = UNWIND_COMPLETE,
				     .end = WALK_START,
				     .first_spliced = UINT16_MAX,
				     .first_guess = UINT16_MAX};

static int memory_file(void)
{
	int fd = memfd_create("rows", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void put_waits(struct record_rows *rows, uint64_t file_off, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
			record_rows_wait(rows, &(struct offcpu_idx_wait){.file_off = file_off + i,
									 .count = 1,
									 .end_ns = i & 1}),
			0);
}

static void put_thread(struct record_rows *rows, int32_t tid)
{
	assert_int_equal(record_rows_thread(rows, &(struct offcpu_idx_thread){.tid = tid,
									      .pid = 1,
									      .begin_ns = 5,
									      .end_ns = 9,
									      .unknown_ns = 4}),
			 0);
}

static void check_offcpu(int fd, size_t nwaits, size_t nthreads, bool ended)
{
	struct offcpu_idx idx;

	assert_int_equal(offcpu_idx_read(fd, &idx, NULL), 0);
	assert_int_equal(idx.nwaits, nwaits);
	assert_int_equal(idx.nthreads, nthreads);
	assert_int_equal(idx.file.ended, ended);
	assert_int_equal(idx.file.identity, IDENTITY);
	offcpu_idx_free(&idx);
}

static void test_rows_of_rounds_are_contiguous(void **state)
{
	(void)state;
	int samples = memory_file(), offcpu = memory_file();
	struct record_rows *rows;
	struct samples_idx idx;
	struct stat st;

	assert_int_equal(record_rows_new(dup(samples), dup(offcpu), IDENTITY, &rows), 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(record_rows_sample(rows, 100 + (uint64_t)round, &guessed), 0);
		assert_int_equal(record_rows_sample(rows, 200 + (uint64_t)round, &whole), 0);
		put_waits(rows, 1000 + 10 * (uint64_t)round, WAITS);
		put_thread(rows, 70 + round);
		assert_int_equal(record_rows_round(rows, THREADS), 0);
		check_offcpu(offcpu, WAITS * ((size_t)round + 1), (size_t)round + 1, false);
	}
	put_thread(rows, 80);
	assert_int_equal(record_rows_end(rows), 0);
	record_rows_free(rows);
	check_offcpu(offcpu, (size_t)2 * WAITS, 3, true);
	assert_int_equal(samples_idx_read(samples, &idx, NULL), 0);
	assert_int_equal(idx.n, 2);
	assert_int_equal(samples_idx_find(&idx, 101)->first_guess, 4);
	assert_true(idx.file.ended);
	samples_idx_free(&idx);
	assert_int_equal(fstat(offcpu, &st), 0);
	assert_in_range(st.st_blocks * 512, 1, 4096);
	close(samples);
	close(offcpu);
}

/* A file system of SMALL_PAGES pages, with a file *ret_fd. -1: it cannot be mounted. */
static int small_fd(const char *name)
{
	char dir[] = "/tmp/test_record_rows.XXXXXX";
	char data[32];
	int dir_fd, fd;

	assert_non_null(mkdtemp(dir));
	snprintf(data, sizeof(data), "nr_blocks=%d", SMALL_PAGES);
	if (mount("none", dir, "tmpfs", 0, data)) {
		rmdir(dir);
		return -1;
	}
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	close(dir_fd);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	rmdir(dir);
	assert_true(fd >= 0);
	return fd;
}

static void test_threads_have_room_on_a_full_disk(void **state)
{
	(void)state;
	int samples = memory_file(), offcpu = small_fd("offcpu.idx"), r = 0;
	struct record_rows *rows;
	struct samples_idx idx;
	size_t written = 0;

	if (offcpu < 0) {
		close(samples);
		assert_null(getenv("CI")); /* now there is room */
		skip();
	}
	assert_int_equal(record_rows_new(dup(samples), dup(offcpu), IDENTITY, &rows), 0);
	while (!r) {
		put_waits(rows, 1 + 10 * written, WAITS);
		r = record_rows_round(rows, THREADS);
		written += !r;
		assert_in_range(written, 0, SMALL_PAGES * 4096 / 48);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_not_equal(written, 0);
	for (int tid = 0; tid < THREADS; tid++)
		put_thread(rows, 100 + tid);
	put_waits(rows, 1 + 10 * written, WAITS);
	assert_int_equal(record_rows_round(rows, 0), -ENOSPC);
	assert_int_equal(record_rows_end(rows), 0);
	record_rows_free(rows);
	/* Samples of the last round may be in perf.data without a row. */
	assert_int_equal(samples_idx_read(samples, &idx, NULL), 0);
	assert_false(idx.file.ended);
	samples_idx_free(&idx);
	check_offcpu(offcpu, written * WAITS, THREADS, true);
	close(samples);
	close(offcpu);
}

static void test_a_full_device_is_reported(void **state)
{
	(void)state;
	int samples = memory_file(), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	struct record_rows *rows;

	assert_int_equal(record_rows_new(dup(samples), dup(full), IDENTITY, &rows), -ENOSPC);
	close(samples);
	close(full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_of_rounds_are_contiguous),
		cmocka_unit_test(test_threads_have_room_on_a_full_disk),
		cmocka_unit_test(test_a_full_device_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
