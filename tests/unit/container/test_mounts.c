/* container/opener: a path enters no file system that may never answer. */
#include "container/mounts.h"
#include "container/opener.h"
#include "tests/unit/allocated_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define NEVER_S 60 /* a hanging test ends then */
#define CROWD 500  /* mounts with long paths: more than MOUNTS_BYTES_MAX in all */
#define CHANGES 200

static char dir[] = "/tmp/profcpu-mounts-XXXXXX";

static void lines_of_mountinfo_are_parsed(void **state)
{
	static const struct {
		const char *line;
		int id;
		enum file_system_kind kind;
	} cases[] = {
		{"36 35 98:0 /a /b rw,noatime master:1 - ext3 /dev/root rw", 36,
		 FILE_SYSTEM_PERMITTED},
		{"37 35 0:5 / /with\\040blank\\040-\\040x rw - fuse.sshfs host rw", 37,
		 FILE_SYSTEM_OTHER},
		{"38 35 0:6 / /c rw shared:1 master:2 - overlay none rw,lowerdir=/l", 38,
		 FILE_SYSTEM_OVERLAY},
		{"39 35 0:7 / /proc rw - proc proc rw", 39, FILE_SYSTEM_KERNEL},
		{"40 35 0:8 / /n rw - nfs4 host:/x rw", 40, FILE_SYSTEM_OTHER},
		{"41 35 0:8 / /n rw - extended x rw", 41, FILE_SYSTEM_OTHER},
		{"x 35 0:8 / /n rw - ext4 x rw", 0, 0},
		{"42 35 0:8 / /n rw ext4 x rw", 0, 0},
		{"42 35 0:8 / /n rw - ", 0, 0},
		{"", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *line = strdup(cases[i].line);
		struct mount m;

		assert_int_equal(mounts_parse(line, &m), cases[i].id != 0);
		if (cases[i].id) {
			assert_int_equal(m.id, cases[i].id);
			assert_int_equal(m.kind, cases[i].kind);
			assert_int_equal(!m.type, m.kind == FILE_SYSTEM_PERMITTED);
			free(m.type);
			free(m.layers);
		}
		free(line);
	}
}

static void an_overlay_without_a_source_has_layers(void **state)
{
	char line[] = "1 1 0:5 / /m rw shared:1 - overlay  rw,lowerdir=/a";
	struct mount m;

	(void)state;
	assert_true(mounts_parse(line, &m));
	assert_string_equal(m.layers, "rw,lowerdir=/a");
	free(m.type);
	free(m.layers);
}

static void layers_of_overlays_are_listed(void **state)
{
	static const struct {
		const char *options, *layers;
	} cases[] = {
		{"rw,lowerdir=/a:/b,upperdir=/c,workdir=/d", "/a|/b|/c|"},
		{"rw,lowerdir+=/a,lowerdir+=/b,datadir+=/c,xino=off", "/a|/b|/c|"},
		{"rw,lowerdir=/a::/data", "/a|/data|"},
		{"rw,lowerdir=/with\\040blank\\054x", "/with blank,x|"},
		{"rw,lowerdir=/a\\134:b:/c\\134\\134:/d\\134x,upperdir=/e", "/a:b|/c\\|/d\\x|/e|"},
		{"lowerdir=/a\\134\\054b", "/a,b|"},
		{"lowerdir=/a\\134", "/a\\|"},
		{"rw,nolowerdir=/a", ""},
		{"", ""},
		{":,:", ""},
		{"lowerdir=", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *options = cases[i].options;
		char found[256] = "", path[64];

		while (mounts_next_layer(&options, path, sizeof(path)))
			snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s|", path);
		assert_string_equal(found, cases[i].layers);
	}
}

/* A file with the mounts of a namespace: overlays with long options, the last one of device 0:n. */
static int mountinfo(int n)
{
	static char options[4000];
	int fd = memfd_create("mountinfo", MFD_CLOEXEC);

	memset(options, 'x', sizeof(options) - 1);
	for (int i = 1; i <= n; i++)
		assert_true(dprintf(fd, "%d 1 0:%d / /m rw - overlay none rw,lowerdir=/%s\n", i, i,
				    options) > 0);
	return fd;
}

/* Other processes spend the time for long lists. */
static void short_lists_have_time_of_their_own(void **state)
{
	struct mounts small = {.fd = mountinfo(3)};
	int fd = mountinfo(900);
	bool known = true;

	(void)state;
	for (int i = 0; i < 100000 && known; i++) {
		struct mounts large = {.fd = dup(fd)};

		known = mounts_of_device(&large, makedev(0, 1));
		mounts_close(&large);
	}
	assert_false(known);
	assert_non_null(mounts_of_device(&small, makedev(0, 3)));
	mounts_close(&small);
	close(fd);
}

static void lists_of_mounts_share_a_limit_of_memory(void **state)
{
	enum { LISTS = 12, LONG = 500, SHORT = 3 };
	const size_t limit = (size_t)4 << 20;
	struct mounts many[LISTS] = {0}, small = {.fd = mountinfo(SHORT)};
	size_t before = allocated_bytes();

	(void)state;
	mounts_limit_memory(limit);
	for (int twice = 0; twice < 2; twice++) {
		for (int i = 0; i < LISTS; i++) {
			many[i] = (struct mounts){.fd = mountinfo(LONG)};
			/* The rest is unknown. */
			assert_null(mounts_of_device(&many[i], makedev(0, LONG)));
		}
		/* Freed memory is taken again. */
		assert_non_null(mounts_of_device(&many[0], makedev(0, LONG / 5)));
		assert_true(allocated_bytes() - before < limit);
		assert_non_null(mounts_of_device(&small, makedev(0, SHORT)));
		for (int i = 0; i < LISTS; i++)
			mounts_close(&many[i]);
	}
	mounts_close(&small);
	/* Our own list has no limit. */
	small = (struct mounts){.fd = mountinfo(LONG), .own = true};
	assert_non_null(mounts_of_device(&small, makedev(0, LONG)));
	mounts_close(&small);
	mounts_limit_memory(0);
}

static void only_sensible_types_can_be_permitted(void **state)
{
	(void)state;
	assert_int_equal(file_systems_permit(""), -EINVAL);
	assert_int_equal(file_systems_permit("proc"), -EINVAL);
	assert_int_equal(file_systems_permit("a b"), -EINVAL);
	assert_int_equal(file_systems_permit("fuse.with-a-name-that-is-much-too-long"), -EINVAL);
	assert_int_equal(file_system_kind("virtiofs"), FILE_SYSTEM_OTHER);
	assert_int_equal(file_systems_permit("virtiofs"), 0);
	assert_int_equal(file_system_kind("virtiofs"), FILE_SYSTEM_PERMITTED);
}

static void must(int r)
{
	if (r)
		_exit(99);
}

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	must(fd < 0 || write(fd, text, strlen(text)) < 0 || close(fd));
}

/* A target with a FUSE file system whose server never answers, a tmpfs and an overlay. */
static pid_t start_target(void)
{
	int ready[2];
	char c, options[512];
	struct stat st;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (pid) {
		close(ready[1]);
		assert_int_equal(read(ready[0], &c, 1), 1);
		close(ready[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(chdir(dir) || unshare(CLONE_NEWNS) ||
	     mount("none", "/", "", MS_REC | MS_PRIVATE, NULL));
	must(mount("tmpfs", "memory", "tmpfs", 0, "size=1m"));
	must(mkdir("memory/lower", 0755) || mkdir("memory/upper", 0755) ||
	     mkdir("memory/work", 0755));
	put("memory/file", "memory");
	put("memory/lower/file", "overlay");
	snprintf(options, sizeof(options),
		 "lowerdir=memory/lower,upperdir=memory/upper,workdir=memory/work");
	must(mount("overlay", "overlay", "overlay", 0, options));
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	must(fuse < 0 || mount("silent", "fuse", "fuse.silent", 0, options));
	/* A mount of the test's own would hang with the server's end, but never here. */
	must(stat("memory", &st) || write(ready[1], "x", 1) != 1);
	for (;;)
		pause();
}

static struct file_system_skipped skipped(const char *type)
{
	struct file_system_skipped list[FILE_SYSTEMS_SKIPPED_MAX];
	size_t n = file_systems_skipped(list);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(list[i].type, type))
			return list[i];
	return (struct file_system_skipped){.files = 0};
}

static void note_skipped(const char *type, uint64_t files)
{
	for (uint64_t key = 0; key < files; key++)
		file_systems_note_skipped(type, key);
}

/* Anybody can mount FUSE file systems of many types in a user namespace. */
static void many_fuse_types_leave_room_for_those_of_the_kernel(void **state)
{
	enum { MANY = 200 };
	char type[FILE_SYSTEMS_TYPE_BYTES];

	(void)state;
	note_skipped("nfs4", 1);
	note_skipped("fuse.a b", 3);
	note_skipped("", 2);
	for (int i = 0; i < MANY; i++) {
		snprintf(type, sizeof(type), "fuse.x%d", i);
		note_skipped(type, 1);
	}
	note_skipped("nfs4", 50);
	note_skipped("ceph", 4);
	assert_int_equal(skipped("nfs4").files, 50);
	assert_int_equal(skipped("ceph").files, 4);
	assert_true(skipped("nfs4").may_permit && skipped("ceph").may_permit);
	assert_true(skipped("fuse.x0").may_permit);
	assert_int_equal(skipped("fuse.x199").files, 0);
	/* An earlier test may have noted one more. */
	uint64_t subtypes = MANY + 1 + (skipped("fuse.silent").files ? 1 : 0);

	assert_int_equal(skipped("others").files, subtypes - FILE_SYSTEMS_SUBTYPES_MAX);
	assert_int_equal(skipped("fuse.a?b").files, 3);
	assert_int_equal(skipped("unknown").files, 2);
	assert_false(skipped("others").may_permit || skipped("fuse.a?b").may_permit ||
		     skipped("unknown").may_permit);
}

static int try(struct opener *o, pid_t pid, const char *name, const char *expected)
{
	char path[256], text[64] = "";
	int fd, r;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	r = opener_file(o, pid, path, LIMIT, &fd);
	if (!r) {
		assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
		assert_string_equal(text, expected);
		close(fd);
	}
	return r;
}

static void a_silent_file_system_is_not_entered(void **state)
{
	char path[256];
	int fd;

	(void)state;
	if (geteuid() || access("/dev/fuse", W_OK))
		skip();
	alarm(NEVER_S);
	pid_t pid = start_target();

	for (int way = 0; way < 4; way++) {
		struct opener *o;

		assert_int_equal(opener_new(&o), 0);
		if (way & 1)
			opener_without_openat2(o);
		if (way & 2)
			opener_without_setuid(o);
		assert_int_equal(try(o, pid, "fuse/file", ""), -EXDEV);
		assert_int_equal(try(o, pid, "fuse/deep/../file", ""), -EXDEV);
		assert_int_equal(try(o, pid, "link/file", ""), -EXDEV);
		assert_int_equal(try(o, pid, "fuse", ""), -EXDEV);
		assert_int_equal(try(o, pid, "memory/file", "memory"), 0);
		assert_int_equal(try(o, pid, "memory/none", ""), -ENOENT);
		assert_int_equal(try(o, pid, "overlay/file", "overlay"), 0);
		assert_int_equal(try(o, pid, "disk", "disk"), 0);
		snprintf(path, sizeof(path), "%s/fuse/socket", dir);
		assert_int_equal(opener_socket(o, pid, path, &fd), -EXDEV);
		snprintf(path, sizeof(path), "%s/fuse/lib.debug", dir);
		assert_int_equal(opener_place_open(&(struct opener_place){.opener = o, .pid = pid},
						   path, &fd),
				 -EXDEV);
		opener_free(o);
	}
	/* Each file counts once; one that may not exist does not count. */
	assert_int_equal(skipped("fuse.silent").files, 5);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	alarm(0);
}

static void a_mount_of_later_is_noticed(void **state)
{
	struct opener *o;
	char path[256];

	(void)state;
	if (geteuid() || unshare(CLONE_NEWNS) || mount("none", "/", "", MS_REC | MS_PRIVATE, NULL))
		skip();
	assert_int_equal(opener_new(&o), 0);
	assert_int_equal(try(o, getpid(), "disk", "disk"), 0);
	snprintf(path, sizeof(path), "%s/memory", dir);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(try(o, getpid(), "memory/file", ""), -ENOENT);
		assert_int_equal(mount("proc", path, i & 1 ? "sysfs" : "proc", 0, NULL), 0);
		assert_int_equal(try(o, getpid(), "memory/file", ""), -EACCES);
		assert_int_equal(umount(path), 0);
	}
	opener_free(o);
}

/* Changes its mounts once for each byte on the socket. Its mountinfo has 14 MB. */
static pid_t start_crowd(int *ret_socket)
{
	char name[NAME_MAX + 1], c;
	int s[2];

	memset(name, '\n', NAME_MAX);
	name[NAME_MAX] = 0;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s), 0);
	pid_t pid = fork();

	if (pid) {
		close(s[1]);
		*ret_socket = s[0];
		assert_int_equal(read(s[0], &c, 1), 1);
		return pid;
	}
	close(s[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	must(chdir(dir) || unshare(CLONE_NEWNS) ||
	     mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) ||
	     mount("tmpfs", "memory", "tmpfs", 0, "size=4m") || chdir("memory"));
	put("file", "memory");
	for (int i = 0; i < 14; i++)
		must(mkdir(name, 0755) || chdir(name));
	must(mkdir("crowd", 0755) || mkdir("change", 0755));
	for (int i = 0; i < CROWD; i++)
		must(mount("crowd", "crowd", "", MS_BIND, NULL));
	while (write(s[1], "x", 1) == 1 && read(s[1], &c, 1) == 1)
		must(mount("change", "change", "", MS_BIND, NULL) || umount("change"));
	_exit(0);
}

/* Bytes that this process has read so far. */
static uint64_t bytes_read(void)
{
	unsigned long long n = 0;
	FILE *f = fopen("/proc/self/io", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "rchar: %llu", &n), 1);
	fclose(f);
	return n;
}

