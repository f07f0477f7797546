/* symbols/jit/pids: processes that may have names of JIT-compiled code. */
#include "symbols/jit/pids.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define NOBODY 2000000123 /* above all PIDs of Linux */

static void few_processes_are_not_listed(void **state)
{
	struct jit_pids pids = {0};

	(void)state;
	for (int32_t i = 0; i < JIT_PIDS_UNLISTED; i++)
		assert_true(jit_pids_may_have_perfmap(&pids, NOBODY + i));
	assert_int_equal(pids.lives, JIT_PIDS_UNREAD);
	assert_false(jit_pids_may_have_perfmap(&pids, NOBODY + JIT_PIDS_UNLISTED));
	jit_pids_free(&pids);
}

static void live_processes_and_old_perf_maps_are_found(void **state)
{
	enum { MAPS = 500 }; /* more than one system call lists */
	struct jit_pids pids = {.unlisted = JIT_PIDS_UNLISTED};
	char path[64];

	(void)state;
	for (int i = 0; i < MAPS; i++) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", NOBODY + i);
		int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		close(fd);
	}
	for (int i = 0; i < MAPS; i++) {
		assert_true(jit_pids_may_have_perfmap(&pids, NOBODY + i));
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", NOBODY + i);
		unlink(path);
	}
	assert_true(jit_pids_may_have_perfmap(&pids, getpid()));
	assert_false(jit_pids_may_have_perfmap(&pids, NOBODY + MAPS));
	assert_int_equal(pids.lives, JIT_PIDS_READ);
	jit_pids_free(&pids);
}

static atomic_bool is_locked;

ssize_t __real_getdents64(int fd, void *buffer, size_t length);
ssize_t __wrap_getdents64(int fd, void *buffer, size_t length);
ssize_t __wrap_getdents64(int fd, void *buffer, size_t length)
{
	while (is_locked)
		usleep(1000);
	return __real_getdents64(fd, buffer, length);
}

/* A target can share /tmp with profcpu, and keep its lock. */
static void a_locked_directory_is_not_waited_for(void **state)
{
	struct jit_pids pids = {.unlisted = JIT_PIDS_UNLISTED};

	(void)state;
	is_locked = true;
	assert_true(jit_pids_may_have_perfmap(&pids, NOBODY));
	assert_true(jit_pids_may_have_perfmap(&pids, NOBODY + 1));
	assert_int_equal(pids.lives, JIT_PIDS_UNREADABLE);
	is_locked = false;
	jit_pids_free(&pids);
}

static void captured_processes_are_listed_once(void **state)
{
	char dir[] = "/tmp/test_pids.XXXXXX";
	struct jit_pids pids = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = openat(dir_fd, "17.methods", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_true(jit_pids_is_captured(&pids, dir_fd, 17));
	assert_false(jit_pids_is_captured(&pids, dir_fd, 18));
	assert_int_equal(pids.captures, JIT_PIDS_READ);
	unlinkat(dir_fd, "17.methods", 0);
	close(dir_fd);
	rmdir(dir);
	jit_pids_free(&pids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_processes_are_not_listed),
		cmocka_unit_test(live_processes_and_old_perf_maps_are_found),
		cmocka_unit_test(a_locked_directory_is_not_waited_for),
		cmocka_unit_test(captured_processes_are_listed_once),
	};

	return cmocka_run_group_tests_name("pids", tests, NULL, NULL);
}
