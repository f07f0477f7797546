/* container/rights: a program that gains ids gives its user's files no more rights. */
#include "container/opener.h"
#include "container/rights.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
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
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define USER 54321
#define GROUP 54322 /* the user is a member */
#define SECRET 54323
#define KEEPER 54324 /* another user */
#define OVERFLOW_ID 65534
#define SETS_IDS (1U << CAP_SETUID | 1U << CAP_SETGID)

static char dir[] = "/tmp/profcpu-setid-XXXXXX";

/* Steps of a program */
enum step { KEEP, REAL_GID, SWAPPED_GID, ALL_GROUPS, TAKEN_GID, TAKEN_UID, REAL_UID, GIVEN_UP };

static bool take_step(enum step step)
{
	static const gid_t secret[] = {SECRET};

	switch (step) {
	case KEEP:
		return true;
	case REAL_GID:
		return !setresgid(getegid(), getegid(), getegid());
	case SWAPPED_GID:
		return !setresgid(getegid(), getgid(), getegid());
	case ALL_GROUPS:
		return !setgroups(1, secret) && !setresgid(SECRET, SECRET, SECRET);
	case TAKEN_GID:
		return !setresgid(SECRET, SECRET, SECRET);
	case TAKEN_UID:
		return !setresuid(KEEPER, KEEPER, KEEPER);
	case REAL_UID:
		return !setresuid(geteuid(), geteuid(), geteuid());
	case GIVEN_UP:
		return !setresgid(getgid(), getgid(), getgid()) &&
		       !setresuid(getuid(), getuid(), getuid());
	}
	return false;
}

static const char *in_dir(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, uid_t uid, gid_t gid, mode_t mode)
{
	int fd = open(in_dir(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fchown(fd, uid, gid) | fchmod(fd, mode) | close(fd), 0);
}

/* A file of root's whose ACL has an entry for a group. */
static void put_acl(const char *name, gid_t group, uint16_t perm, uint16_t others)
{
	const struct {
		struct posix_acl_xattr_header header;
		struct posix_acl_xattr_entry entries[5];
	} acl = {{POSIX_ACL_XATTR_VERSION},
		 {{ACL_USER_OBJ, 6, ACL_UNDEFINED_ID},
		  {ACL_GROUP_OBJ, others, ACL_UNDEFINED_ID},
		  {ACL_GROUP, perm, group},
		  {ACL_MASK, 4, ACL_UNDEFINED_ID},
		  {ACL_OTHER, others, ACL_UNDEFINED_ID}}};

	put(name, 0, 0, 0600);
	assert_int_equal(setxattr(in_dir(name), "system.posix_acl_access", &acl, sizeof(acl), 0),
			 0);
}

/* The program is started by: */
enum starter { AS_USER, AS_USER_IN_SECRET, AS_ROOT_THAT_DROPS };

static bool become_user(enum starter starter)
{
	static const gid_t groups[] = {GROUP};
	gid_t gid = starter == AS_USER ? USER : SECRET;

	return !setgroups(1, groups) && !setresgid(gid, gid, gid) && !setresuid(USER, USER, USER);
}

struct child {
	pid_t pid;
	int to, from;
};

static void wait_for(const struct child *c)
{
	char done;

	assert_int_equal(read(c->from, &done, 1), 1);
}

/* Starts a child that says "x", executes the program after a byte, and says "x" again. */
static struct child start_child(enum starter starter, enum step step)
{
	struct child c;
	char name[2] = {(char)('0' + (int)step), 0};
	int to[2], from[2];

	assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
	c.pid = fork();
	if (!c.pid) {
		bool drops = starter == AS_ROOT_THAT_DROPS;
		char byte;

		if ((!drops && !become_user(starter)) || write(from[1], "x", 1) != 1 ||
		    read(to[0], &byte, 1) != 1)
			_exit(91);
		if (drops) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (!become_user(starter) || write(from[1], "x", 1) != 1)
				_exit(92);
			for (;;)
				pause();
		}
		if (dup2(from[1], 1) != 1)
			_exit(93);
		execl(in_dir("program"), "program", name, NULL);
		_exit(94);
	}
	close(to[0]);
	close(from[1]);
	c.to = to[1];
	c.from = from[0];
	wait_for(&c);
	return c;
}

static void end_child(struct child *c)
{
	kill(c->pid, SIGKILL);
	assert_int_equal(waitpid(c->pid, NULL, 0), c->pid);
	close(c->to);
	close(c->from);
}

