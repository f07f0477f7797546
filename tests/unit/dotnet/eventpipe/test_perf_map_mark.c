#include "tests/unit/fake_perf_map.h"

/* Replaces the mark of a fake that has no map on, and sweeps. */
static void assert_mark_refused(const struct fake_runtime *fake, const char *mark,
				const char *victim)
{
	struct stat st;

	sweep(fake);
	assert_int_equal(lstat(victim, &st), 0);
	unlink(mark);
}

static void foreign_marks_remove_nothing(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	char mark[64], victim[64], text[PERF_MAP_MARK_MAX];
	struct perf_map_mark forged = {
		.ns_pid = fake.pid, .pid_ns = perf_map_own_pid_ns(), .pid = fake.pid};
	struct stat st;
	uint64_t start;

	(void)state;
	snprintf(mark, sizeof(mark), "/tmp/perf-%d.map.profcpu", fake.pid);
	snprintf(victim, sizeof(victim), "/tmp/perf-%d.map", fake.pid);
	int fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(proc_start_ticks(fake.pid, &start), 0);
	close(fd);
	/* A link to a mark, and text that is not a mark. */
	assert_int_equal(symlink("/etc/passwd", mark), 0);
	assert_mark_refused(&fake, mark, victim);
	fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "perf", 4), 4);
	close(fd);
	assert_mark_refused(&fake, mark, victim);
	/* A file of the same name, but not the marked one. */
	forged.start_ticks = start;
	forged.map = (struct target_file){.dev = st.st_dev, .ino = st.st_ino + 1};
	fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
	size_t len = perf_map_mark_text(&forged, text, sizeof(text));

	assert_int_equal(write(fd, text, len), len);
	close(fd);
	(void)sweep(&fake);
	assert_int_equal(lstat(victim, &st), 0);
	/* The right file, but its mark belongs to a user who is neither us nor the target. */
	if (!geteuid()) {
		forged.map.ino = st.st_ino;
		len = perf_map_mark_text(&forged, text, sizeof(text));
		fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
		assert_int_equal(write(fd, text, len), len);
		assert_int_equal(fchown(fd, 4711, 4711), 0);
		close(fd);
		assert_mark_refused(&fake, mark, victim);
	}
	unlink(victim);
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static int count_one(void *ctx, pid_t n)
{
	(void)n;
	++*(unsigned *)ctx;
	return 0;
}

static unsigned count_descriptors(void)
{
	unsigned n = 0;

	assert_int_equal(proc_each_numeric_name("/proc/self/fd", count_one, &n), 0);
	return n;
}

