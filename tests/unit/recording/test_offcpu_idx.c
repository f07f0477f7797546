#include "recording/offcpu_idx.h"

#include "base/file.h"
#include "recording/idx_file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct offcpu_idx_wait wait_at(uint64_t file_off)
{
	return (struct offcpu_idx_wait){.file_off = file_off,
					.waker_off = file_off - 1,
					.woken_ns = 7000 + file_off,
					.runnable_ns = 8,
					.count = 3,
					.end_ns = file_off % 40 ? 0 : 8000 + file_off,
					.waker = 4711,
					.flags = OFFCPU_IDX_PREEMPTED | OFFCPU_IDX_ESTIMATED};
}

static struct offcpu_idx_thread thread_of(int32_t tid, uint64_t begin_ns)
{
	return (struct offcpu_idx_thread){tid, 70, begin_ns, begin_ns + 100, 10, 20, 30, 40, 5,
					  6,   7,  8};
}

/* The file in memory, shortened by `cut` bytes. */
static int file_of(const struct offcpu_idx_row *rows, size_t n, off_t cut)
{
	int fd = memfd_create("offcpu.idx", MFD_CLOEXEC);
	struct idx_file file;

	assert_true(fd >= 0);
	assert_int_equal(offcpu_idx_begin(fd, 42, &file), 0);
	for (size_t i = 0; i < n; i++) {
		struct offcpu_idx_row row = rows[i];

		assert_int_equal(idx_file_append(&file, &row, 1), 0);
	}
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - cut), 0);
	return fd;
}

static int read_of(const struct offcpu_idx_row *rows, size_t n, off_t cut,
		   struct offcpu_idx *ret_idx, struct parse_error *err)
{
	int fd = file_of(rows, n, cut), r = offcpu_idx_read(fd, ret_idx, err);

	close(fd);
	return r;
}

static void waits_are_found_by_their_sample(void **state)
{
	enum { N = 1000 };
	struct offcpu_idx_row *rows = calloc(2 * N, sizeof(*rows));
	struct offcpu_idx idx;
	size_t nrows = 0;

	(void)state;
	for (uint64_t i = 0; i < N; i++) {
		struct offcpu_idx_wait wait = wait_at(i % 10 ? 1000 + i * 8 : 900000 - i * 8);

		nrows += offcpu_idx_put_wait(&wait, &rows[nrows]);
	}
	assert_int_equal(nrows, N + N / 5);
	assert_int_equal(read_of(rows, nrows, 0, &idx, NULL), 0);
	assert_int_equal(idx.nwaits, N);
	assert_int_equal(idx.nthreads, 0);
	for (uint64_t i = 0; i < N; i++) {
		struct offcpu_idx_wait wait = wait_at(i % 10 ? 1000 + i * 8 : 900000 - i * 8);
		const struct offcpu_idx_wait *found = offcpu_idx_find(&idx, wait.file_off);

		assert_non_null(found);
		assert_true(found->file_off == wait.file_off &&
			    found->waker_off == wait.waker_off &&
			    found->woken_ns == wait.woken_ns &&
			    found->runnable_ns == wait.runnable_ns && found->count == wait.count &&
			    found->waker == wait.waker && found->flags == wait.flags &&
			    found->end_ns == wait.end_ns);
	}
	assert_null(offcpu_idx_find(&idx, 999));
	assert_null(offcpu_idx_find(&idx, 1009));
	offcpu_idx_free(&idx);
	assert_null(offcpu_idx_find(&idx, 1008));
	free(rows);
}

