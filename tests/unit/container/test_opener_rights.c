/* container/opener: a target's files are opened with no more rights than the target has. */
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define THIRD 12345
#define TARGET 54321
#define GROUP 54322 /* the target is a member */
#define OTHER_GROUP 12346
#define OVERFLOW_ID 65534
#define UNKNOWN 0x7ffffffe /* no process */

static char dir[] = "/tmp/profcpu-rights-XXXXXX";

/* Whether a target that is TARGET may read a path below dir. */
static const struct path_case {
	const char *path;
	bool may;
} cases[] = {
	{"world", true},
	{"own", true},
	{"own-closed", false},
	{"third", true},
	{"third-closed", false},
	{"shut", false},
	{"program", false},
	{"hard", false},
	{"link", false},
	{"link-good", true},
	{"vault/open", false},
	{"vault/own", false},
	{"link-last", false},
	{"link-first/open", false},
	{"mid/link/open", false},
	{"mid/../world", true},
	{"vault/../world", false},
	{"bound/open", true},
	{"bound/shut", false},
	{"bound-file", false},
	{"bound-open", true},
	{"group", true},
	{"group-denied", false},
	{"other-group", false},
	{"other-group-world", true},
	{"acl-user", true},
	{"acl-user-denied", false},
	{"acl-masked", false},
	{"acl-group", true},
	{"acl-group-denied", false},
	{"acl-other", true},
	{"acl-dir/open", true},
	{"search-only/open", true},
	{"read-only-dir/open", false},
};

static const char *in_dir(const char *name)
{
	static char path[2][256];
	static int next;

	next = !next;
	snprintf(path[next], sizeof(path[next]), "%s/%s", dir, name);
	return path[next];
}

static void put(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, name, strlen(name)), strlen(name));
	assert_int_equal(fchown(fd, uid, gid) | fchmod(fd, mode) | close(fd), 0);
}

static void put_dir(const char *name, mode_t mode)
{
	assert_int_equal(mkdir(in_dir(name), 0700), 0);
	assert_int_equal(chmod(in_dir(name), mode), 0);
}

/* An ACL with one named user or group. */
static void put_acl(const char *name, int tag, uint32_t id, int perm, int mask, int other)
{
	struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[5];
	} acl = {.header = {POSIX_ACL_XATTR_VERSION},
		 .entries = {{ACL_USER_OBJ, 7, ACL_UNDEFINED_ID},
			     {ACL_GROUP_OBJ, 0, ACL_UNDEFINED_ID},
			     {0},
			     {ACL_MASK, (uint16_t)mask, ACL_UNDEFINED_ID},
			     {ACL_OTHER, (uint16_t)other, ACL_UNDEFINED_ID}}};
	struct posix_acl_xattr_entry named = {(uint16_t)tag, (uint16_t)perm, id};

	acl.entries[2] = named;
	if (tag == ACL_USER) {
		acl.entries[2] = acl.entries[1];
		acl.entries[1] = named;
	}
	if (setxattr(in_dir(name), "system.posix_acl_access", &acl, sizeof(acl), 0))
		fail_msg("%s: %s", name, strerror(errno));
}