/* Each container has a PID 1. The opener pins the root of each process that it examines. */
static void processes_without_a_map_are_not_pinned(void **state)
{
	struct perf_map_mark mark = {
		.ns_pid = 1, .start_ticks = UINT64_MAX, .pid_ns = perf_map_own_pid_ns(), .pid = 1};
	char dir[] = "/tmp/perf_map.XXXXXX", path[64];
	struct perf_map_sweep_counts swept = {0};
	int ready[2];
	pid_t pid;
	char c;

	(void)state;
	if (geteuid())
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(1);
		pid = fork();
		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (write(ready[1], "x", 1) != 1)
				_exit(1);
			pause();
		}
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		rmdir(dir);
		skip(); /* no right to make namespaces */
	}
	pid_t own = start_other(0, dir);

	snprintf(path, sizeof(path), "%s/perf-1.map.profcpu", dir);
	write_mark(path, &mark, 0);
	assert_int_equal(opener_pin(o, own), 0);
	unsigned before = count_descriptors();

	assert_int_equal(perf_map_sweep(o, own, clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_int_equal(swept.removed, 1);
	assert_int_equal(count_descriptors(), before);
	for (int i = 0; i < 2; i++) {
		pid_t each = i ? own : pid;

		kill(each, SIGKILL);
		waitpid(each, NULL, 0);
	}
	close(ready[0]);
	assert_int_equal(rmdir(dir), 0);
}

/* Root does nothing for a user that the kernel forbids that user. */
static void a_users_mark_removes_and_makes_only_the_users_files(void **state)
{
	enum { OTHER = 4711, NOBODYS = 2147480000 };
	struct perf_map_mark mark = {.ns_pid = NOBODYS,
				     .start_ticks = 1,
				     .pid_ns = perf_map_own_pid_ns(),
				     .pid = NOBODYS};
	char mark_path[64], map_path[64], dir[] = "/tmp/perf_map.XXXXXX";
	struct perf_map_sweep_counts swept = {0};
	struct perf_map *m = NULL;
	struct stat st;

	(void)state;
	if (geteuid())
		skip();
	snprintf(mark_path, sizeof(mark_path), "/tmp/perf-%d.map.profcpu", NOBODYS);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", NOBODYS);
	pid_t pid = start_other(OTHER, NULL);
	int fd = open(map_path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(fstat(fd, &st), 0);
	mark.map = (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
	write_mark(mark_path, &mark, OTHER);
	assert_int_equal(perf_map_sweep(o, pid, clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_int_equal(access(map_path, F_OK), 0);
	/* Its own map goes, but not after the time limit. */
	assert_int_equal(fchown(fd, OTHER, OTHER), 0);
	close(fd);
	assert_int_equal(perf_map_sweep(o, pid, clock_monotonic_ns(), NULL, &swept), 0);
	assert_int_equal(swept.error, -ETIMEDOUT);
	assert_int_equal(access(map_path, F_OK), 0);
	assert_int_equal(perf_map_sweep(o, pid, clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_int_not_equal(access(map_path, F_OK), 0);
	assert_int_not_equal(access(mark_path, F_OK), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* A directory in which the target may not write, but we may. */
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	pid = start_other(OTHER, dir);
	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err),
			 -EACCES);
	assert_int_equal(chown(dir, OTHER, OTHER), 0);
	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err),
			 -ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rmdir(dir), 0);
}

/* The mark's process has ended. Another process has its number and overwrites the same file, as
 * runtimes do. */
static void a_map_written_by_a_later_process_stays(void **state)
{
	struct fake_runtime fake = fake_start(on_already);
	struct perf_map_mark mark = {.ns_pid = fake.pid,
				     .start_ticks = 1,
				     .pid_ns = perf_map_own_pid_ns(),
				     .pid = fake.pid};
	char mark_path[64], path[64];
	struct perf_map *m;

	(void)state;
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0,
				      clock_monotonic_ns() + LONG_NS, NULL),
			 0);
	snprintf(mark_path, sizeof(mark_path), "/tmp/perf-%d.map.profcpu", fake.pid);
	snprintf(path, sizeof(path), "/tmp/perfinfo-%d.map", fake.pid);
	mark.info = file_of(path);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", fake.pid);
	mark.map = file_of(path);
	write_mark(mark_path, &mark, geteuid());
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_USERS);
	assert_int_equal(end(m), 0);
	assert_true(is_on(&fake));
	assert_true(tmp_has(&fake, "perf", ".map"));
	assert_true(tmp_has(&fake, "perfinfo", ".map"));
	assert_false(tmp_has(&fake, "perf", ".map.profcpu"));
	/* Nobody writes it any more. */
	fake_stop(&fake);
	write_mark(mark_path, &mark, geteuid());
	struct perf_map_sweep_counts swept;

	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept),
			 0);
	assert_nothing_left(&fake);
}

/* An exec keeps PID and start time. */
static void the_map_of_a_program_after_exec_stays(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_OURS);
	perf_map_set_replaced(m);
	assert_int_equal(end(m), 0);
	assert_true(is_on(&fake));
	assert_true(tmp_has(&fake, "perf", ".map"));
	assert_true(tmp_has(&fake, "perfinfo", ".map"));
	assert_false(tmp_has(&fake, "perf", ".map.profcpu"));
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_USERS);
	assert_int_equal(end(m), 0);
	fake_stop(&fake);
	for (int info = 0; info < 2; info++) {
		char path[64];

		snprintf(path, sizeof(path), "/tmp/perf%s-%d.map", info ? "info" : "", fake.pid);
		assert_int_equal(unlink(path), 0);
	}
}

/* Even root's mark is refused if its process keeps maps in another directory, or if its number
 * differs from the name. */
