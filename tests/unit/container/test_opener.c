#include "container/opener_impl.h"
#include "container/resolve.h"

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
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define THIRD_UID 12345
#define TARGET_UID 54321
#define skip_unless_root()                           \
	do {                                         \
		if (geteuid() || !root_is_mounted()) \
			skip();                      \
	} while (0)

static char dir[] = "/tmp/profcpu-opener-XXXXXX";

/* Needs a root that is a mount point. In a chroot pivot_root fails. */
static bool root_is_mounted(void)
{
	struct statx x;

	if (statx(AT_FDCWD, "/", 0, 0, &x) || !(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return true;
	return x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* setns to a mount namespace also changes the root. In a chroot that root is not ours. */
static bool root_is_of_namespace(void)
{
	struct stat before, after;
	int status = 0;
	pid_t pid = stat("/", &before) ? -1 : fork();

	if (!pid) {
		int ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

		if (setns(ns, CLONE_NEWNS) || stat("/", &after))
			_exit(1);
		_exit(before.st_dev != after.st_dev || before.st_ino != after.st_ino);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	       !WEXITSTATUS(status);
}

static void put_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) || close(fd))
		_exit(90);
}

/* A child that calls prepare, signals the parent, and waits until it is killed. */
static pid_t start_child(void (*prepare)(void))
{
	int ready[2];
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prepare)
			prepare();
		if (write(ready[1], "x", 1) != 1)
			_exit(91);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* The text of a file; "" and *ret if it was refused. */
static const char *read_and_close(int r, int fd)
{
	static char text[256];

	text[0] = 0;
	if (!r) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

		text[n < 0 ? 0 : n] = 0;
		close(fd);
	}
	return text;
}

/* A root of its own: tmpfs, filled as an attacker would fill it. */
static void enter_tmpfs_root(void)
{
	char path[256];

	if (unshare(CLONE_NEWNS) || mount("none", "/", "", MS_REC | MS_PRIVATE, NULL))
		_exit(92);
	snprintf(path, sizeof(path), "%s/root", dir);
	mkdir(path, 0755);
	if (mount("tmpfs", path, "tmpfs", 0, "size=1m") || chdir(path) || mkdir("tmp", 0777) ||
	    mkdir("old", 0755) || mkdir("sub", 0755) || mkdir("sub/deep", 0755) ||
	    mkdir("proc", 0755))
		_exit(93);
	put_file("inside", "in the container");
	put_file("sub/deep/file", "deep");
	if (mount("tmpfs", "tmp", "tmpfs", 0, "size=1m"))
		_exit(94);
	put_file("tmp/perf-1.map", "1000 10 wrong");
	snprintf(path, sizeof(path), "tmp/perf-%d.map", getpid());
	put_file(path, "1000 10 inside_map");
	if (mount("proc", "proc", "proc", 0, NULL))
		_exit(95);
	if (syscall(SYS_pivot_root, ".", "old") || chdir("/") || umount2("/old", MNT_DETACH))
		_exit(96);
	if (symlink("/etc/hostname", "absolute") ||
	    symlink("../../../../../../etc/hostname", "climbing") || symlink("/inside", "good") ||
	    symlink("sub/deep/../../inside", "winding") || symlink("loop2", "loop1") ||
	    symlink("loop1", "loop2") || symlink("/proc/self/exe", "magic") ||
	    symlink("/sub", "dir") || symlink("/proc/self/root/etc/hostname", "escape") ||
	    symlink("/proc/version", "version"))
		_exit(97);
}

struct path_case {
	const char *path, *text;
	int error;
};

static void check_paths(struct opener *o, pid_t pid, const struct path_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int fd = -1, r = opener_file(o, pid, cases[i].path, LIMIT, &fd);

		if (r != cases[i].error)
			print_message("%s: %d\n", cases[i].path, r);
		assert_int_equal(r, cases[i].error);
		assert_string_equal(read_and_close(r, fd), cases[i].text);
	}
}