static void put_all(void)
{
	put("world", 0, 0, 0644);
	put("own", TARGET, TARGET, 0600);
	put("own-closed", TARGET, GROUP, 0044);
	put("third", THIRD, THIRD, 0644);
	put("third-closed", THIRD, THIRD, 0600);
	put("shut", 0, 0, 0600);
	put("program", 0, 0, 0711);
	put("group", 0, GROUP, 0640);
	put("group-denied", 0, GROUP, 0604);
	put("other-group", 0, OTHER_GROUP, 0640);
	put("other-group-world", 0, OTHER_GROUP, 0604);
	put("nogroup", 0, OVERFLOW_ID, 0640);
	put("nobody", OVERFLOW_ID, OVERFLOW_ID, 0600);
	put("bound-file", 0, 0, 0644);
	put("bound-open", 0, 0, 0600);
	put_dir("vault", 0700);
	put_dir("vault/inner", 0755);
	put("vault/open", 0, 0, 0644);
	put("vault/own", TARGET, TARGET, 0600);
	put("vault/inner/open", 0, 0, 0644);
	put("vault/inner/shut", 0, 0, 0600);
	put_dir("bound", 0755);
	put_dir("mid", 0755);
	put_dir("search-only", 0711);
	put("search-only/open", 0, 0, 0644);
	put_dir("read-only-dir", 0744);
	put("read-only-dir/open", 0, 0, 0644);
	assert_int_equal(link(in_dir("shut"), in_dir("hard")), 0);
	assert_int_equal(symlink("shut", in_dir("link")), 0);
	assert_int_equal(symlink("world", in_dir("link-good")), 0);
	assert_int_equal(symlink("vault/open", in_dir("link-last")), 0);
	assert_int_equal(symlink("vault", in_dir("link-first")), 0);
	assert_int_equal(symlink("../vault", in_dir("mid/link")), 0);
	put("acl-user", 0, 0, 0600);
	put_acl("acl-user", ACL_USER, TARGET, R_OK, R_OK, 0);
	put("acl-user-denied", 0, 0, 0604);
	put_acl("acl-user-denied", ACL_USER, TARGET, 0, R_OK, R_OK);
	put("acl-masked", 0, 0, 0600);
	put_acl("acl-masked", ACL_USER, TARGET, R_OK, 0, 0);
	put("acl-group", 0, 0, 0600);
	put_acl("acl-group", ACL_GROUP, GROUP, R_OK, R_OK, 0);
	put("acl-group-denied", 0, 0, 0600);
	put_acl("acl-group-denied", ACL_GROUP, GROUP, 0, R_OK, R_OK);
	put("acl-other", 0, 0, 0600);
	put_acl("acl-other", ACL_USER, THIRD, 0, R_OK, R_OK);
	put_dir("acl-dir", 0700);
	put_acl("acl-dir", ACL_USER, TARGET, X_OK, X_OK, 0);
	put("acl-dir/open", 0, 0, 0644);
}

static void bind_mount(const char *from, const char *to)
{
	if (mount(in_dir(from), in_dir(to), NULL, MS_BIND, NULL))
		_exit(92);
}

/* A mount namespace of its own, so that no mount remains. */
static void make_mounts(void)
{
	if (unshare(CLONE_NEWNS) || mount("none", "/", "", MS_REC | MS_PRIVATE, NULL))
		_exit(91);
	bind_mount("vault/inner", "bound");
	bind_mount("shut", "bound-file");
	bind_mount("world", "bound-open");
}

static void take_targets_ids(void)
{
	static const gid_t groups[] = {GROUP};

	if (setgroups(1, groups) || setresgid(TARGET, TARGET, TARGET) ||
	    setresuid(TARGET, TARGET, TARGET))
		_exit(93);
}

static void become_target(void)
{
	make_mounts();
	take_targets_ids();
}

/* As a program of root with the bit for setuid, which TARGET started. */
static void run_setuid_program(void)
{
	static const gid_t groups[] = {GROUP};

	make_mounts();
	if (setgroups(1, groups) || setresgid(TARGET, TARGET, TARGET) || setresuid(TARGET, 0, 0))
		_exit(94);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	if (syscall(SYS_capset, &header, none))
		_exit(95);
}

static void be_root(void)
{
}

/*
 * A child that calls prepare, tells whether it can read each case's file, and calls `then` when it
 * receives a byte.
 */
struct child {
	pid_t pid;
	int to, from;
	char may[sizeof(cases) / sizeof(cases[0])];
};

static struct child start_child(void (*prepare)(void), void (*then)(void))
{
	struct child c;
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
	c.pid = fork();
	if (!c.pid) {
		prepare();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (size_t i = 0; i < sizeof(c.may); i++) {
			int fd = open(in_dir(cases[i].path), O_RDONLY | O_CLOEXEC);

			c.may[i] = fd >= 0;
			close(fd);
		}
		if (write(from[1], c.may, sizeof(c.may)) != sizeof(c.may) ||
		    read(to[0], c.may, 1) != 1)
			_exit(96);
		then();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(from[1], "x", 1) != 1)
			_exit(97);
		for (;;)
			pause();
	}
	close(to[0]);
	close(from[1]);
	assert_int_equal(read(from[0], c.may, sizeof(c.may)), sizeof(c.may));
	c.to = to[1];
	c.from = from[0];
	return c;
}