static void a_mark_covers_only_its_own_directory_and_number(void **state)
{
	enum { NOBODYS = 2147480001 };
	struct fake_runtime fake = fake_start(on_already);
	char mark_path[64], map_path[64], path[64], dir[] = "/tmp/perf_map.XXXXXX";
	struct perf_map_mark mark = {.pid_ns = perf_map_own_pid_ns()};
	struct perf_map *m;

	(void)state;
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0,
				      clock_monotonic_ns() + LONG_NS, NULL),
			 0);
	snprintf(mark_path, sizeof(mark_path), "/tmp/perf-%d.map.profcpu", fake.pid);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", fake.pid);
	snprintf(path, sizeof(path), "/tmp/perfinfo-%d.map", NOBODYS);
	close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
	mark.ns_pid = NOBODYS;
	mark.pid = fake.pid;
	mark.map = file_of(map_path);
	mark.info = file_of(path);
	assert_int_equal(proc_start_ticks(fake.pid, &mark.start_ticks), 0);
	write_mark(mark_path, &mark, geteuid());
	assert_int_equal(begin(&fake, LONG_NS, &m), -EBUSY);
	assert_non_null(strstr(err.text, "left by a profcpu"));
	assert_non_null(strstr(err.text, mark_path));
	assert_int_equal(access(path, F_OK), 0);
	assert_true(is_on(&fake));
	unlink(mark_path);
	unlink(path);
	fake_stop(&fake);
	unlink(map_path);
	snprintf(path, sizeof(path), "/tmp/perfinfo-%d.map", fake.pid);
	unlink(path);
	if (geteuid())
		return;
	assert_non_null(mkdtemp(dir));
	pid_t pid = start_other(0, dir);

	snprintf(mark_path, sizeof(mark_path), "/tmp/perf-%d.map.profcpu", pid);
	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", pid);
	close(open(map_path, O_WRONLY | O_CREAT | O_EXCL, 0600));
	mark.ns_pid = mark.pid = pid;
	mark.map = file_of(map_path);
	mark.info = (struct target_file){0};
	assert_int_equal(proc_start_ticks(pid, &mark.start_ticks), 0);
	for (int own_ns = 0; own_ns < 2; own_ns++) {
		mark.pid_ns = own_ns ? perf_map_own_pid_ns() : 1;
		write_mark(mark_path, &mark, 0);
		struct perf_map_sweep_counts swept;

		assert_int_equal(
			perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept),
			0);
		assert_int_equal(access(map_path, F_OK), 0);
		assert_int_equal(unlink(mark_path), 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlink(map_path);
	assert_int_equal(rmdir(dir), 0);
}

static void marks_are_read_as_written(void **state)
{
	struct perf_map_mark m = {.ns_pid = 7,
				  .start_ticks = UINT64_MAX,
				  .pid_ns = 4026531836,
				  .pid = INT32_MAX,
				  .map = {.dev = 66, .ino = UINT64_MAX},
				  .info = {.dev = 1, .ino = 2}},
			     back;
	char text[PERF_MAP_MARK_MAX], again[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(&m, text, sizeof(text));

	(void)state;
	assert_true(len > 0);
	assert_int_equal(perf_map_mark_parse(text, len, &back), 0);
	assert_true(back.start_ticks == UINT64_MAX && back.map.ino == UINT64_MAX &&
		    back.info.dev == 1 && back.info.ino == 2);
	assert_int_equal(perf_map_mark_text(&back, again, sizeof(again)), len);
	assert_memory_equal(text, again, len);
	m = (struct perf_map_mark){.ns_pid = 1, .pid = 1};
	assert_int_equal(perf_map_mark_text(&m, text, sizeof(text)), len);
	assert_int_equal(perf_map_mark_parse(text, 0, &back), -ENODATA);
	for (size_t n = 1; n < len; n++)
		assert_int_equal(perf_map_mark_parse(text, n, &back), -EBADMSG);
	m.pid = 0;
	perf_map_mark_text(&m, text, sizeof(text));
	assert_int_equal(perf_map_mark_parse(text, len, &back), -EBADMSG);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_without_a_map_are_not_pinned),
		cmocka_unit_test(foreign_marks_remove_nothing),
		cmocka_unit_test(a_users_mark_removes_and_makes_only_the_users_files),
		cmocka_unit_test(a_map_written_by_a_later_process_stays),
		cmocka_unit_test(the_map_of_a_program_after_exec_stays),
		cmocka_unit_test(a_mark_covers_only_its_own_directory_and_number),
		cmocka_unit_test(marks_are_read_as_written),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