static void check_links(bool by_steps)
{
	static const struct path_case cases[] = {
		{"/inside", "in the container", 0},
		{"inside", "in the container", 0},
		{"//./inside", "in the container", 0},
		{"/../../inside", "in the container", 0},
		{"/good", "in the container", 0},
		{"/winding", "in the container", 0},
		{"/sub/deep/file", "deep", 0},
		{"/dir/deep/file", "deep", 0},
		{"/dir/../inside", "in the container", 0},
		{"/absolute", "", -ENOENT},
		{"/climbing", "", -ENOENT},
		{"/loop1", "", -ELOOP},
		{"/inside/", "", -ENOTDIR},
		{"/inside/x", "", -ENOTDIR},
		{"/inside/..", "", -ENOTDIR},
		{"/sub", "", -EACCES},
		{"/", "", -EACCES},
		{"", "", -ENOENT},
		{"/none", "", -ENOENT},
		{"/version", "", -EACCES},
		{"/proc/version", "", -EACCES},
	};
	struct opener_process p;
	struct opener *o;
	int fd;

	assert_int_equal(opener_new(&o), 0);
	if (by_steps)
		opener_without_openat2(o);
	pid_t pid = start_child(enter_tmpfs_root);

	assert_int_equal(opener_pin(o, pid), 0);
	assert_int_equal(opener_process(o, pid, &p), 0);
	assert_true(p.other_root);
	assert_int_equal(p.uid, 0);
	check_paths(o, pid, cases, sizeof(cases) / sizeof(cases[0]));
	/* Magic links lead anywhere, so they are never followed. /proc is not even entered. */
	for (int i = 0; i < 2; i++) {
		int r = opener_file(o, pid, i ? "/magic" : "/escape", LIMIT, &fd);

		assert_int_equal(r, -EACCES);
	}
	end_child(pid);
	opener_free(o);
}

static void links_never_lead_out_of_the_root(void **state)
{
	(void)state;
	skip_unless_root();
	check_links(false);
	check_links(true);
}

static void devices_are_found_in_the_mounts_of_the_process(void **state)
{
	char path[64];
	struct stat root, proc;
	struct opener *o;

	(void)state;
	skip_unless_root();
	assert_int_equal(opener_new(&o), 0);
	pid_t pid = start_child(enter_tmpfs_root);

	snprintf(path, sizeof(path), "/proc/%d/root/", pid);
	assert_int_equal(stat(path, &root), 0);
	assert_int_equal(stat("/proc/version", &proc), 0);
	assert_false(opener_may_read_device(o, getpid(), root.st_dev));
	assert_true(opener_may_read_device(o, pid, root.st_dev));
	assert_false(opener_may_read_device(o, pid, proc.st_dev));
	assert_false(opener_may_read_device(o, pid, 0));
	end_child(pid);
	opener_free(o);
}

static void files_open_after_the_process_has_ended(void **state)
{
	char path[64], expected[64];
	struct opener *o;
	int fd, root;

	(void)state;
	skip_unless_root();
	assert_int_equal(opener_new(&o), 0);
	pid_t pid = start_child(enter_tmpfs_root);

	assert_int_equal(opener_pin(o, pid), 0);
	end_child(pid);
	int r = opener_file(o, pid, "/inside", LIMIT, &fd);

	assert_int_equal(r, 0);
	assert_string_equal(read_and_close(r, fd), "in the container");
	/* /tmp of the target is a mount of its own. */
	r = opener_perfmap(o, pid, LIMIT, &fd);
	assert_int_equal(r, 0);
	assert_string_equal(read_and_close(r, fd), "1000 10 inside_map");
	assert_int_equal(opener_root(o, pid, &root), 0);
	assert_int_equal(opener_pin(o, pid), 0);
	assert_int_equal(opener_map_file(o, pid, 0x1000, 0x2000, LIMIT, &fd), -ESRCH);
	/* Our own root has none of these files. */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	snprintf(expected, sizeof(expected), "/inside");
	assert_int_not_equal(access(path, F_OK), 0);
	assert_int_not_equal(access(expected, F_OK), 0);
	opener_free(o);
}

static void become_target(void)
{
	if (setresgid(TARGET_UID, TARGET_UID, TARGET_UID) ||
	    setresuid(TARGET_UID, TARGET_UID, TARGET_UID))
		_exit(98);
}

static void give_file(const char *name, uid_t uid)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	put_file(path, name);
	assert_int_equal(chown(path, uid, uid), 0);
	assert_int_equal(chmod(path, 0644), 0);
}

static int open_in_dir(struct opener *o, pid_t pid, const char *name, int *ret_fd)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return opener_file(o, pid, path, LIMIT, ret_fd);
}