static void end_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

static int try(struct opener *o, pid_t pid, const char *name, bool own)
{
	char text[64] = "";
	int fd = -1, r = own ? opener_own_file(o, pid, OPENER_NOBODY, in_dir(name), LIMIT, &fd)
			     : opener_file(o, pid, in_dir(name), LIMIT, &fd);

	if (!r) {
		assert_true(pread(fd, text, sizeof(text), 0) > 0);
		close(fd);
	}
	return r;
}

/* All ways to check rights. */
static struct opener *opener_of(int way)
{
	struct opener *o;

	assert_int_equal(opener_new(&o), 0);
	if (way & 1)
		opener_without_openat2(o);
	if (way & 2)
		opener_without_setuid(o);
	return o;
}

static void a_target_opens_what_it_may_read_itself(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(become_target, be_root);
		struct opener *o = opener_of(way);

		for (size_t i = 0; i < sizeof(c.may); i++) {
			int r = try(o, c.pid, cases[i].path, false);

			/* The kernel's own answer to the target is the oracle of the table. */
			if (c.may[i] != cases[i].may || r != (cases[i].may ? 0 : -EACCES))
				fail_msg("way %d: %s: %d, the target itself: %d", way,
					 cases[i].path, r, c.may[i]);
		}
		end_child(&c);
		opener_free(o);
	}
}

/* An unknown process may be any user, even one whom a file excludes. */
static void check_unknown(struct opener *o)
{
	static const char *const readable[] = {"world", "third", "search-only/open"};
	static const char *const refused[][3] = {
		{"shut", "nogroup", "nobody"},
		{"group-denied", "other-group-world", "vault/open"},
		{"acl-other", "acl-user-denied", "acl-group-denied"},
	};

	for (size_t i = 0; i < sizeof(readable) / sizeof(readable[0]); i++)
		assert_int_equal(try(o, UNKNOWN, readable[i], true), 0);
	for (size_t i = 0; i < 9; i++)
		if (try(o, UNKNOWN, refused[i / 3][i % 3], true) != -EACCES)
			fail_msg("an unknown process may read %s", refused[i / 3][i % 3]);
}

/* Our own root has none of the bind mounts. */
static void the_same_holds_in_our_own_root(void **state)
{
	int fd;

	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(take_targets_ids, be_root);
		struct opener *o = opener_of(way);

		assert_int_equal(opener_pin(o, c.pid), 0);
		for (size_t i = 0; i < sizeof(c.may); i++)
			if (strncmp(cases[i].path, "bound", 5))
				assert_int_equal(try(o, c.pid, cases[i].path, true),
						 cases[i].may ? 0 : -EACCES);
		end_child(&c);
		check_unknown(o);
		assert_int_equal(opener_our_file(o, 0, in_dir("shut"), LIMIT, &fd), 0);
		close(fd);
		opener_free(o);
	}
}

static void root_opens_everything(void **state)
{
	struct child c = start_child(make_mounts, be_root);
	struct opener *o = opener_of(0);

	(void)state;
	for (size_t i = 0; i < sizeof(c.may); i++)
		assert_int_equal(try(o, c.pid, cases[i].path, false), 0);
	end_child(&c);
	opener_free(o);
}

static void make_mounts_without_capabilities(void)
{
	make_mounts();
	drop_capabilities();
}

static void root_without_capabilities_is_a_user(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(make_mounts_without_capabilities, be_root);
		struct opener *o = opener_of(way);

		for (size_t i = 0; i < sizeof(c.may); i++)
			assert_int_equal(try(o, c.pid, cases[i].path, false),
					 c.may[i] ? 0 : -EACCES);
		assert_int_equal(try(o, c.pid, "third-closed", false), -EACCES);
		assert_int_equal(try(o, c.pid, "shut", false), 0);
		end_child(&c);
		opener_free(o);
	}
}

