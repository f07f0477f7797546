/* Perf maps of processes in a root of their own. */
#include "base/cleanup.h"
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define USER 12345
#define OTHER 54321

static char dir[] = "/tmp/profcpu-other-root-XXXXXX";

static void put(const char *path, uid_t owner, mode_t mode)
{
	AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, "1000 10 f\n", 10), 10);
	assert_int_equal(fchown(fd, owner, owner) | fchmod(fd, mode), 0);
}

/* The path of a perf map in a root. */
static const char *map_in(const char *root, pid_t pid)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", root, pid);
	return path;
}

static bool has_own_user_namespace(void)
{
	AUTO_CLOSE int fd = -1;
	char map[32];

	/* The file belongs to root otherwise. */
	if (prctl(PR_SET_DUMPABLE, 1) || unshare(CLONE_NEWUSER))
		return false;
	snprintf(map, sizeof(map), "0 %d 1", USER);
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return write(fd, map, strlen(map)) == (ssize_t)strlen(map);
}

/* A process of a user in a root, perhaps in a user namespace of its own. Returns -1: not possible.
 */
static pid_t start_in(const char *root, uid_t user, bool own_namespace)
{
	int ready[2];
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (!pid) {
		if (setresgid(user, user, user) || (!own_namespace && chroot(root)) ||
		    setresuid(user, user, user))
			_exit(1);
		if (own_namespace && (!has_own_user_namespace() || chroot(root)))
			_exit(2);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "x", 1) != 1)
			_exit(3);
		for (;;)
			pause();
	}
	close(ready[1]);
	bool started = read(ready[0], &c, 1) == 1;

	close(ready[0]);
	if (!started)
		waitpid(pid, NULL, 0);
	return started ? pid : -1;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int perfmap(struct opener *o, pid_t pid)
{
	AUTO_CLOSE int fd = -1;

	return opener_perfmap(o, pid, LIMIT, &fd);
}

static void a_user_namespace_makes_nobody_root_for_others(void **state)
{
	pid_t first = start_in(dir, USER, true), victim = start_in(dir, OTHER, false);
	struct opener *o;

	(void)state;
	if (first < 0)
		skip();
	put(map_in(dir, victim), USER, 0644);
	put(map_in(dir, first), USER, 0600);
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(opener_pin(o, first), 0);
	assert_int_equal(perfmap(o, victim), -EACCES);
	assert_int_equal(perfmap(o, first), 0);
	/* Root's own map counts for both. */
	put(map_in(dir, victim), 0, 0644);
	put(map_in(dir, first), 0, 0644);
	assert_int_equal(perfmap(o, victim), 0);
	assert_int_equal(perfmap(o, first), 0);
	opener_free(o);
	end(first);
	end(victim);
}

/* A process with the PID 1 in its PID namespace and the root dir; shared: its /tmp is ours. */
static pid_t start_container(bool shared)
{
	int ready[2];
	char c, path[64];

	snprintf(path, sizeof(path), "%s/tmp", dir);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0);

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) ||
		    (shared && mount("/tmp", path, NULL, MS_BIND, NULL)) || chroot(dir) ||
		    chdir("/") || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	bool started = pid > 0 && read(ready[0], &c, 1) == 1;

	close(ready[0]);
	if (pid > 0 && !started)
		waitpid(pid, NULL, 0);
	return started ? pid : -1;
}

/* A map with our PID of the process. Elsewhere it is one that another process left. */
static void a_map_in_our_tmp_counts_if_the_process_shares_it(void **state)
{
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		pid_t pid = start_container(shared);
		struct opener *o;

		if (pid < 0)
			skip();
		put(map_in("", pid), 0, 0644);
		put(map_in(dir, pid), 0, 0644);
		assert_int_equal(opener_new(&o), 0);
		int readable = perfmap(o, pid);

		put(map_in("", pid), 0, 0600);
		int private = perfmap(o, pid);

		unlink(map_in("", pid));
		int none = perfmap(o, pid);

		put(map_in(dir, 1), 0, 0600);
		int own = perfmap(o, pid);

		unlink(map_in(dir, 1));
		end(pid);
		opener_free(o);
		assert_int_equal(readable, shared ? 0 : -ENOENT);
		assert_int_equal(private, readable);
		assert_int_equal(none, -ENOENT);
		assert_int_equal(own, shared ? -ENOENT : 0);
	}
}

static int setup(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/tmp", dir);
	return mkdir(path, 0755);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_user_namespace_makes_nobody_root_for_others),
		cmocka_unit_test(a_map_in_our_tmp_counts_if_the_process_shares_it),
	};

	if (geteuid()) {
		puts("needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
