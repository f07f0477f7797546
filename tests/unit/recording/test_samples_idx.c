#include "recording/samples_idx.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define GRADE 3
#define IDENTITY 1790000000123456789
#define END 2

static struct samples_idx_row row_at(uint64_t file_off)
{
	return (struct samples_idx_row){.file_off = file_off,
					.grade = GRADE,
					.end = END,
					.first_spliced = 7,
					.first_guess = UINT16_MAX};
}

/* The file in memory with n rows, shortened by `cut` bytes. */
static int file_of(const struct samples_idx_row *rows, size_t n, off_t cut)
{
	int fd = memfd_create("samples.idx", MFD_CLOEXEC);
	struct idx_file file;

	assert_true(fd >= 0);
	assert_int_equal(samples_idx_begin(fd, IDENTITY, &file), 0);
	for (size_t i = 0; i < n; i++) {
		struct samples_idx_row row = rows[i];

		assert_int_equal(idx_file_append(&file, &row, 1), 0);
	}
	assert_int_equal(ftruncate(fd, lseek(fd, 0, SEEK_END) - cut), 0);
	return fd;
}

static int read_of(const struct samples_idx_row *rows, size_t n, off_t cut,
		   struct samples_idx *ret_idx, struct parse_error *err)
{
	int fd = file_of(rows, n, cut), r = samples_idx_read(fd, ret_idx, err);

	close(fd);
	return r;
}

static void rows_are_found_by_their_record(void **state)
{
	enum { N = 1000 };
	struct samples_idx_row rows[N];
	struct samples_idx idx;

	(void)state;
	/* Deferred rows come late. */
	for (uint64_t i = 0; i < N; i++)
		rows[i] = row_at(i % 10 ? 1000 + i * 8 : 900000 - i * 8);
	assert_int_equal(read_of(rows, N, 0, &idx, NULL), 0);
	assert_int_equal(idx.n, N);
	for (size_t i = 0; i < N; i++) {
		const struct samples_idx_row *row = samples_idx_find(&idx, rows[i].file_off);

		assert_non_null(row);
		assert_memory_equal(row, &rows[i], sizeof(*row));
	}
	assert_null(samples_idx_find(&idx, 999));
	assert_null(samples_idx_find(&idx, rows[1].file_off + 1));
	samples_idx_free(&idx);
	assert_null(samples_idx_find(&idx, rows[1].file_off));
}

static void rows_take_a_part_of_the_memory(void **state)
{
	enum { N = IDX_FILE_BYTES(0) / sizeof(struct samples_idx_row) };
	struct samples_idx_row *rows = calloc(N + 1, sizeof(*rows));
	struct parse_error err = {0};
	struct samples_idx idx;

	(void)state;
	for (size_t i = 0; i <= N; i++)
		rows[i] = row_at(i + 1);
	int fd = file_of(rows, N, 0), more = file_of(rows, N + 1, 0);

	assert_int_equal(samples_idx_read_within(fd, 0, &idx, NULL), 0);
	assert_int_equal(idx.n, N);
	samples_idx_free(&idx);
	assert_int_equal(samples_idx_read_within(more, 0, &idx, &err), -ENOSPC);
	assert_string_equal(err.what, "it needs more memory than is left");
	assert_int_equal(samples_idx_read_within(more, 48, &idx, NULL), 0);
	samples_idx_free(&idx);
	close(fd);
	close(more);
	free(rows);
}

static void cut_records_are_left_out(void **state)
{
	struct samples_idx_row rows[270];
	struct samples_idx idx;

	(void)state;
	for (uint64_t i = 0; i < 270; i++)
		rows[i] = row_at(100 + i);
	assert_int_equal(read_of(rows, 270, 1, &idx, NULL), 0);
	assert_int_equal(idx.n, 269);
	samples_idx_free(&idx);
	assert_false(idx.file.ended);
	/* After a power cut, parts that were not written are zeros. */
	assert_int_equal(read_of(rows, 270, -30 * 16, &idx, NULL), 0);
	assert_int_equal(idx.n, 270);
	samples_idx_free(&idx);
	assert_int_equal(read_of(rows, 0, 0, &idx, NULL), 0);
	assert_int_equal(idx.n, 0);
	samples_idx_free(&idx);
}

static void damage_is_distinguished_from_rows(void **state)
{
	struct samples_idx_row rows[3] = {row_at(100), row_at(200), row_at(300)}, bad;
	struct samples_idx idx = {0};
	struct parse_error err = {0};
	char other[32] = "pcsmpidx\1";
	struct idx_file file;
	int fd;

	(void)state;
	for (int i = 0; i < 3; i++) {
		bad = row_at(200);
		if (i == 0)
			bad.grade = SAMPLES_IDX_GRADES;
		else if (i == 1)
			bad.end = SAMPLES_IDX_ENDS;
		else
			bad.file_off = 0;
		rows[1] = bad;
		assert_int_equal(read_of(rows, 3, 0, &idx, &err), -EBADMSG);
		assert_int_equal(err.offset, IDX_FILE_HEADER_BYTES + sizeof(bad));
		assert_int_equal(idx.n, 0);
	}
	assert_int_equal(read_of(rows, 0, 1, &idx, &err), -EBADMSG);
	fd = memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(file_write_all(fd, other, sizeof(other)), 0);
	assert_int_equal(samples_idx_read(fd, &idx, &err), -ENOTSUP);
	assert_int_equal(pwrite(fd, "PERFILE2", 8, 0), 8);
	assert_int_equal(samples_idx_read(fd, &idx, &err), -EBADMSG);
	assert_int_equal(
		ftruncate(fd, ((off_t)SAMPLES_IDX_ROWS_MAX + 1) * 16 + IDX_FILE_HEADER_BYTES), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(samples_idx_begin(fd, IDENTITY, &file), 0);
	assert_int_equal(samples_idx_read(fd, &idx, &err), -E2BIG);
	assert_int_equal(ftruncate(fd, (off_t)SAMPLES_IDX_ROWS_MAX * 16 + IDX_FILE_HEADER_BYTES),
			 0);
	assert_int_equal(samples_idx_read(fd, &idx, &err), 0); /* all holes */
	assert_int_equal(idx.n, 0);
	samples_idx_free(&idx);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_by_their_record),
		cmocka_unit_test(rows_take_a_part_of_the_memory),
		cmocka_unit_test(cut_records_are_left_out),
		cmocka_unit_test(damage_is_distinguished_from_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