static void a_setuid_program_has_the_rights_of_its_user(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(run_setuid_program, be_root);
		struct opener *o = opener_of(way);

		for (size_t i = 0; i < sizeof(c.may); i++)
			assert_int_equal(try(o, c.pid, cases[i].path, false),
					 cases[i].may ? 0 : -EACCES);
		end_child(&c);
		opener_free(o);
	}
}

static void rights_that_were_given_up_are_not_used(void **state)
{
	struct child c = start_child(be_root, become_target);
	struct opener *o = opener_of(0);
	char done;

	(void)state;
	assert_int_equal(try(o, c.pid, "shut", false), 0);
	assert_int_equal(write(c.to, "x", 1), 1);
	assert_int_equal(read(c.from, &done, 1), 1);
	assert_int_equal(try(o, c.pid, "shut", false), -EACCES);
	/* After its end the last rights hold. */
	end_child(&c);
	assert_int_equal(try(o, c.pid, "shut", false), -EACCES);
	assert_int_equal(try(o, c.pid, "world", false), 0);
	opener_free(o);
}

static void become_root(void)
{
	if (setresuid(0, 0, 0))
		_exit(98);
}

/* As with a setuid program: the file may be that of the program before. */
static void rights_that_were_gained_are_not_used(void **state)
{
	struct child c = start_child(run_setuid_program, become_root);
	struct opener *o = opener_of(0);
	char done;

	(void)state;
	assert_int_equal(try(o, c.pid, "third-closed", false), -EACCES);
	assert_int_equal(write(c.to, "x", 1), 1);
	assert_int_equal(read(c.from, &done, 1), 1);
	assert_int_equal(try(o, c.pid, "third-closed", false), -EACCES);
	assert_int_equal(opener_pin(o, c.pid), 0);
	assert_int_equal(try(o, c.pid, "third-closed", false), -EACCES);
	assert_int_equal(try(o, c.pid, "world", false), 0);
	end_child(&c);
	opener_free(o);
}

/* A new process with its PID must not have them. */
static void rights_of_an_ended_process_end_with_its_pid(void **state)
{
	struct child c = start_child(take_targets_ids, be_root);
	struct opener *o = opener_of(0);

	(void)state;
	assert_int_equal(opener_pin(o, c.pid), 0);
	opener_note_new(o, c.pid); /* it is the same one */
	assert_int_equal(try(o, c.pid, "own", false), 0);
	end_child(&c);
	opener_note_new(o, c.pid);
	assert_int_equal(try(o, c.pid, "own", false), -EACCES);
	assert_int_equal(try(o, c.pid, "nobody", false), -EACCES);
	assert_int_equal(try(o, c.pid, "nogroup", false), -EACCES);
	assert_int_equal(try(o, c.pid, "world", true), 0);
	opener_free(o);
}

/* Opens the target's perf map if it is a link of the target, or another name, to that file. */
static void check_map(struct opener *o, pid_t pid, bool is_name, const char *file, int expected)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	if (is_name)
		assert_int_equal(link(in_dir(file), path), 0);
	else
		assert_int_equal(symlink(in_dir(file), path) | lchown(path, TARGET, TARGET), 0);
	assert_int_equal(opener_perfmap(o, pid, LIMIT, &fd), expected);
	if (!expected)
		close(fd);
	unlink(path);
}

static void a_linked_perf_map_is_refused(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(become_target, be_root);
		struct opener *o = opener_of(way);

		check_map(o, c.pid, false, "shut", -EACCES);
		check_map(o, c.pid, false, "vault/open", -EACCES);
		check_map(o, c.pid, true, "shut", -EACCES);
		/* Another user's map, though everybody may read it. */
		check_map(o, c.pid, true, "third", -EACCES);
		check_map(o, c.pid, true, "own", 0);
		end_child(&c);
		opener_free(o);
	}
}