static void a_planted_perf_map_is_refused_without_blocking(void **state)
{
	char path[64], other[256], target[256];
	struct opener *o;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, s;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	pid_t pid = start_child(NULL);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -ENOENT);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	unlink(path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	unlink(path);
	assert_int_equal(symlink("/proc/kmsg", path), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	unlink(path);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	rmdir(path);
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(a.sun_path, path);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -EACCES);
	assert_int_equal(opener_socket(o, pid, path, &fd), -ECONNREFUSED);
	assert_int_equal(listen(s, 1), 0);
	assert_int_equal(opener_socket(o, pid, path, &fd), 0);
	close(fd);
	close(s);
	unlink(path);
	/* A link to a regular file works like the file. */
	snprintf(target, sizeof(target), "%s/map", dir);
	put_file(target, "map");
	assert_int_equal(symlink(target, path), 0);
	int r = opener_perfmap(o, pid, LIMIT, &fd);

	assert_string_equal(read_and_close(r, fd), "map");
	unlink(path);
	snprintf(other, sizeof(other), "%s/huge", dir);
	put_file(other, "");
	assert_int_equal(truncate(other, (off_t)1 << 40), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), -E2BIG);
	unlink(path);
	unlink(other);
	end_child(pid);
	opener_free(o);
}

static void a_deleted_image_opens_by_its_mapping(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	struct opener *o;
	char path[256];
	int fd;

	(void)state;
	skip_unless_root();
	give_file("image", THIRD_UID);
	snprintf(path, sizeof(path), "%s/image", dir);
	int image = open(path, O_RDONLY | O_CLOEXEC);
	char *p = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, image, 0);

	assert_true(image >= 0 && p != MAP_FAILED);
	close(image);
	unlink(path);
	assert_int_equal(opener_new(&o), 0);
	int r = opener_map_file(o, getpid(), (uintptr_t)p, (uintptr_t)p + page, LIMIT, &fd);

	assert_int_equal(r, 0);
	assert_string_equal(read_and_close(r, fd), "image");
	assert_int_equal(opener_map_file(o, getpid(), (uintptr_t)p, (uintptr_t)p + page, 2, &fd),
			 -E2BIG);
	assert_int_equal(opener_map_file(o, getpid(), 0x1000, 0x2000, LIMIT, &fd), -ENOENT);
	assert_int_equal(opener_map_file(o, 0x7ffffffe, 0x1000, 0x2000, LIMIT, &fd), -ESRCH);
	munmap(p, (size_t)page);
	opener_free(o);
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#define MANY 2000

static void thousands_of_processes_cost_few_descriptors(void **state)
{
	static pid_t pids[MANY];
	int before, r = 0, fd, at = 0;
	struct opener *o;
	char path[64];

	(void)state;
	skip_unless_root();
	if (!root_is_of_namespace())
		skip();
	assert_int_equal(opener_new(&o), 0);
	before = count_fds();
	/* One foreign namespace with many processes. */
	pid_t first = start_child(enter_tmpfs_root);

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", first);
	int ns = open(path, O_RDONLY | O_CLOEXEC);

	for (at = 0; at < MANY && !r; at++) {
		int done[2];

		assert_int_equal(pipe(done), 0);
		pids[at] = fork();
		if (!pids[at]) {
			if (setns(ns, CLONE_NEWNS))
				_exit(1);
			close(done[1]);
			for (;;)
				pause();
		}
		if (pids[at] < 0)
			r = -errno;
		close(done[1]);
		char c;

		/* The child closes its end when it has entered the namespace. */
		if (pids[at] > 0 && read(done[0], &c, 1))
			r = -EIO;
		close(done[0]);
	}
	int made = r ? at - 1 : at;

	assert_true(made > 100);
	for (int i = 0; i < made; i++)
		assert_int_equal(opener_pin(o, pids[i]), 0);
	assert_true(count_fds() - before <= 3 + 1);
	for (int i = 0; i < made; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < made; i++)
		waitpid(pids[i], NULL, 0);
	end_child(first);
	close(ns);
	r = opener_file(o, pids[made - 1], "/inside", LIMIT, &fd);
	assert_string_equal(read_and_close(r, fd), "in the container");
	opener_free(o);
	assert_true(count_fds() <= before);
}

static void own_namespace(void)
{
	if (unshare(CLONE_NEWNS))
		_exit(99);
}

