#include "recording/idx_file.h"

#include "base/file.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define IDENTITY 1790000000123456789
#define ROWS 9

struct row {
	uint64_t v[2];
	uint16_t rest[3], check;
};

static const struct idx_file_format format = {"idx test", 3, sizeof(struct row),
					      offsetof(struct row, check)};

static struct row row_of(uint64_t i)
{
	return (struct row){{i + 1, i * i}, {7, 8, (uint16_t)i}, 0};
}

/* Reads in memory. */
static int file_of(uint64_t identity, size_t n, bool ended)
{
	int fd = memfd_create("idx", MFD_CLOEXEC);
	struct idx_file file;
	struct row rows[ROWS];

	for (size_t i = 0; i < n; i++)
		rows[i] = row_of(i);
	assert_true(fd >= 0);
	assert_int_equal(idx_file_begin(fd, &format, identity, &file), 0);
	/* Reads in parts. */
	assert_int_equal(idx_file_append(&file, rows, n / 2), 0);
	assert_int_equal(idx_file_append(&file, rows + n / 2, n - n / 2), 0);
	assert_int_equal(idx_file_bytes_with(&file, 2),
			 IDX_FILE_HEADER_BYTES + (n + 3) * sizeof(struct row));
	if (ended)
		assert_int_equal(idx_file_end(&file), 0);
	assert_int_equal(idx_file_bytes(&file),
			 IDX_FILE_HEADER_BYTES + (n + ended) * sizeof(struct row));
	return fd;
}

static int take(void *ctx, const void *row)
{
	size_t *n = ctx;
	const struct row expected = row_of(*n);

	if (memcmp(row, &expected, sizeof(expected)) != 0)
		return -EBADMSG;
	++*n;
	return 0;
}

/* Number of rows, or -errno. */
static ssize_t read_of(int fd, struct idx_file_state *state)
{
	struct parse_error err = {0};
	size_t n = 0;
	int r = idx_file_read(fd, &format, take, &n, state, &err);

	assert_int_equal(r, err.code);
	return r ? r : (ssize_t)n;
}

static off_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return st.st_size;
}

static void rows_are_read_back_unchanged(void **state)
{
	struct idx_file_state got;

	(void)state;
	for (size_t n = 0; n <= ROWS; n++)
		for (int ended = 0; ended < 2; ended++) {
			int fd = file_of(IDENTITY, n, ended);

			assert_int_equal(read_of(fd, &got), n);
			assert_int_equal(got.identity, IDENTITY);
			assert_int_equal(got.ended, ended);
			close(fd);
		}
}

static void each_changed_bit_is_detected(void **state)
{
	struct idx_file_state got;
	int fd = file_of(IDENTITY, ROWS, true);
	off_t size = size_of(fd);
	unsigned char byte, changed;

	(void)state;
	for (off_t at = 0; at < size; at++)
		for (int bit = 0; bit < 8; bit++) {
			assert_int_equal(pread(fd, &byte, 1, at), 1);
			changed = byte ^ (unsigned char)(1 << bit);
			assert_int_equal(pwrite(fd, &changed, 1, at), 1);
			ssize_t n = read_of(fd, &got);

			/* An invalid end counts as cut off. */
			assert_true(n < 0 ||
				    (n == ROWS && !got.ended &&
				     at >= size - (off_t)sizeof(struct row)) ||
				    (n == 0 && !got.ended && got.identity != IDENTITY));
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
	assert_int_equal(read_of(fd, &got), ROWS);
	close(fd);
}

static void cut_files_lack_the_end_mark(void **state)
{
	struct idx_file_state got;
	int fd = file_of(IDENTITY, ROWS, true);

	(void)state;
	for (off_t size = size_of(fd) - 1; size >= IDX_FILE_HEADER_BYTES; size--) {
		assert_int_equal(ftruncate(fd, size), 0);
		assert_int_equal(read_of(fd, &got),
				 (size - IDX_FILE_HEADER_BYTES) / (off_t)sizeof(struct row));
		assert_false(got.ended);
	}
	assert_int_equal(ftruncate(fd, IDX_FILE_HEADER_BYTES - 1), 0);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
}

/* Replaces rows of `to` by rows of `from`, from one row on. */
static void copy_rows(int from, int to, size_t index, size_t to_index, size_t n)
{
	struct row rows[ROWS];
	off_t off = IDX_FILE_HEADER_BYTES + (off_t)(index * sizeof(struct row));

	assert_int_equal(file_pread_all(from, rows, n * sizeof(*rows), (uint64_t)off), 0);
	assert_int_equal(file_pwrite_all(to, rows, n * sizeof(*rows),
					 IDX_FILE_HEADER_BYTES + to_index * sizeof(struct row)),
			 0);
}

static void rows_of_other_files_and_places_are_refused(void **state)
{
	struct idx_file_state got;
	int other = file_of(IDENTITY + 1, ROWS, true), fd = file_of(IDENTITY, ROWS, true);

	(void)state;
	copy_rows(other, fd, 3, 3, 1);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
	fd = file_of(IDENTITY, ROWS, true);
	copy_rows(fd, fd, 3, 4, 1);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
	/* One row in the middle is missing. */
	fd = file_of(IDENTITY, ROWS, true);
	copy_rows(fd, fd, 4, 3, ROWS - 3);
	assert_int_equal(ftruncate(fd, size_of(fd) - (off_t)sizeof(struct row)), 0);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
	/* Beyond the end. */
	fd = file_of(IDENTITY, ROWS - 1, true);
	assert_int_equal(ftruncate(fd, size_of(fd) + 1), 0);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	copy_rows(other, fd, 0, ROWS, 1);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
	close(other);
}

static void torn_rows_are_left_out(void **state)
{
	const struct row zero = {{0}, {0}, 0};
	struct idx_file_state got;
	int fd = file_of(IDENTITY, ROWS, false);

	(void)state;
	/* After a power cut, parts that were not written are zeros. */
	assert_int_equal(ftruncate(fd, size_of(fd) - 5), 0);
	assert_int_equal(ftruncate(fd, size_of(fd) + 20000), 0);
	assert_int_equal(read_of(fd, &got), ROWS - 1);
	assert_false(got.ended);
	close(fd);
	/* Zeros between rows are damage. */
	fd = file_of(IDENTITY, ROWS, false);
	assert_int_equal(
		file_pwrite_all(fd, &zero, sizeof(zero), IDX_FILE_HEADER_BYTES + 3 * sizeof(zero)),
		0);
	assert_int_equal(read_of(fd, &got), -EBADMSG);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read_back_unchanged),
		cmocka_unit_test(each_changed_bit_is_detected),
		cmocka_unit_test(cut_files_lack_the_end_mark),
		cmocka_unit_test(rows_of_other_files_and_places_are_refused),
		cmocka_unit_test(torn_rows_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
