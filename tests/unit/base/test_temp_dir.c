#include "base/cleanup.h"
#include "base/file.h"
#include "base/temp_dir.h"
#include "container/ask.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char base[] = "/tmp/test_temp_dir.XXXXXX";

/* Makes one with a file in it. */
static struct temp_dir *make(char *path, size_t cap)
{
	struct temp_dir *d;
	char link[64];
	int fd;

	assert_int_equal(temp_dir_make(base, &d, &fd), 0);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, cap - 1);

	assert_true(n > 0);
	path[n] = 0;
	AUTO_CLOSE int file = openat(fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(file >= 0);
	close(fd);
	return d;
}

static void it_is_removed_with_its_contents(void **state)
{
	char path[128];
	struct temp_dir *d = make(path, sizeof(path));

	(void)state;
	temp_dir_remove(d);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(errno, ENOENT);
}

static int kill_child(void *ctx, pid_t pid)
{
	struct proc_status status;

	/* profcpu asks about processes in another child. */
	if (!proc_status(pid, &status) && status.ppid == getpid() &&
	    strcmp(status.comm, ASK_NAME) != 0 && !kill(pid, SIGKILL))
		++*(int *)ctx;
	return 0;
}

static void it_is_removed_although_the_child_was_killed(void **state)
{
	char path[128];
	struct temp_dir *d = make(path, sizeof(path));
	int killed = 0;

	(void)state;
	assert_int_equal(proc_each_pid(kill_child, &killed), 0);
	assert_int_equal(killed, 1);
	temp_dir_remove(d);
	assert_int_equal(access(path, F_OK), -1);
}

/* In a shared directory, another user can take the name as soon as it is free. */
static void another_directory_of_that_name_stays(void **state)
{
	char path[128], away[160], other[160];

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		struct temp_dir *d = make(path, sizeof(path));
		int n = 0;

		snprintf(away, sizeof(away), "%s.away", path);
		snprintf(other, sizeof(other), "%s/other", path);
		assert_int_equal(rename(path, away), 0);
		assert_int_equal(mkdir(path, 0700), 0);
		AUTO_CLOSE int fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

		assert_true(fd >= 0);
		if (killed)
			assert_int_equal(proc_each_pid(kill_child, &n), 0);
		assert_int_equal(n, killed);
		temp_dir_remove(d);
		assert_int_equal(access(other, F_OK), 0);
		/* Its own contents are gone, because the descriptor finds them. */
		assert_int_equal(rmdir(away), 0);
		assert_int_equal(unlink(other) | rmdir(path), 0);
	}
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(base) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return rmdir(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_removed_with_its_contents),
		cmocka_unit_test(it_is_removed_although_the_child_was_killed),
		cmocka_unit_test(another_directory_of_that_name_stays),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