static bool may_read(struct opener *o, pid_t pid, const char *name)
{
	int fd, r = opener_file(o, pid, in_dir(name), LIMIT, &fd);

	if (!r)
		close(fd);
	return !r;
}

/* As the attack: a link of the user's leads to a file of the group. */
static bool may_read_linked_map(struct opener *o, pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	assert_int_equal(symlink(in_dir("secret"), path) | lchown(path, USER, USER), 0);
	int r = opener_perfmap(o, pid, LIMIT, &fd);

	unlink(path);
	if (!r)
		close(fd);
	return !r;
}

static const struct {
	const char *name;
	uid_t owner;
	gid_t group;
	mode_t mode;
	enum starter starter;
	enum step step;
	bool own, member, secret; /* files that it may read */
	uint32_t caps;            /* of its file */
} cases[] = {
	{"usual", 0, 0, 0755, AS_USER, KEEP, true, true, false, 0},
	{"started in the group", 0, 0, 0755, AS_USER_IN_SECRET, KEEP, true, true, true, 0},
	{"dropped by root", 0, 0, 0755, AS_ROOT_THAT_DROPS, KEEP, true, true, true, 0},
	{"setgid", 0, SECRET, 02755, AS_USER, KEEP, true, true, false, 0},
	{"setgid, real", 0, SECRET, 02755, AS_USER, REAL_GID, true, true, false, 0},
	{"setgid, swapped", 0, SECRET, 02755, AS_USER, SWAPPED_GID, true, true, false, 0},
	{"setgid, given up", 0, SECRET, 02755, AS_USER, GIVEN_UP, true, true, false, 0},
	{"setgid, same", 0, SECRET, 02755, AS_USER_IN_SECRET, REAL_GID, true, true, true, 0},
	{"setgid, other", 0, USER, 02755, AS_USER_IN_SECRET, KEEP, true, true, true, 0},
	{"setuid", 0, 0, 04755, AS_USER, KEEP, true, false, false, 0},
	{"setuid, groups", 0, 0, 04755, AS_USER, ALL_GROUPS, true, false, false, 0},
	{"setuid, given up", 0, 0, 04755, AS_USER, GIVEN_UP, true, false, false, 0},
	{"setuid, real root", 0, 0, 04755, AS_USER, REAL_UID, false, false, false, 0},
	{"setuid, real", KEEPER, 0, 04755, AS_USER, REAL_UID, false, false, false, 0},
	{"other capability", 0, 0, 0755, AS_USER, KEEP, true, true, false, 1U << CAP_NET_RAW},
	{"capabilities", 0, 0, 0755, AS_USER, KEEP, true, false, false, SETS_IDS},
	{"capability, gid", 0, 0, 0755, AS_USER, TAKEN_GID, true, false, false, 1U << CAP_SETGID},
	{"capability, groups", 0, 0, 0755, AS_USER, ALL_GROUPS, true, false, false,
	 1U << CAP_SETGID},
	{"capability, user", 0, 0, 0755, AS_USER, TAKEN_UID, false, false, false, 1U << CAP_SETUID},
};

/* Files that neither the user nor the programs may read */
static const char *const refused[] = {"nogroup",         "nobody",     "banned",
				      "banned-dir/open", "acl-banned", "acl-nogroup"};

static void check(struct opener *o, pid_t pid, size_t i, const char *when)
{
	bool own = may_read(o, pid, "own"), member = may_read(o, pid, "member"),
	     secret = may_read(o, pid, "secret"), map = may_read_linked_map(o, pid),
	     root = may_read(o, pid, "root"), keeper = may_read(o, pid, "keeper");

	for (size_t f = 0; f < sizeof(refused) / sizeof(refused[0]); f++)
		if (may_read(o, pid, refused[f]))
			fail_msg("%s, %s: may read %s", cases[i].name, when, refused[f]);
	if (own != cases[i].own || member != cases[i].member || secret != cases[i].secret ||
	    map != secret || root || keeper || !may_read(o, pid, "world") ||
	    !may_read(o, pid, "acl-world"))
		fail_msg("%s, %s: own %d, member %d, secret %d, map %d, root %d, keeper %d",
			 cases[i].name, when, own, member, secret, map, root, keeper);
}

static void install(size_t i)
{
	assert_int_equal(chown(in_dir("program"), cases[i].owner, cases[i].group), 0);
	assert_int_equal(chmod(in_dir("program"), cases[i].mode), 0);
	if (!cases[i].caps)
		return;
	struct vfs_cap_data caps = {.magic_etc =
					    htole32(VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE),
				    .data[0].permitted = htole32(cases[i].caps)};

	assert_int_equal(setxattr(in_dir("program"), "security.capability", &caps, sizeof(caps), 0),
			 0);
}

