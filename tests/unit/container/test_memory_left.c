/* container/memory_left: the machine's memory and the limits of control groups, of both versions.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "container/memory_left.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

struct fixture {
	char dir[32];
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, "/tmp/test_memory_left.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->dir, O_RDONLY | O_DIRECTORY);

	file_remove_contents(fd);
	close(fd);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

/* Writes a file below the fixture's directory, and makes the directories of its path. */
static void put(const struct fixture *f, const char *name, const char *text)
{
	AUTO_FREE char *path = file_join(f->dir, name);
	char *slash = strrchr(path, '/');

	*slash = '\0';
	assert_int_equal(file_mkdirs(path), 0);
	*slash = '/';
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static uint64_t left(const struct fixture *f)
{
	AUTO_FREE char *proc = file_join(f->dir, "proc");
	AUTO_FREE char *groups = file_join(f->dir, "cgroup");

	return memory_left_in(proc, groups);
}

static void without_groups_the_machine_is_the_limit(void **state)
{
	struct fixture *f = *state;

	assert_true(left(f) == UINT64_MAX);
	put(f, "proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\n");
	assert_int_equal(left(f), 2 * MIB);
	put(f, "proc/self/cgroup", "12:cpu:/a\n0::/nowhere/here\n");
	assert_int_equal(left(f), 2 * MIB);
	put(f, "proc/self/cgroup", "nonsense\n:\n::\n3:memory\n\n");
	assert_int_equal(left(f), 2 * MIB);
	put(f, "proc/meminfo", "MemAvailable:       0 kB\n");
	assert_int_equal(left(f), 0);
	/* This process has some memory left, and not more than a machine can have. */
	assert_true(memory_left() > MIB && memory_left() < (uint64_t)1 << 50);
}

static void each_group_on_the_way_up_limits(void **state)
{
	struct fixture *f = *state;

	put(f, "proc/meminfo", "MemAvailable: 1048576 kB\n");
	put(f, "proc/self/cgroup", "0::/pod/main\n");
	put(f, "cgroup/pod/main/memory.max", "max\n");
	put(f, "cgroup/pod/main/memory.current", "1048576\n");
	assert_int_equal(left(f), 1024 * MIB);
	put(f, "cgroup/pod/memory.max", "67108864\n");
	put(f, "cgroup/pod/memory.current", "50331648\n");
	assert_int_equal(left(f), 16 * MIB);
	/* Files in the page cache can be dropped. */
	put(f, "cgroup/pod/memory.stat",
	    "anon 1\nfile 9\ninactive_file 4194304\nactive_file 4194304\n");
	assert_int_equal(left(f), 24 * MIB);
	put(f, "cgroup/pod/memory.stat",
	    "inactive_file 4194304\nactive_file 4194304\nslab_reclaimable 8388608\n");
	assert_int_equal(left(f), 28 * MIB);
	put(f, "cgroup/pod/main/memory.max", "2097152\n");
	assert_int_equal(left(f), 1 * MIB);
	put(f, "cgroup/pod/main/memory.current", "4194304\n");
	assert_int_equal(left(f), 0);
	/* A container without a group namespace: the path exists only outside. */
	put(f, "proc/self/cgroup", "0::/kubepods/pod/elsewhere\n");
	put(f, "cgroup/memory.max", "33554432\n");
	put(f, "cgroup/memory.current", "0\n");
	assert_int_equal(left(f), 32 * MIB);
}

static void version_1_limits_too(void **state)
{
	struct fixture *f = *state;

	put(f, "proc/meminfo", "MemAvailable: 1048576 kB\n");
	put(f, "proc/self/cgroup", "9:name=systemd:/x\n4:cpu,memory:/a/b\n0::/\n");
	put(f, "cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put(f, "cgroup/memory/memory.usage_in_bytes", "4194304\n");
	assert_int_equal(left(f), 1024 * MIB);
	put(f, "cgroup/memory/a/memory.limit_in_bytes", "8388608\n");
	put(f, "cgroup/memory/a/memory.usage_in_bytes", "4194304\n");
	put(f, "cgroup/memory/a/memory.stat",
	    "inactive_file 4\ntotal_inactive_file 524288\ntotal_active_file 524288\n");
	assert_int_equal(left(f), 5 * MIB);
	put(f, "proc/self/cgroup", "4:memory_other:/a/b\n");
	assert_int_equal(left(f), 1024 * MIB);
}

static void taken_memory_is_what_this_process_wrote(void **state)
{
	const size_t bytes = 64 * MIB;
	uint64_t before = memory_taken();
	char *memory = malloc(bytes);

	(void)state;
	assert_non_null(memory);
	memset(memory, 1, bytes);
	assert_in_range(memory_taken() - before, bytes * 9 / 10, bytes * 2);
	free(memory);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_groups_the_machine_is_the_limit),
		TEST(each_group_on_the_way_up_limits),
		TEST(version_1_limits_too),
		TEST(taken_memory_is_what_this_process_wrote),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