/* Also on kernels that would follow it, because fs.protected_symlinks is 0. */
static void another_users_link_to_roots_perf_map_is_refused(void **state)
{
	char path[64];
	int fd;

	(void)state;
	for (int way = 0; way < 4; way++) {
		struct child c = start_child(be_root, be_root);
		struct opener *o = opener_of(way);

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", c.pid);
		unlink(path);
		assert_int_equal(symlink(in_dir("shut"), path), 0);
		assert_int_equal(lchown(path, THIRD, THIRD), 0);
		int theirs = opener_perfmap(o, c.pid, LIMIT, &fd);

		assert_int_equal(lchown(path, 0, 0), 0);
		int roots = opener_perfmap(o, c.pid, LIMIT, &fd);

		unlink(path);
		if (theirs != -EACCES || roots)
			fail_msg("way %d: link of another user: %d, of root: %d", way, theirs,
				 roots);
		close(fd);
		end_child(&c);
		opener_free(o);
	}
}

/* The vault holds a socket that everybody may connect to. */
static void a_socket_needs_the_targets_rights(void **state)
{
	static const struct {
		const char *name;
		uid_t owner;
		mode_t mode;
		int error;
	} sockets[] = {{"socket", 0, 0666, 0},
		       {"socket-own", TARGET, 0600, 0},
		       {"socket-third", THIRD, 0666, -EACCES},
		       {"socket-shut", 0, 0600, -EACCES},
		       {"socket-read", 0, 0644, -EACCES},
		       {"vault/socket", 0, 0666, -EACCES}};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

		snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, sockets[i].name);
		assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)) | listen(s, 9), 0);
		assert_int_equal(chmod(a.sun_path, sockets[i].mode), 0);
		assert_int_equal(chown(a.sun_path, sockets[i].owner, sockets[i].owner), 0);
		for (int way = 0; way < 4; way++) {
			struct child c = start_child(become_target, be_root);
			struct opener *o = opener_of(way);
			int r = opener_socket(o, c.pid, a.sun_path, &fd);

			assert_int_equal(r, sockets[i].error);
			if (!r)
				close(fd);
			assert_int_equal(opener_socket(o, c.pid, in_dir("world"), &fd), -ENOENT);
			end_child(&c);
			opener_free(o);
		}
		close(s);
	}
}

/* A program with mode 0711 cannot be read by the target, but the target runs it. */
static void a_mapped_image_needs_no_rights(void **state)
{
	long page = sysconf(_SC_PAGESIZE);
	struct opener *o = opener_of(0);
	int image = open(in_dir("program"), O_RDONLY | O_CLOEXEC), fd;
	char *p = mmap(NULL, (size_t)page, PROT_READ, MAP_PRIVATE, image, 0);
	struct child c = start_child(become_target, be_root);

	(void)state;
	assert_true(p != MAP_FAILED);
	close(image);
	assert_int_equal(try(o, c.pid, "program", false), -EACCES);
	assert_int_equal(opener_map_file(o, c.pid, (uintptr_t)p, (uintptr_t)p + page, LIMIT, &fd),
			 0);
	close(fd);
	munmap(p, (size_t)page);
	end_child(&c);
	opener_free(o);
}

static void run_program(void)
{
	execl(in_dir("sleep"), "sleep", "60", NULL);
	_exit(98);
}

/* Needs no capability for map_files. */
static void a_running_program_needs_no_rights(void **state)
{
	struct opener *o = opener_of(0);
	struct child c = start_child(become_target, run_program);
	char command[300];
	int fd, r = -ENOENT;

	(void)state;
	snprintf(command, sizeof(command), "cp -L /bin/sleep %s && chmod 711 %s", in_dir("sleep"),
		 in_dir("sleep"));
	assert_int_equal(system(command), 0);
	assert_int_equal(opener_program(o, c.pid, in_dir("sleep"), LIMIT, &fd), -ENOENT);
	assert_int_equal(write(c.to, "x", 1), 1);
	for (int i = 0; i < 500 && r == -ENOENT; i++) {
		usleep(10000);
		r = opener_program(o, c.pid, in_dir("sleep"), LIMIT, &fd);
	}
	assert_int_equal(r, 0);
	close(fd);
	assert_int_equal(opener_program(o, c.pid, in_dir("slee"), LIMIT, &fd), -ENOENT);
	assert_int_equal(try(o, c.pid, "sleep", false), -EACCES);
	end_child(&c);
	opener_free(o);
}