static void a_program_gives_its_user_no_more_rights(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int by_mode = 0; by_mode < 2; by_mode++) {
			struct opener *o;

			install(i);
			struct child c = start_child(cases[i].starter, cases[i].step);

			assert_int_equal(write(c.to, "x", 1), 1);
			wait_for(&c);
			assert_int_equal(opener_new(&o), 0);
			if (by_mode)
				opener_without_setuid(o);
			check(o, c.pid, i, by_mode ? "by mode" : "by the kernel");
			end_child(&c);
			assert_false(may_read(o, c.pid, "own"));
			assert_true(may_read(o, c.pid, "world"));
			opener_free(o);
		}
	}
}

/* Its process was pinned before, as a program of the user's. */
static void a_pinned_process_gains_no_groups(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct opener *o;

		if (cases[i].starter != AS_USER)
			continue;
		install(i);
		struct child c = start_child(cases[i].starter, cases[i].step);

		assert_int_equal(opener_new(&o) | opener_pin(o, c.pid), 0);
		assert_true(may_read(o, c.pid, "own") && may_read(o, c.pid, "member"));
		assert_int_equal(write(c.to, "x", 1), 1);
		wait_for(&c);
		assert_int_equal(opener_pin(o, c.pid), 0);
		assert_false(may_read(o, c.pid, "secret"));
		assert_false(may_read_linked_map(o, c.pid));
		assert_false(may_read(o, c.pid, "root"));
		assert_false(may_read(o, c.pid, "keeper"));
		assert_true(may_read(o, c.pid, "own"));
		end_child(&c);
		opener_free(o);
	}
}

/*
 * On older kernels, auxv of an ending process is empty; here /dev/null takes its place. The real id
 * is root also if a setuid program changed it.
 */
static bool ending_root_has_rights(pid_t pid)
{
	struct proc_status status;
	struct rights rights;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		_exit(91);
	if (rights_read(pid, &status, &rights) || !rights.all)
		_exit(92);
	rights_free(&rights);
	if (mount("/dev/null", path, NULL, MS_BIND, NULL))
		_exit(93);
	return rights_read(pid, &status, &rights) != -ESRCH;
}

static void an_ending_process_gives_no_rights(void **state)
{
	pid_t root = fork(), reader;
	int status;

	(void)state;
	if (!root) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	reader = fork();
	if (!reader)
		_exit(ending_root_has_rights(root));
	assert_int_equal(waitpid(reader, &status, 0), reader);
	kill(root, SIGKILL);
	assert_int_equal(waitpid(root, NULL, 0), root);
	assert_int_equal(status, 0);
}

/* A file's last group is beyond the limit of groups. */
static void join_many_groups(void)
{
	gid_t groups[RIGHTS_GROUPS_MAX + 1];

	for (gid_t i = 0; i < RIGHTS_GROUPS_MAX; i++)
		groups[i] = GROUP - RIGHTS_GROUPS_MAX + i;
	groups[RIGHTS_GROUPS_MAX] = SECRET;
	if (setgroups(RIGHTS_GROUPS_MAX + 1, groups) || setresgid(GROUP, GROUP, GROUP) ||
	    setresuid(USER, USER, USER))
		_exit(92);
}

static void groups_beyond_the_limit_give_no_rights(void **state)
{
	int from[2];
	char byte;

	(void)state;
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		join_many_groups();
		if (write(from[1], "x", 1) != 1)
			_exit(93);
		for (;;)
			pause();
	}
	close(from[1]);
	assert_int_equal(read(from[0], &byte, 1), 1);
	for (int by_mode = 0; by_mode < 2; by_mode++) {
		struct opener *o;

		assert_int_equal(opener_new(&o), 0);
		if (by_mode)
			opener_without_setuid(o);
		assert_false(may_read(o, pid, "secret-banned"));
		assert_true(may_read(o, pid, "member") && may_read(o, pid, "world"));
		opener_free(o);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(from[0]);
}