static void threads_come_by_their_id_and_begin(void **state)
{
	const struct offcpu_idx_thread threads[] = {thread_of(9, 500), thread_of(7, 600),
						    thread_of(9, 200)};
	const struct offcpu_idx_unknown unknown = {.tid = 9, .begin_ns = 700, .end_ns = 800};
	struct offcpu_idx_row rows[9];
	struct offcpu_idx_wait wait = wait_at(100);
	struct offcpu_idx idx;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		offcpu_idx_put_thread(&threads[i], rows + 2 * i);
	rows[6] = offcpu_idx_put_unknown(&unknown);
	offcpu_idx_put_wait(&wait, &rows[7]);
	assert_int_equal(read_of(rows, 8, 0, &idx, NULL), 0);
	assert_int_equal(idx.nunknowns, 1);
	assert_true(idx.unknowns[0].tid == 9 && idx.unknowns[0].begin_ns == 700 &&
		    idx.unknowns[0].end_ns == 800);
	assert_int_equal(idx.nwaits, 1);
	assert_int_equal(idx.nthreads, 3);
	assert_memory_equal(&idx.threads[0], &threads[1], sizeof(threads[0]));
	assert_memory_equal(&idx.threads[1], &threads[2], sizeof(threads[0]));
	assert_memory_equal(&idx.threads[2], &threads[0], sizeof(threads[0]));
	offcpu_idx_free(&idx);
}

static void waits_and_threads_take_a_part_of_the_memory(void **state)
{
	enum { N = IDX_FILE_BYTES(0) / sizeof(struct offcpu_idx_wait) };
	struct offcpu_idx_row *rows = calloc(2 * N + 2, sizeof(*rows));
	const struct offcpu_idx_thread thread = thread_of(1, 1);
	struct offcpu_idx idx;
	size_t n = 0;

	(void)state;
	for (uint64_t i = 1; i <= N; i++) {
		const struct offcpu_idx_wait wait = wait_at(i);

		n += offcpu_idx_put_wait(&wait, rows + n);
	}
	offcpu_idx_put_thread(&thread, rows + n);
	int fd = file_of(rows, n, 0), more = file_of(rows, n + 2, 0);

	assert_int_equal(offcpu_idx_read_within(fd, 0, &idx, NULL), 0);
	assert_int_equal(idx.nwaits, N);
	offcpu_idx_free(&idx);
	assert_int_equal(offcpu_idx_read_within(more, 0, &idx, NULL), -ENOSPC);
	assert_int_equal(offcpu_idx_read_within(more, 3 * sizeof(thread), &idx, NULL), 0);
	assert_int_equal(idx.nthreads, 1);
	offcpu_idx_free(&idx);
	close(fd);
	close(more);
	free(rows);
}

static void cut_records_are_left_out(void **state)
{
	const struct offcpu_idx_thread thread = thread_of(9, 500);
	struct offcpu_idx_wait wait = wait_at(100);
	struct offcpu_idx_row rows[3];
	struct offcpu_idx idx;

	(void)state;
	offcpu_idx_put_wait(&wait, &rows[0]);
	offcpu_idx_put_thread(&thread, rows + 1);
	/* A thread without its second half: cut by a byte, or zeros after a power cut. */
	assert_int_equal(read_of(rows, 3, 1, &idx, NULL), 0);
	assert_true(idx.nwaits == 1 && idx.nthreads == 0);
	offcpu_idx_free(&idx);
	assert_int_equal(read_of(rows, 2, -2 * (off_t)sizeof(rows[0]), &idx, NULL), 0);
	assert_true(idx.nwaits == 1 && idx.nthreads == 0);
	offcpu_idx_free(&idx);
	assert_int_equal(read_of(rows, 0, 0, &idx, NULL), 0);
	assert_true(idx.nwaits == 0 && idx.nthreads == 0);
	offcpu_idx_free(&idx);
}

/* Changes one value in good rows, a wait and then a thread. Returns the offset of the rejected
 * row. */
static void assert_bad(void (*change)(struct offcpu_idx_row *), uint64_t offset)
{
	const struct offcpu_idx_thread thread = thread_of(9, 500);
	struct offcpu_idx_wait wait = wait_at(100);
	struct offcpu_idx_row rows[3];
	struct offcpu_idx idx = {0};
	struct parse_error err = {0};

	offcpu_idx_put_wait(&wait, &rows[0]);
	offcpu_idx_put_thread(&thread, rows + 1);
	change(rows);
	assert_int_equal(read_of(rows, 3, 0, &idx, &err), -EBADMSG);
	assert_int_equal(err.offset, offset);
	assert_null(idx.waits);
}

#define ROW(i) (IDX_FILE_HEADER_BYTES + (i) * sizeof(struct offcpu_idx_row))
#define CHANGE(name, ...)                             \
	static void name(struct offcpu_idx_row *rows) \
	{                                             \
		rows __VA_ARGS__;                     \
	}