static void mounts_that_change_cost_little(void **state)
{
	struct opener *o;
	int crowd, refused = 0, r;
	char c;

	(void)state;
	if (geteuid() || access("/proc/self/io", R_OK))
		skip();
	alarm(NEVER_S);
	pid_t pid = start_crowd(&crowd);

	assert_int_equal(opener_new(&o), 0);
	uint64_t before = bytes_read(), unknown = skipped("unknown").files;

	/* Earlier tests may have spent the time. */
	while (try(o, pid, "memory/file", "memory"))
		usleep(100000);
	assert_true(bytes_read() - before < MOUNTS_BYTES_MAX + LIMIT);
	for (int i = 0; i < CHANGES; i++) {
		assert_true(write(crowd, "x", 1) == 1 && read(crowd, &c, 1) == 1);
		r = try(o, pid, "memory/file", "memory");
		assert_true(!r || r == -EXDEV);
		refused += r != 0;
		/* Files of our own mounts need none of the target's. */
		assert_int_equal(try(o, pid, "disk", "disk"), 0);
	}
	print_message("%d of %d refused, %llu bytes read\n", refused, CHANGES,
		      (unsigned long long)(bytes_read() - before));
	assert_true(bytes_read() - before < CHANGES / 2 * MOUNTS_BYTES_MAX);
	assert_int_equal(skipped("unknown").files, unknown + 1);
	/* Later the mounts are known again. */
	while (try(o, pid, "memory/file", "memory"))
		usleep(1000);
	opener_free(o);
	close(crowd);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	alarm(0);
}

static int setup(void **state)
{
	char path[64];

	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755) || chdir(dir))
		return -1;
	put("disk", "disk");
	snprintf(path, sizeof(path), "%s/fuse", dir);
	return mkdir("fuse", 0755) | mkdir("memory", 0755) | mkdir("overlay", 0755) |
	       symlink(path, "link");
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
		cmocka_unit_test(lines_of_mountinfo_are_parsed),
		cmocka_unit_test(layers_of_overlays_are_listed),
		cmocka_unit_test(lists_of_mounts_share_a_limit_of_memory),
		cmocka_unit_test(an_overlay_without_a_source_has_layers),
		cmocka_unit_test(only_sensible_types_can_be_permitted),
		cmocka_unit_test(a_silent_file_system_is_not_entered),
		cmocka_unit_test(a_mount_of_later_is_noticed),
		cmocka_unit_test(many_fuse_types_leave_room_for_those_of_the_kernel),
		cmocka_unit_test(mounts_that_change_cost_little),
		/* It spends the time of the other lists. */
		cmocka_unit_test(short_lists_have_time_of_their_own),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
