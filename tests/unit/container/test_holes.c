#include "base/cleanup.h"
#include "base/file.h"
#include "container/holes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { SIZE = 64 << 20, PART = 1 << 20 };

static void a_file_of_which_most_is_holes_is_sparse(void **state)
{
	AUTO_CLOSE int fd = memfd_create("holes", MFD_CLOEXEC);
	AUTO_FREE char *part = malloc(PART);

	(void)state;
	assert_non_null(part);
	memset(part, 'x', PART);
	assert_false(holes_is_sparse(fd));
	assert_int_equal(holes_data_bytes(fd, 0), 0);
	assert_int_equal(ftruncate(fd, PART - 1), 0);
	assert_false(holes_is_sparse(fd)); /* small */
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_true(holes_is_sparse(fd));
	assert_int_equal(file_pwrite_all(fd, part, PART, 8 * PART), 0);
	assert_int_equal(holes_data_bytes(fd, SIZE), PART);
	assert_int_equal(holes_data_bytes(fd, 8 * PART + 1), 1);
	for (uint64_t at = 0; at < SIZE / 2; at += PART)
		assert_int_equal(file_pwrite_all(fd, part, PART, at), 0);
	assert_false(holes_is_sparse(fd));
	for (uint64_t at = SIZE / 2; at < SIZE; at += PART)
		assert_int_equal(file_pwrite_all(fd, part, PART, at), 0);
	assert_int_equal(holes_data_bytes(fd, SIZE), SIZE);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_which_most_is_holes_is_sparse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
