#include "base/cleanup.h"
#include "container/cgroup.h"
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 600 /* names of a directory */

static void map_lines_give_their_fields(void **state)
{
	char text[] =
		"55d0c0a00000-55d0c0a28000 r--p 00000000 08:01 1234 /usr/bin/a b\n"
		"rubbish\n"
		"7f0000000000-7f0000001000 rwxs 00012000 fd:0a 18446744073709551615      "
		"/tmp/new\\012line (deleted)\n"
		"7f0000001000-7f0000002000 ---p 00000000 00:00 0 \n"
		"7ffd0e5e5000-7ffd0e606000 rw-p 00000000 00:00 0                          [stack]\n"
		"2000-1000 r--p 0 0:0 0 upside down\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  "
		"[vsyscall]";
	char *cursor = text;
	struct proc_map m;

	(void)state;
	assert_int_equal(proc_map_next(&cursor, &m), 1);
	assert_int_equal(m.start, 0x55d0c0a00000);
	assert_int_equal(m.end, 0x55d0c0a28000);
	assert_int_equal(m.prot, PROT_READ);
	assert_int_equal(m.flags, MAP_PRIVATE);
	assert_int_equal(m.maj, 8);
	assert_int_equal(m.min, 1);
	assert_int_equal(m.ino, 1234);
	assert_string_equal(m.path, "/usr/bin/a b");
	assert_int_equal(proc_map_next(&cursor, &m), 1);
	assert_int_equal(m.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_int_equal(m.flags, MAP_SHARED);
	assert_int_equal(m.pgoff, 0x12000);
	assert_int_equal(m.maj, 0xfd);
	assert_int_equal(m.ino, UINT64_MAX);
	assert_string_equal(m.path, "/tmp/new\nline (deleted)");
	assert_int_equal(m.path_len, strlen(m.path));
	assert_int_equal(proc_map_next(&cursor, &m), 1);
	assert_int_equal(m.path_len, 0);
	assert_int_equal(m.prot, 0);
	assert_int_equal(proc_map_next(&cursor, &m), 1);
	assert_string_equal(m.path, "[stack]");
	assert_int_equal(proc_map_next(&cursor, &m), 1);
	assert_string_equal(m.path, "[vsyscall]");
	assert_int_equal(m.start, 0xffffffffff600000);
	assert_int_equal(proc_map_next(&cursor, &m), 0);
	assert_int_equal(proc_map_next(&cursor, &m), 0);
}

static void our_own_maps_cover_our_own_code(void **state)
{
	char *text, *cursor;
	struct proc_map m;
	int found = 0, lines = 0, newlines = 0;

	(void)state;
	assert_int_equal(proc_read_maps(getpid(), &text), 0);
	for (cursor = text; *cursor; cursor++)
		newlines += *cursor == '\n';
	for (cursor = text; proc_map_next(&cursor, &m);) {
		lines++;
		if ((uintptr_t)our_own_maps_cover_our_own_code - m.start < m.end - m.start)
			found += (m.prot & PROT_EXEC) && strstr(m.path, "test_proc");
	}
	assert_int_equal(found, 1);
	assert_int_equal(lines, newlines);
	free(text);
}

enum { MANY_MAPS = 300 };

static void make_many_maps(void)
{
	char text[64];

	for (int i = 0; i < MANY_MAPS; i++) {
		snprintf(text, sizeof(text), "many-%d-of-many-names-in-maps", i);
		AUTO_CLOSE int one = memfd_create(text, MFD_CLOEXEC);

		assert_int_equal(ftruncate(one, 4096), 0);
		assert_true(mmap(NULL, 4096, PROT_READ, MAP_SHARED, one, 0) != MAP_FAILED);
	}
}

/* Counts of scan_piece. */
struct scan {
	unsigned pieces, maps, many;
	size_t bytes;
	int result;
};

static int scan_piece(void *ctx, char *lines, size_t len)
{
	struct scan *s = ctx;
	struct proc_map m;
	int i;

	assert_int_equal(strlen(lines), len);
	assert_int_equal(lines[len - 1], '\n');
	s->pieces++;
	s->bytes += len;
	for (; proc_map_next(&lines, &m); s->maps++)
		s->many += sscanf(m.path, "/memfd:many-%d-of-many-names-in-maps", &i) == 1;
	return s->result;
}

/* The lines are longer together than what is read at once. */
static void each_line_of_many_maps_is_seen_once(void **state)
{
	const struct proc_maps_limit limit = {PROC_MAPS_MAX, UINT64_MAX};
	struct scan scan = {0}, stopped = {.result = 7};
	unsigned lines = 0;
	char *text;

	(void)state;
	make_many_maps();
	assert_int_equal(proc_read_maps(getpid(), &text), 0);
	for (const char *p = text; *p; p++)
		lines += *p == '\n';
	assert_int_equal(proc_scan_maps(getpid(), &limit, scan_piece, &scan), 0);
	assert_int_equal(scan.many, MANY_MAPS);
	assert_int_equal(scan.maps, lines);
	assert_int_equal(scan.bytes, strlen(text));
	assert_true(scan.pieces > 1);
	assert_int_equal(proc_scan_maps(getpid(), &limit, scan_piece, &stopped), 7);
	assert_int_equal(stopped.pieces, 1);
	assert_int_equal(proc_scan_maps(INT32_MAX, &limit, scan_piece, &scan), -ESRCH);
	free(text);
}

static void a_scan_of_maps_ends_at_its_limits(void **state)
{
	const struct proc_maps_limit bytes = {10000, UINT64_MAX}, past = {PROC_MAPS_MAX, 1};
	struct scan scan = {0};

	(void)state;
	assert_int_equal(proc_scan_maps(getpid(), &bytes, scan_piece, &scan), -E2BIG);
	assert_true(scan.bytes <= 10000);
	scan = (struct scan){0};
	assert_int_equal(proc_scan_maps(getpid(), &past, scan_piece, &scan), -ETIMEDOUT);
	assert_int_equal(scan.pieces, 0);
}

static void status_reports_our_ids(void **state)
{
	struct proc_status s;

	(void)state;
	prctl(PR_SET_NAME, "a\\b\nc)");
	assert_int_equal(proc_status(getpid(), &s), 0);
	assert_string_equal(s.comm, "a\\b\nc)");
	assert_int_equal(s.pid, getpid());
	assert_int_equal(s.tgid, getpid());
	assert_int_equal(s.ppid, getppid());
	assert_int_equal(s.uid, geteuid());
	assert_true(s.threads >= 1);
	assert_int_equal(s.state, 'R');
	assert_true(s.ns_pid > 0 && s.ns_depth > 0);
	assert_false(s.kernel_thread);
	prctl(PR_SET_NAME, "test_proc");
	assert_int_equal(proc_status(0x7ffffffe, &s), -ESRCH);
}

static void status_of_other_kernels_is_parsed(void **state)
{
	struct proc_status s;

	(void)state;
	assert_int_equal(
		proc_status_parse(
			"Name:\tx\nState:\tZ (zombie)\nTgid:\t7\nPid:\t8\nPPid:\t1\n"
			"Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\nNSpid:\t8\t5\t3\nThreads:\t12\n"
			"CapPrm:\t0000000000002000\nCapEff:\t000001ffffffffff\nNoNewPrivs:"
			"\t1\nSeccomp:\t2\n",
			&s),
		0);
	assert_int_equal(s.tgid, 7);
	assert_int_equal(s.pid, 8);
	assert_int_equal(s.uid, 2);
	assert_int_equal(s.ns_pid, 3);
	assert_int_equal(s.ns_depth, 3);
	assert_int_equal(s.threads, 12);
	assert_int_equal(s.state, 'Z');
	assert_int_equal(s.uids.real, 1);
	assert_int_equal(s.uids.saved, 3);
	assert_int_equal(s.uids.fs, 4);
	assert_int_equal(s.gids.real, 5);
	assert_int_equal(s.gids.effective, 6);
	assert_int_equal(s.gids.fs, 8);
	assert_int_equal(s.cap_effective, 0x1ffffffffff);
	assert_int_equal(s.cap_permitted, 0x2000);
	assert_int_equal(s.seccomp, 2);
	assert_true(s.no_new_privs);
	assert_int_equal(proc_status_parse("Name:\tx\nPid:\t8\n", &s), 0);
	assert_int_equal(s.ns_pid, 8);
	assert_int_equal(s.ns_depth, 1);
	assert_int_equal(s.seccomp, -1);
	assert_int_equal(proc_status_parse("", &s), -EBADMSG);
	assert_int_equal(proc_status_parse("Pidx: 7", &s), -EBADMSG);
}

static int find_kthread(void *ctx, pid_t pid)
{
	struct proc_status s;

	if (!proc_status(pid, &s) && s.kernel_thread)
		++*(int *)ctx;
	return 0;
}

static void kernel_threads_are_distinguished_from_processes(void **state)
{
	struct proc_status s;
	int n = 0;

	(void)state;
	assert_int_equal(proc_each_pid(find_kthread, &n), 0);
	/* In a container no kernel thread is visible. */
	if (!proc_status(2, &s) && !strcmp(s.comm, "kthreadd"))
		assert_true(n > 2);
	pid_t child = fork();

	if (!child)
		_exit(0);
	siginfo_t info;

	waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
	assert_int_equal(proc_status(child, &s), 0);
	assert_int_equal(s.state, 'Z');
	assert_false(s.kernel_thread);
	waitpid(child, NULL, 0);
	assert_int_equal(proc_status(child, &s), -ESRCH);
}

static int stop_at_self(void *ctx, pid_t pid)
{
	(void)ctx;
	return pid == getpid() ? 77 : 0;
}

static int count_one(void *ctx, pid_t pid)
{
	(void)pid;
	++*(int *)ctx;
	return 0;
}

static void listing_finds_us_and_stops_on_request(void **state)
{
	int n = 0;

	(void)state;
	assert_int_equal(proc_each_pid(stop_at_self, NULL), 77);
	assert_int_equal(proc_each_numeric_name(getpid(), "/proc/self/task", count_one, &n), 0);
	assert_true(n >= 1);
	assert_int_equal(proc_each_numeric_name(0x7ffffffe, "/proc/2147483646/task", count_one, &n),
			 -ESRCH);
}

static int add_up(void *ctx, pid_t n)
{
	*(int *)ctx += n;
	return 0;
}

static void only_numeric_names_are_listed(void **state)
{
	static const char *const names[] = {"12", "300", "12a", "self", "0", "99999999999", "-7"};
	char dir[] = "/tmp/test_proc.XXXXXX";
	int sum = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_int_equal(mkdirat(dir_fd, names[i], 0700), 0);
	assert_int_equal(proc_each_numeric_name(0, dir, add_up, &sum), 0);
	assert_int_equal(sum, 312);
	sum = 0;
	assert_int_equal(proc_each_numeric_name(1, dir, add_up, &sum), 0);
	assert_int_equal(sum, 312);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(dir_fd, names[i], AT_REMOVEDIR);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
	assert_int_equal(proc_each_numeric_name(0, dir, add_up, &sum), -ESRCH);
}

static void each_of_many_names_is_listed_once(void **state)
{
	char dir[] = "/tmp/test_proc.XXXXXX", path[64];
	int sum = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (int i = 1; i <= MANY; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	assert_int_equal(proc_each_numeric_name(1, dir, add_up, &sum), 0);
	assert_int_equal(sum, MANY * (MANY + 1) / 2);
	for (int i = 1; i <= MANY; i++) {
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		rmdir(path);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void a_missing_file_is_not_a_missing_process(void **state)
{
	char *text;
	size_t len;

	(void)state;
	assert_int_equal(proc_read(getpid(), 0, "no-such", 100, &text, &len), -ENOENT);
	assert_int_equal(proc_read(0x7ffffffe, 0, "status", 100, &text, &len), -ESRCH);
	assert_int_equal(proc_read(getpid(), 0, "status", 10, &text, &len), -E2BIG);
	prctl(PR_SET_NAME, "test_proc");
	assert_int_equal(proc_read(getpid(), getpid(), "comm", 100, &text, &len), 0);
	assert_string_equal(text, "test_proc\n");
	free(text);
}

static void start_time_is_field_22_whatever_the_name(void **state)
{
	const char *stat =
		"77 (a) b) 1 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
	uint64_t ticks, again;

	(void)state;
	assert_int_equal(proc_stat_field(stat, 22, &ticks), 0);
	assert_int_equal(ticks, 4711);
	assert_int_equal(proc_stat_field(stat, 25, &ticks), -EBADMSG);
	assert_int_equal(proc_stat_field(stat, 3, &ticks), -EBADMSG);
	assert_int_equal(proc_stat_field("77 a S 1", 4, &ticks), -EBADMSG);
	assert_int_equal(proc_start_ticks(getpid(), &ticks), 0);
	prctl(PR_SET_NAME, ") 1 2 (");
	assert_int_equal(proc_start_ticks(getpid(), &again), 0);
	prctl(PR_SET_NAME, "test_proc");
	assert_int_equal(ticks, again);
	assert_true(ticks > 0);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void container_ids_of_all_runtimes_are_found(void **state)
{
	static const struct {
		const char *text, *id;
	} cases[] = {
		{"12:pids:/docker/" ID "\n11:cpu:/docker/" ID "\n", ID},
		{"0::/system.slice/docker-" ID ".scope\n", ID},
		{"0::/kubepods.slice/kubepods-burstable.slice/"
		 "kubepods-burstable-pod0f3a2c3e_1111_2222_3333_444455556666.slice/"
		 "cri-containerd-" ID ".scope\n",
		 ID},
		{"0::/kubepods/besteffort/pod" POD "/" ID "\n", ID},
		{"0::/../crio-" ID ".scope\n", ID},
		{"0::/machine.slice/libpod-" ID ".scope/container\n", ID},
		{"1:name=systemd:/\n0::/libpod_parent/libpod-" ID, ID},
		{"0::/lxc.payload.web1/system.slice/app.service\n", "web1"},
		{"4:cpu:/lxc/web2\n", "web2"},
		{"0::/machine.slice/machine-deb12.scope/payload\n", "deb12"},
		{"0::/user.slice/user-1000.slice/session-2.scope\n", ""},
		{"0::/docker/0123456789abcdef\n", ""},
		{"0::/docker/" ID "0\n", ""},
		{"0::/\n", ""},
		{"", ""},
		{"0::/lxc/\n", ""},
		{"0::/lxc/a\033[2Jb\n", "a?[2Jb"},
	};
	char buf[CGROUP_CONTAINER_BYTES], small[13];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		cgroup_container_id(cases[i].text, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].id);
	}
	cgroup_container_id(cases[0].text, small, sizeof(small));
	assert_string_equal(small, "0123456789ab");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map_lines_give_their_fields),
		cmocka_unit_test(our_own_maps_cover_our_own_code),
		cmocka_unit_test(a_missing_file_is_not_a_missing_process),
		cmocka_unit_test(each_line_of_many_maps_is_seen_once),
		cmocka_unit_test(a_scan_of_maps_ends_at_its_limits),
		cmocka_unit_test(status_reports_our_ids),
		cmocka_unit_test(status_of_other_kernels_is_parsed),
		cmocka_unit_test(kernel_threads_are_distinguished_from_processes),
		cmocka_unit_test(listing_finds_us_and_stops_on_request),
		cmocka_unit_test(only_numeric_names_are_listed),
		cmocka_unit_test(each_of_many_names_is_listed_once),
		cmocka_unit_test(start_time_is_field_22_whatever_the_name),
		cmocka_unit_test(container_ids_of_all_runtimes_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
