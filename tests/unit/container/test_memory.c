/* container/memory: mapped memory is read, unmapped memory is reported, and the process is
 * unchanged. */
#include "container/memory.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 8

static char *pages; /* odd pages are not mapped */
static size_t page;

static int set_up(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	pages = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	if (pages == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < PAGES * page; i++)
		pages[i] = (char)(1 + i % 251);
	for (size_t i = 1; i < PAGES; i += 2)
		munmap(pages + i * page, page);
	return 0;
}

static uint64_t addr_of(size_t offset)
{
	return (uint64_t)(uintptr_t)pages + offset;
}

static void whole_ranges_are_read(void **state)
{
	char buf[64];

	(void)state;
	assert_int_equal(memory_read(getpid(), addr_of(100), buf, sizeof(buf)), 0);
	assert_memory_equal(buf, pages + 100, sizeof(buf));
	assert_int_equal(memory_read(getpid(), addr_of(page - 32), buf, sizeof(buf)), -EFAULT);
	assert_int_equal(memory_read(getpid(), 0, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(memory_read(getpid(), UINT64_MAX - 8, buf, sizeof(buf)), -EFAULT);
	assert_int_equal(memory_read(getpid(), 0, buf, 0), 0);
}

static void the_start_of_a_range_is_found(void **state)
{
	char buf[64];
	size_t len = 7;

	(void)state;
	assert_int_equal(memory_read_start(getpid(), addr_of(page - 32), buf, sizeof(buf), &len),
			 0);
	assert_int_equal(len, 32);
	assert_memory_equal(buf, pages + page - 32, 32);
	assert_int_equal(memory_read_start(getpid(), addr_of(page), buf, sizeof(buf), &len),
			 -EFAULT);
	assert_int_equal(len, 32);
	assert_int_equal(memory_read_start(getpid(), addr_of(0), buf, sizeof(buf), &len), 0);
	assert_int_equal(len, sizeof(buf));
}

/* More pieces than one system call takes; a third each in a hole, across its edge, or unmapped. */
static void pieces_with_holes_are_read(void **state)
{
	enum { N = 3000 };
	struct memory_piece *pieces = calloc(N, sizeof(*pieces));
	uint64_t *values = calloc(N, sizeof(*values));

	(void)state;
	assert_non_null(pieces);
	assert_non_null(values);
	for (size_t i = 0; i < N; i++) {
		static const uint64_t bad[] = {1, 0, UINT64_MAX - 4};
		uint64_t at = addr_of(i % 500);

		if (i % 3 == 2)
			at = i % 2 ? addr_of(page - 4) : i % 4 ? addr_of(page + 8) : bad[i % 3];
		pieces[i] = (struct memory_piece){.addr = at, .buf = &values[i], .len = 8};
	}
	assert_int_equal(memory_read_pieces(getpid(), pieces, N), 0);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(pieces[i].ok, i % 3 != 2);
		if (i % 3 != 2)
			assert_memory_equal(&values[i], pages + i % 500, 8);
	}
	free(pieces);
	free(values);
}

static void empty_pieces_are_accepted(void **state)
{
	uint64_t value;
	struct memory_piece pieces[] = {
		{.addr = 0},
		{.addr = 1, .buf = &value, .len = 8},
		{.addr = addr_of(page)},
		{.addr = addr_of(0), .buf = &value, .len = 8},
		{.addr = 0},
	};

	(void)state;
	assert_int_equal(memory_read_pieces(getpid(), pieces, 5), 0);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(pieces[i].ok, i != 1);
}

static void pages_with_holes_are_read(void **state)
{
	char *buf = malloc(PAGES * page);
	size_t missing;

	(void)state;
	assert_non_null(buf);
	assert_int_equal(memory_read_pages(getpid(), addr_of(10), buf, PAGES * page - 20, &missing),
			 0);
	assert_int_equal(missing, PAGES / 2 * page - 10);
	for (size_t i = 10; i < PAGES * page - 10; i++)
		assert_int_equal(buf[i - 10], i / page % 2 ? 0 : pages[i]);
	free(buf);
}

static void an_ended_process_is_reported(void **state)
{
	struct memory_piece piece;
	pid_t child = fork();
	uint64_t value;

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	assert_int_equal(memory_read(child, addr_of(0), &value, sizeof(value)), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	piece = (struct memory_piece){.addr = addr_of(0), .buf = &value, .len = sizeof(value)};
	assert_int_equal(memory_read(child, addr_of(0), &value, sizeof(value)), -ESRCH);
	assert_int_equal(memory_read_pieces(child, &piece, 1), -ESRCH);
	assert_int_equal(memory_read_pages(child, addr_of(0), &value, sizeof(value), NULL), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_ranges_are_read),
		cmocka_unit_test(the_start_of_a_range_is_found),
		cmocka_unit_test(pieces_with_holes_are_read),
		cmocka_unit_test(empty_pieces_are_accepted),
		cmocka_unit_test(pages_with_holes_are_read),
		cmocka_unit_test(an_ended_process_is_reported),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