/* Reads the lines of this thread's status that hold its rights. */
static void read_own_rights(char *text, size_t cap)
{
	static const char *const lines[] = {"Uid:", "Gid:", "Groups:", "CapPrm:", "CapEff:"};
	FILE *f = fopen("/proc/thread-self/status", "re");
	char line[512];

	assert_non_null(f);
	*text = 0;
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
			if (!strncmp(line, lines[i], strlen(lines[i])))
				strncat(text, line, cap - strlen(text) - 1);
	fclose(f);
}

static void our_own_rights_stay(void **state)
{
	char before[2048], after[2048];
	struct child c = start_child(become_target, be_root);
	struct opener *o = opener_of(0);

	(void)state;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	read_own_rights(before, sizeof(before));
	assert_int_equal(try(o, c.pid, "own", false), 0);
	assert_int_equal(try(o, c.pid, "shut", false), -EACCES);
	read_own_rights(after, sizeof(after));
	assert_string_equal(before, after);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	end_child(&c);
	opener_free(o);
}

/* Opens a file of the target often. Returns NULL if that worked. */
static void *open_often(void *pid)
{
	struct opener *o;
	char path[64];
	int fd;

	if (opener_new(&o))
		return pid;
	bool failed = false;

	snprintf(path, sizeof(path), "%s/own", dir);
	for (int i = 0; i < 1000 && !failed; i++) {
		failed = opener_file(o, *(pid_t *)pid, path, LIMIT, &fd);
		if (!failed)
			close(fd);
	}
	opener_free(o);
	return failed ? pid : NULL;
}

/* Both threads may find it cleared, because the kernel clears it while a thread has other ids. */
static void two_threads_leave_profcpu_dumpable(void **state)
{
	struct child c = start_child(become_target, be_root);
	pthread_t other;
	void *failed;

	(void)state;
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	assert_int_equal(pthread_create(&other, NULL, open_often, &c.pid), 0);
	assert_null(open_often(&c.pid));
	assert_int_equal(pthread_join(other, &failed), 0);
	assert_null(failed);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
	/* A process that was not dumpable stays so. */
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	assert_null(open_often(&c.pid));
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	end_child(&c);
}

/* As a user without capabilities, who profiles a process of his own. */
static int open_own_files(void)
{
	struct opener *o;
	int r = 0;

	become_target();
	/* As after execve */
	if (prctl(PR_SET_DUMPABLE, 1) || opener_new(&o))
		return 1;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && !r; i++)
		if (try(o, getpid(), cases[i].path, false) != (cases[i].may ? 0 : -EACCES))
			r = 2;
	opener_free(o);
	return r;
}

static void a_user_opens_files_of_his_own_processes(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(open_own_files());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	put_all();
	return 0;
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
		cmocka_unit_test(a_target_opens_what_it_may_read_itself),
		cmocka_unit_test(the_same_holds_in_our_own_root),
		cmocka_unit_test(root_opens_everything),
		cmocka_unit_test(root_without_capabilities_is_a_user),
		cmocka_unit_test(a_setuid_program_has_the_rights_of_its_user),
		cmocka_unit_test(rights_that_were_given_up_are_not_used),
		cmocka_unit_test(rights_that_were_gained_are_not_used),
		cmocka_unit_test(rights_of_an_ended_process_end_with_its_pid),
		cmocka_unit_test(a_linked_perf_map_is_refused),
		cmocka_unit_test(another_users_link_to_roots_perf_map_is_refused),
		cmocka_unit_test(a_socket_needs_the_targets_rights),
		cmocka_unit_test(a_mapped_image_needs_no_rights),
		cmocka_unit_test(a_running_program_needs_no_rights),
		cmocka_unit_test(our_own_rights_stay),
		cmocka_unit_test(two_threads_leave_profcpu_dumpable),
		cmocka_unit_test(a_user_opens_files_of_his_own_processes),
	};

	if (geteuid()) {
		puts("needs root");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