/* In a user namespace in which the id of nobody is not mapped */
static int open_as_unknown_user(int ready, int go)
{
	static const char *const names[] = {"world",  "acl-world",      "root",       "nogroup",
					    "nobody", "banned",         "acl-banned", "acl-nogroup",
					    "own",    "banned-dir/open"};
	struct opener *o;
	char byte;
	int fd, readable = 0;

	if (unshare(CLONE_NEWUSER) || write(ready, "x", 1) != 1 || read(go, &byte, 1) != 1 ||
	    setresgid(0, 0, 0) || setresuid(0, 0, 0) || opener_new(&o))
		return 91;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (opener_own_file(o, 0, OPENER_NOBODY, in_dir(names[i]), LIMIT, &fd))
			continue;
		close(fd);
		readable |= 1 << i;
	}
	opener_free(o);
	/* The first two */
	return readable == 3 ? 0 : readable & 127;
}

static void write_map(pid_t pid, const char *name)
{
	static const char map[] = "0 0 60000\n";
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(write(fd, map, strlen(map)), strlen(map));
	close(fd);
}

static void an_unknown_user_needs_no_mapped_id(void **state)
{
	int to[2], from[2], status;
	char byte;

	(void)state;
	assert_int_equal(pipe2(to, O_CLOEXEC) | pipe2(from, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (!pid)
		_exit(open_as_unknown_user(from[1], to[0]));
	close(to[0]);
	close(from[1]);
	assert_int_equal(read(from[0], &byte, 1), 1);
	write_map(pid, "gid_map");
	write_map(pid, "uid_map");
	assert_int_equal(write(to[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(to[1]);
	close(from[0]);
}

static void rights_grow_by_users_groups_and_all_files(void **state)
{
	gid_t one[] = {GROUP}, two[] = {GROUP, SECRET}, own[] = {USER};
	const struct rights user = {.uid = USER, .gid = USER, .ngroups = 1, .groups = one};
	const struct rights root = {.all = true};
	struct rights now = user;

	(void)state;
	assert_false(rights_exceed(&now, &user));
	now.ngroups = 0;
	assert_false(rights_exceed(&now, &user));
	now.gid = GROUP;
	assert_false(rights_exceed(&now, &user));
	now.gid = SECRET;
	assert_true(rights_exceed(&now, &user));
	now = user;
	now.ngroups = 2;
	now.groups = two;
	assert_true(rights_exceed(&now, &user));
	now.ngroups = 1;
	now.groups = own;
	assert_false(rights_exceed(&now, &user));
	now.uid = KEEPER;
	assert_true(rights_exceed(&now, &user));
	assert_true(rights_exceed(&root, &user));
	assert_false(rights_exceed(&user, &root));
	assert_false(rights_exceed(&root, &root));
}

static int setup(void **state)
{
	char command[300];

	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	put("world", 0, 0, 0644);
	put("own", USER, USER, 0600);
	put("member", 0, GROUP, 0640);
	put("secret", 0, SECRET, 0640);
	put("root", 0, 0, 0600);
	put("keeper", KEEPER, KEEPER, 0600);
	put("nogroup", 0, OVERFLOW_ID, 0640);
	put("nobody", OVERFLOW_ID, OVERFLOW_ID, 0600);
	put("banned", 0, GROUP, 0604);
	put("secret-banned", 0, SECRET, 0604);
	assert_int_equal(mkdir(in_dir("banned-dir"), 0700), 0);
	put("banned-dir/open", 0, 0, 0644);
	assert_int_equal(chown(in_dir("banned-dir"), 0, GROUP), 0);
	assert_int_equal(chmod(in_dir("banned-dir"), 0705), 0);
	put_acl("acl-banned", GROUP, 0, 4);
	put_acl("acl-world", GROUP, 4, 4);
	put_acl("acl-nogroup", OVERFLOW_ID, 4, 0);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s/program", (int)getpid(), dir);
	return system(command);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ending_process_gives_no_rights),
		cmocka_unit_test(a_program_gives_its_user_no_more_rights),
		cmocka_unit_test(a_pinned_process_gains_no_groups),
		cmocka_unit_test(groups_beyond_the_limit_give_no_rights),
		cmocka_unit_test(an_unknown_user_needs_no_mapped_id),
		cmocka_unit_test(rights_grow_by_users_groups_and_all_files),
	};
	struct statvfs tmp;

	/* The program of a child */
	if (argc == 2) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!take_step((enum step)(argv[1][0] - '0')) || write(1, "x", 1) != 1)
			return 1;
		for (;;)
			pause();
	}
	if (geteuid() || statvfs("/tmp", &tmp) || tmp.f_flag & ST_NOSUID) {
		puts("needs root, and a /tmp without nosuid");
		return 77;
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