static void more_roots_than_descriptors_still_open(void **state)
{
	enum { N = OPENER_ROOTS_MAX + 5 };
	static pid_t pids[N];
	struct opener_process p;
	struct opener *o;
	int fd, pinned = 0, refused = 0, before = count_fds();

	(void)state;
	skip_unless_root();
	give_file("shared", 0);
	assert_int_equal(opener_new(&o), 0);
	for (int i = 0; i < N; i++) {
		pids[i] = start_child(own_namespace);
		int r = opener_pin(o, pids[i]);

		pinned += !r;
		refused += r == -EMFILE;
	}
	assert_int_equal(pinned, OPENER_ROOTS_MAX);
	assert_int_equal(refused, N - OPENER_ROOTS_MAX);
	assert_int_equal(opener_process(o, pids[N - 1], &p), 0);
	int r = open_in_dir(o, pids[N - 1], "shared", &fd);

	assert_string_equal(read_and_close(r, fd), "shared");
	for (int i = 0; i < N; i++)
		end_child(pids[i]);
	assert_int_equal(open_in_dir(o, pids[N - 1], "shared", &fd), -ESRCH);
	r = open_in_dir(o, pids[0], "shared", &fd);
	assert_string_equal(read_and_close(r, fd), "shared");
	opener_free(o);
	assert_int_equal(count_fds(), before);
}

static void roots_of_ended_processes_make_room(void **state)
{
	enum { N = OPENER_ROOTS_MAX + 20 };
	static pid_t pids[N];
	struct opener *o;
	int fd, before = count_fds();

	(void)state;
	skip_unless_root();
	give_file("shared", 0);
	assert_int_equal(opener_new(&o), 0);
	int fixed = count_fds();
	pid_t alive = start_child(own_namespace);

	assert_int_equal(opener_pin(o, alive), 0);
	for (int i = 0; i < N; i++) {
		pids[i] = start_child(own_namespace);
		assert_int_equal(opener_pin(o, pids[i]), 0);
		end_child(pids[i]);
		assert_true(count_fds() - fixed <= 2 * OPENER_ROOTS_MAX);
	}
	/* The oldest are gone. */
	assert_int_equal(open_in_dir(o, pids[0], "shared", &fd), -ESRCH);
	int r = open_in_dir(o, pids[N - 1], "shared", &fd);

	assert_string_equal(read_and_close(r, fd), "shared");
	r = open_in_dir(o, pids[N - OPENER_ROOTS_MAX + 1], "shared", &fd);
	assert_string_equal(read_and_close(r, fd), "shared");
	end_child(alive);
	r = open_in_dir(o, alive, "shared", &fd);
	assert_string_equal(read_and_close(r, fd), "shared");
	opener_free(o);
	assert_int_equal(count_fds(), before);
}

static int wait_forever(void *ctx)
{
	(void)ctx;
	while (pause())
		;
	return 0;
}

static void ended_processes_leave_bounded_memory(void **state)
{
	static char stack[16384] __attribute__((aligned(16)));
	struct opener_process p;
	struct opener *o;
	pid_t alive = start_child(NULL), first = 0, last = 0;
	bool reused = false;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(opener_pin(o, alive), 0);
	for (int i = 0; i < OPENER_PINNED_MAX + 10; i++) {
		/* A fork takes too long under a sanitizer, because it copies page tables. */
		last = clone(wait_forever, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
		assert_true(last > 0);
		reused |= !opener_process(o, last, &p);
		assert_int_equal(opener_pin(o, last), 0);
		end_child(last);
		if (!i)
			first = last;
	}
	/* Where PIDs are few, some came twice. */
	assert_true(o->pinned.len <= OPENER_PINNED_MAX);
	if (!reused)
		assert_int_equal(opener_process(o, first, &p), -ESRCH);
	assert_int_equal(opener_process(o, last, &p), 0);
	assert_int_equal(p.ns_pid, last);
	assert_int_equal(opener_process(o, alive, &p), 0);
	end_child(alive);
	opener_free(o);
}

static void a_reused_pid_is_another_process(void **state)
{
	char number[32];
	struct opener_process p;
	struct opener *o;
	int fd, again = 0;

	(void)state;
	skip_unless_root();
	assert_int_equal(opener_new(&o), 0);
	pid_t pid = start_child(enter_tmpfs_root), next = -1;

	assert_int_equal(opener_pin(o, pid), 0);
	end_child(pid);
	snprintf(number, sizeof(number), "%d", pid - 1);
	for (int i = 0; i < 50 && next != pid; i++) {
		int last = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

		usleep(20000);
		if (last < 0 || write(last, number, strlen(number)) < 0)
			break;
		close(last);
		next = start_child(become_target);
		if (next != pid)
			end_child(next);
		again++;
	}
	if (next != pid) {
		opener_free(o);
		skip();
	}
	/* Until the next check the opener keeps the identity. Requests to the living process are
	 * refused. */
	assert_int_equal(opener_map_file(o, pid, 0x1000, 0x2000, LIMIT, &fd), -ESRCH);
	int r = opener_file(o, pid, "/inside", LIMIT, &fd);

	assert_string_equal(read_and_close(r, fd), "in the container");
	assert_int_equal(opener_pin(o, pid), 0);
	assert_int_equal(opener_process(o, pid, &p), 0);
	assert_false(p.other_root);
	assert_int_equal(p.uid, TARGET_UID);
	assert_int_equal(opener_file(o, pid, "/inside", LIMIT, &fd), -ENOENT);
	end_child(pid);
	opener_free(o);
}

static void a_process_that_changes_its_root_is_followed(void **state)
{
	struct opener_process p;
	struct opener *o;
	int go[2], ready[2], fd;
	char c;

	(void)state;
	skip_unless_root();
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(pipe(go) | pipe(ready), 0);
	pid_t pid = fork();

	if (!pid) {
		if (read(go[0], &c, 1) != 1)
			_exit(1);
		enter_tmpfs_root();
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]); /* so that reads end when the child ends */
	assert_int_equal(opener_pin(o, pid), 0);
	assert_int_equal(opener_process(o, pid, &p), 0);
	assert_false(p.other_root);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(opener_pin(o, pid), 0);
	assert_int_equal(opener_process(o, pid, &p), 0);
	assert_true(p.other_root);
	end_child(pid);
	int r = opener_file(o, pid, "/inside", LIMIT, &fd);

	assert_string_equal(read_and_close(r, fd), "in the container");
	opener_free(o);
	close(go[0]);
	close(go[1]);
	close(ready[0]);
}

