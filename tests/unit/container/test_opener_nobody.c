/* Rights that do not hold: of ended processes, and in a recording of another user. */
#include "container/opener.h"
#include "container/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define USER 54321
#define OTHER 54322

static int no_rights; /* the error of reading rights */

__typeof__(rights_read) __real_rights_read, __wrap_rights_read;
int __wrap_rights_read(pid_t pid, struct proc_status *ret_status, struct rights *ret_rights)
{
	return no_rights ? no_rights : __real_rights_read(pid, ret_status, ret_rights);
}

static char dir[] = "/tmp/profcpu-nobody-XXXXXX";

static const char *in_dir(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int put(const char *name, uid_t uid, mode_t mode)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int r = fd < 0 || fchown(fd, uid, uid) || fchmod(fd, mode) ? -1 : 0;

	close(fd);
	return r;
}

/* Files of root and of a user. */
static int setup(void **state)
{
	(void)state;
	if (geteuid() || !mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	return symlink("world", in_dir("link")) | put("private", 0, 0600) |
	       put("users", USER, 0600) | put("world", 0, 0644);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

/* Returns the error of opening a file in the root of pid, below with our rights. */
static int in_root(struct opener *o, pid_t pid, const char *name)
{
	int fd, r = opener_file(o, pid, in_dir(name), LIMIT, &fd);

	if (!r)
		close(fd);
	return r;
}

static int by_us(struct opener *o, pid_t pid, const char *name)
{
	int fd, r = opener_our_file(o, pid, in_dir(name), LIMIT, &fd);

	if (!r)
		close(fd);
	return r;
}

/* It may have become a process of another user or with another root before its end. */
static void an_ended_process_gets_what_everybody_may_read(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct opener_process process;
		struct opener *o;
		pid_t pid = fork();

		if (!pid) {
			if (i && setresuid(USER, USER, USER))
				_exit(1);
			raise(SIGSTOP);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
		assert_int_equal(opener_new(&o), 0);
		assert_int_equal(in_root(o, pid, i ? "users" : "private"), 0);
		assert_int_equal(in_root(o, pid, "link"), 0);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(in_root(o, pid, i ? "users" : "private"), -EACCES);
		assert_int_equal(in_root(o, pid, "world"), 0);
		assert_int_equal(in_root(o, pid, "link"), -ELOOP);
		assert_int_equal(opener_process(o, pid, &process), 0);
		assert_true(process.ended);
		opener_free(o);
	}
}

/* Python makes its perf map with mode 0600. Files that another user moves there are older. */
static void an_ended_process_keeps_the_perf_map_that_it_made(void **state)
{
	char path[64];
	struct opener *o;
	int fd = -1;

	(void)state;
	nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* the others are older */
	pid_t pid = fork();

	if (!pid) {
		pause();
		_exit(0);
	}
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(opener_pin(o, pid), 0);
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), 0);
	close(fd);
	assert_int_equal(link(path, in_dir("second")), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	assert_int_equal(unlink(in_dir("second")) | chown(path, USER, USER), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	assert_int_equal(rename(in_dir("private"), path), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	/* It may be that of a new process with its PID. */
	assert_int_equal(unlink(path) | put("private", 0, 0600), 0);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	close(fd);
	opener_note_new(o, pid);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	unlink(path);
	opener_free(o);
}

static void *change_root_later(void *at)
{
	char done;

	while (read(*(int *)at, &done, 1) == 1)
		if (chroot(dir) || chdir("/") || syscall(SYS_setresuid, OTHER, OTHER, OTHER) ||
		    write(((int *)at)[1], "x", 1) != 1)
			_exit(1);
	_exit(0);
}

/* Its other threads still run. */
static void wait_for_end_of_main_thread(pid_t pid)
{
	char path[64], text[512];
	size_t len = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	do {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		len = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
		text[len] = 0;
		usleep(1000);
	} while (!strstr(text, ") Z "));
}

/* /proc/PID shows neither the user nor the root of the threads that still run. */
static void a_process_without_its_main_thread_has_the_rights_of_others(void **state)
{
	int to[2], from[2], ends[2], fd;
	struct opener_process process;
	struct opener *o;
	pthread_t thread;
	char c;

	(void)state;
	assert_int_equal(pipe(to) | pipe(from), 0);
	pid_t pid = fork();

	if (!pid) {
		ends[0] = to[0];
		ends[1] = from[1];
		close(to[1]);
		pthread_create(&thread, NULL, change_root_later, ends);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(in_root(o, pid, "private"), 0);
	wait_for_end_of_main_thread(pid);
	assert_int_equal(write(to[1], "x", 1), 1);
	assert_int_equal(read(from[0], &c, 1), 1);
	assert_int_equal(in_root(o, pid, "world"), -ENOENT);
	assert_int_equal(opener_file(o, pid, "/private", LIMIT, &fd), -EACCES);
	assert_int_equal(opener_file(o, pid, "/world", LIMIT, &fd), 0);
	close(fd);
	assert_int_equal(opener_process(o, pid, &process), 0);
	assert_int_equal(process.ns_pid, pid);
	assert_false(process.ended);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(to[0]);
	close(to[1]);
	close(from[0]);
	close(from[1]);
	opener_free(o);
}

/* Becomes this user, and keeps the permission to change it. */
static void become(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3] = {
		{.effective = 1U << CAP_SETUID, .permitted = 1U << CAP_SETUID}};

	if (prctl(PR_SET_KEEPCAPS, 1) || setresuid(uid, uid, uid) ||
	    syscall(SYS_capset, &header, caps))
		_exit(1);
}

static void change_user(void)
{
	if (setresuid(OTHER, OTHER, OTHER))
		_exit(1);
}

static void change_root(void)
{
	if (chroot(dir) || chdir("/"))
		_exit(1);
}

/* Starts a child as a user, or 0: root, which stops, calls `then` and stops again. */
static pid_t start(uid_t uid, void (*then)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		if (uid)
			become(uid);
		raise(SIGSTOP);
		then();
		raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void go_on(pid_t pid)
{
	int status;

	kill(pid, SIGCONT);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
}

static void a_user_that_a_process_gave_up_does_not_count(void **state)
{
	struct opener *o;
	pid_t pid = start(USER, change_user);

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(in_root(o, pid, "users"), 0);
	go_on(pid);
	/* Unless access to it is denied, its earlier rights never replace those of now. */
	no_rights = -ENOMEM;
	assert_int_equal(in_root(o, pid, "users"), -ENOMEM);
	no_rights = 0;
	assert_int_equal(in_root(o, pid, "users"), -EACCES);
	assert_int_equal(in_root(o, pid, "world"), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	opener_free(o);
}

static void a_root_that_a_process_gave_up_is_not_searched(void **state)
{
	struct opener *o;
	int fd;
	pid_t pid = start(0, change_root);

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(in_root(o, pid, "world"), 0);
	go_on(pid);
	assert_int_equal(in_root(o, pid, "world"), -ENOENT);
	assert_int_equal(opener_file(o, pid, "/world", LIMIT, &fd), 0);
	close(fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	opener_free(o);
}

/* 0, or the number of the check that failed. */
static int open_confined(void)
{
	struct opener *before, *after;
	int fd;

	if (opener_new(&before) || opener_pin(before, getppid()))
		return 1;
	opener_confine(USER);
	if (opener_new(&after))
		return 2;
	if (opener_pin(before, getppid()) != -ESRCH || opener_pin(after, getppid()) != -ESRCH ||
	    in_root(before, getppid(), "world") != -ESRCH)
		return 3;
	for (int i = 0; i < 2; i++) {
		struct opener *o = i ? after : before;

		if (by_us(o, getppid(), "private") != -EACCES || by_us(o, 0, "private") != -EACCES)
			return 4;
		if (opener_own_file(o, 0, 0, in_dir("private"), LIMIT, &fd) != -EACCES)
			return 6;
		if (by_us(o, 0, "users") || by_us(o, 0, "world"))
			return 5;
	}
	opener_free(before);
	opener_free(after);
	return 0;
}

static void a_recording_of_another_user_has_his_rights(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(open_confined());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ended_process_gets_what_everybody_may_read),
		cmocka_unit_test(an_ended_process_keeps_the_perf_map_that_it_made),
		cmocka_unit_test(a_process_without_its_main_thread_has_the_rights_of_others),
		cmocka_unit_test(a_user_that_a_process_gave_up_does_not_count),
		cmocka_unit_test(a_root_that_a_process_gave_up_is_not_searched),
		cmocka_unit_test(a_recording_of_another_user_has_his_rights),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