#define END(...)                                         \
	[1] = (struct offcpu_idx_row)                    \
	{                                                \
		.kind = OFFCPU_IDX_WAIT_END, __VA_ARGS__ \
	} /* time of the previous wait */
#define UNKNOWN(...)                                    \
	[0] = (struct offcpu_idx_row)                   \
	{                                               \
		.kind = OFFCPU_IDX_UNKNOWN, __VA_ARGS__ \
	}
CHANGE(no_kind, [0].kind = 6)
CHANGE(unknown_of_none, UNKNOWN(.v = {1, 2}))
CHANGE(unknown_backwards, UNKNOWN(.id = 1, .v = {2, 1}))
CHANGE(unknown_too_long, UNKNOWN(.id = 1, .v = {2, OFFCPU_IDX_NS_MAX + 1}))
CHANGE(more_than_unknown, UNKNOWN(.id = 1, .v = {1, 2, 3}))
CHANGE(flags_of_unknown, UNKNOWN(.id = 1, .v = {1, 2}, .flags = 1))
CHANGE(end_alone, [0].kind = OFFCPU_IDX_WAIT_END)
CHANGE(no_place, [0].v[0] = 0)
CHANGE(waker_behind, [0].v[1] = 100)
CHANGE(no_waker, [0].id = -1)
CHANGE(no_flags, [0].flags = OFFCPU_IDX_FLAGS + 1)
CHANGE(too_long, [0].v[3] = OFFCPU_IDX_NS_MAX + 1)
CHANGE(no_end, END(.v = {0}))
CHANGE(end_too_long, END(.v = {OFFCPU_IDX_NS_MAX + 1}))
CHANGE(more_than_an_end, END(.v = {500, 0, 0, 0, 1}))
CHANGE(waker_of_end, END(.v = {500}, .id = 1))
CHANGE(flags_of_end, END(.v = {500}, .flags = 1))
CHANGE(two_ends, END(.v = {500}), rows[2] = rows[1])
CHANGE(no_first_half, [1].kind = OFFCPU_IDX_THREAD_REST)
CHANGE(no_second_half, [2].kind = OFFCPU_IDX_THREAD)
CHANGE(no_thread, [1].id = 0)
CHANGE(backwards, [1].v[1] = 499)
CHANGE(flags_of_thread, [2].flags = 1)
CHANGE(thread_too_long, [2].v[4] = UINT64_MAX)

static void damage_is_distinguished_from_rows(void **state)
{
	struct parse_error err = {0};
	struct offcpu_idx idx = {0};

	(void)state;
	assert_bad(no_kind, ROW(0));
	assert_bad(unknown_of_none, ROW(0));
	assert_bad(unknown_backwards, ROW(0));
	assert_bad(unknown_too_long, ROW(0));
	assert_bad(more_than_unknown, ROW(0));
	assert_bad(flags_of_unknown, ROW(0));
	assert_bad(end_alone, ROW(0));
	assert_bad(no_place, ROW(0));
	assert_bad(waker_behind, ROW(0));
	assert_bad(no_waker, ROW(0));
	assert_bad(no_flags, ROW(0));
	assert_bad(too_long, ROW(0));
	assert_bad(no_end, ROW(1));
	assert_bad(end_too_long, ROW(1));
	assert_bad(more_than_an_end, ROW(1));
	assert_bad(waker_of_end, ROW(1));
	assert_bad(flags_of_end, ROW(1));
	assert_bad(two_ends, ROW(2));
	assert_bad(no_first_half, ROW(1));
	assert_bad(no_second_half, ROW(2));
	assert_bad(no_thread, ROW(2));
	assert_bad(backwards, ROW(2));
	assert_bad(flags_of_thread, ROW(2));
	assert_bad(thread_too_long, ROW(2));
	assert_int_equal(read_of(NULL, 0, 1, &idx, &err), -EBADMSG);
	assert_int_equal(err.offset, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_found_by_their_sample),
		cmocka_unit_test(threads_come_by_their_id_and_begin),
		cmocka_unit_test(waits_and_threads_take_a_part_of_the_memory),
		cmocka_unit_test(cut_records_are_left_out),
		cmocka_unit_test(damage_is_distinguished_from_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