static void missing_threads_are_reported_as_missing(void **state)
{
	struct opener_process p;
	struct opener *o;
	int fd;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(opener_pin(o, 0x7ffffffe), -ESRCH);
	assert_int_equal(opener_pin(o, 0), -ESRCH);
	assert_int_equal(opener_pin(o, -1), -ESRCH);
	assert_int_equal(opener_process(o, 0x7ffffffe, &p), -ESRCH);
	assert_int_equal(opener_file(o, 0x7ffffffe, "/etc/passwd", LIMIT, &fd), -ESRCH);
	assert_int_equal(opener_root(o, 0x7ffffffe, &fd), -ESRCH);
	assert_int_equal(opener_perfmap(o, 0x7ffffffe, LIMIT, &fd), -ESRCH);
	pid_t zombie = fork();

	if (!zombie)
		_exit(0);
	siginfo_t info;

	waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT);
	assert_int_equal(opener_pin(o, zombie), -ESRCH);
	waitpid(zombie, NULL, 0);
	opener_free(o);
}

/* In a child without rights that examines a process of root. */
static int probe_unprivileged(pid_t victim)
{
	struct opener_process p;
	struct opener *o;
	int fd;

	become_target();
	if (opener_new(&o))
		return 1;
	int r = opener_pin(o, victim);

	if (r != -EACCES && r != -EPERM)
		return 2;
	if (opener_process(o, victim, &p) || p.uid || p.other_root || p.ns_pid <= 0)
		return 3;
	if (opener_file(o, victim, "/etc/passwd", LIMIT, &fd) != r)
		return 4;
	/* The perf map in our own /tmp needs no rights. */
	if (opener_perfmap(o, victim, LIMIT, &fd))
		return 5;
	if (strcmp(read_and_close(0, fd), "1000 10 f"))
		return 6;
	opener_free(o);
	return 0;
}

static void without_rights_the_perf_map_opens(void **state)
{
	char path[64];
	int status;

	(void)state;
	skip_unless_root();
	pid_t victim = start_child(NULL);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", victim);
	put_file(path, "1000 10 f");
	pid_t pid = fork();

	if (!pid)
		_exit(probe_unprivileged(victim));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	end_child(victim);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	return mkdtemp(dir) && !chmod(dir, 0755) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_never_lead_out_of_the_root),
		cmocka_unit_test(devices_are_found_in_the_mounts_of_the_process),
		cmocka_unit_test(files_open_after_the_process_has_ended),
		cmocka_unit_test(a_planted_perf_map_is_refused_without_blocking),
		cmocka_unit_test(a_deleted_image_opens_by_its_mapping),
		cmocka_unit_test(thousands_of_processes_cost_few_descriptors),
		cmocka_unit_test(more_roots_than_descriptors_still_open),
		cmocka_unit_test(roots_of_ended_processes_make_room),
		cmocka_unit_test(ended_processes_leave_bounded_memory),
		cmocka_unit_test(a_reused_pid_is_another_process),
		cmocka_unit_test(a_process_that_changes_its_root_is_followed),
		cmocka_unit_test(missing_threads_are_reported_as_missing),
		cmocka_unit_test(without_rights_the_perf_map_opens),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
