#include "tests/unit/fake_perf_map.h"

static void our_map_is_removed_with_all_its_files(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;
	struct stat st;
	char text[64], path[64];

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_OURS);
	assert_int_equal(pread(perf_map_fd(m), text, sizeof(text), 0), 37);
	assert_true(perf_map_enable_ns(m) > 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map.profcpu", fake.pid);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* A sweep sees that the map is in use. */
	assert_true(sweep(&fake).in_use >= 1);
	assert_true(is_on(&fake));
	assert_int_equal(end(m), 0);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void a_map_that_was_on_stays_on(void **state)
{
	struct fake_runtime fake = fake_start(on_already);
	struct perf_map *m;

	(void)state;
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0,
				      clock_monotonic_ns() + LONG_NS, NULL),
			 0);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_USERS);
	assert_false(tmp_has(&fake, "perf", ".map.profcpu"));
	assert_int_equal(end(m), 0);
	assert_true(is_on(&fake));
	assert_true(tmp_has(&fake, "perf", ".map"));
	/* Includes a map whose file was removed meanwhile. */
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", fake.pid);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_USERS);
	assert_int_equal(pread(perf_map_fd(m), path, 8, 0), 8);
	assert_int_equal(end(m), 0);
	snprintf(path, sizeof(path), "/tmp/perfinfo-%d.map", fake.pid);
	unlink(path);
	fake_stop(&fake);
}

static void a_file_without_a_writer_is_not_touched(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", fake.pid);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_int_equal(write(fd, "old", 3), 3);
	assert_int_equal(begin(&fake, LONG_NS, &m), -EEXIST);
	assert_non_null(strstr(err.text, path));
	sweep(&fake);
	assert_int_equal(lseek(fd, 0, SEEK_END), 3);
	assert_true(tmp_has(&fake, "perf", ".map"));
	assert_false(is_on(&fake));
	close(fd);
	unlink(path);
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void the_last_of_two_switches_it_off(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		struct fake_runtime fake = fake_start(maps);
		struct perf_map *m[2];

		assert_int_equal(begin(&fake, LONG_NS, &m[0]), 0);
		assert_int_equal(begin(&fake, LONG_NS, &m[1]), 0);
		assert_int_equal(perf_map_way(m[1]), PERF_MAP_OURS);
		assert_true(perf_map_enable_ns(m[1]) == 0);
		assert_int_equal(end(m[first]), 0);
		assert_true(is_on(&fake));
		assert_true(tmp_has(&fake, "perf", ".map"));
		assert_true(sweep(&fake).in_use >= 1);
		assert_int_equal(end(m[!first]), 0);
		assert_false(is_on(&fake));
		assert_nothing_left(&fake);
		fake_stop(&fake);
	}
}

/* A profcpu that is killed after limit_ms, or when it has the map on. */
static void killed_profcpu(const struct fake_runtime *fake, unsigned limit_ms)
{
	int on[2];
	char c;

	assert_int_equal(pipe(on), 0);
	pid_t pid = fork();

	if (!pid) {
		struct perf_map *m;

		if (!begin(fake, LONG_NS, &m) && write(on[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(on[1]);
	if (limit_ms)
		usleep(limit_ms * 1000);
	else
		assert_int_equal(read(on[0], &c, 1), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(on[0]);
}

static void the_next_recorder_removes_a_killed_ones_map(void **state)
{
	struct fake_runtime fake = fake_start(maps);

	(void)state;
	killed_profcpu(&fake, 0);
	assert_true(is_on(&fake));
	assert_true(tmp_has(&fake, "perf", ".map.profcpu"));
	sweep(&fake);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	/* The next one may take it over instead if it wants the same map. */
	struct perf_map *m;

	killed_profcpu(&fake, 0);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_OURS);
	assert_int_equal(end(m), 0);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void a_recorder_killed_while_switching_on_leaves_nothing(void **state)
{
	struct fake_runtime fake = fake_start(maps_slowly);
	struct perf_map *m;

	(void)state;
	killed_profcpu(&fake, 300);
	assert_true(tmp_has(&fake, "perf", ".map.profcpu"));
	sweep(&fake);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	killed_profcpu(&fake, 300);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_true(perf_map_enable_ns(m) > 0);
	assert_int_equal(end(m), 0);
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void files_of_an_ended_target_are_removed(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;
	struct perf_map_sweep_counts swept;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	fake_stop(&fake);
	assert_int_equal(end(m), 0);
	assert_nothing_left(&fake);
	fake = fake_start(maps);
	killed_profcpu(&fake, 0);
	fake_stop(&fake);
	assert_true(tmp_has(&fake, "perf", ".map"));
	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept),
			 0);
	assert_true(swept.removed >= 1);
	assert_nothing_left(&fake);
}

/* Its parent does not reap it, so its PID and start time remain in /proc. */
static void a_process_that_ends_on_the_request_leaves_nothing(void **state)
{
	fake_serve_fn *const serve[] = {ends_on_disable, ends_soon_after_its_port};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct fake_runtime fake = fake_start(serve[i]);
		struct perf_map *m;

		assert_int_equal(begin(&fake, LONG_NS, &m), 0);
		assert_int_equal(end(m), 0);
		assert_nothing_left(&fake);
		fake_stop(&fake);
	}
}

static void a_process_without_a_reply_keeps_its_map(void **state)
{
	struct fake_runtime fake = fake_start(closes_on_disable);
	struct perf_map *m;
	struct perf_map_sweep_counts swept;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(end(m), -EBADMSG);
	assert_true(is_on(&fake));
	assert_true(tmp_has(&fake, "perf", ".map"));
	assert_true(tmp_has(&fake, "perf", ".map.profcpu"));
	fake_stop(&fake);
	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept),
			 0);
	assert_nothing_left(&fake);
}

static void a_runtime_without_the_command_is_reported(void **state)
{
	struct fake_runtime fake = fake_start(only_claims);
	struct perf_map *m;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), -EACCES);
	assert_nothing_left(&fake);
	fake_stop(&fake);
	fake = fake_start(too_old);
	assert_int_equal(begin(&fake, LONG_NS, &m), -ENOTSUP);
	assert_non_null(strstr(err.text, ".NET 7"));
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void a_map_switched_on_too_late_is_switched_off_later(void **state)
{
	struct fake_runtime fake = fake_start(maps_slowly);
	struct perf_map *m;

	(void)state;
	assert_int_equal(begin(&fake, SHORT_NS, &m), -ETIMEDOUT);
	(void)sweep(&fake);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	fake_stop(&fake);
	fake = fake_start(never_disables);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_end(o, m, clock_monotonic_ns() + SHORT_NS, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "stays until the next profcpu collect"));
	assert_true(tmp_has(&fake, "perf", ".map.profcpu"));
	fake_stop(&fake);
	struct perf_map_sweep_counts swept;

	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept),
			 0);
	assert_nothing_left(&fake);
}

static void a_jitdump_is_not_ended(void **state)
{
	char path[64];
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	struct fake_runtime fake = {.pid = fork()};

	if (!fake.pid) {
		snprintf(path, sizeof(path), "/tmp/jit-%d.dump", getpid());
		int fd = open(path, O_RDWR | O_CREAT, 0600);

		if (ftruncate(fd, 4096) ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
		    write(go[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	struct perf_map *m;

	assert_int_equal(read(go[0], path, 1), 1);
	assert_int_equal(begin(&fake, LONG_NS, &m), -EBUSY);
	assert_non_null(strstr(err.text, "jitdump"));
	assert_nothing_left(&fake);
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", fake.pid);
	unlink(path);
	kill(fake.pid, SIGKILL);
	waitpid(fake.pid, NULL, 0);
}

static void the_message_names_the_first_cause(void **state)
{
	struct fake_runtime fake = fake_start(has_none);
	char mark[64];
	struct perf_map *m;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), -ENOTSUP);
	assert_null(strstr(err.text, ".NET 7"));
	assert_non_null(strstr(err.text, "0x80131515"));
	fake_stop(&fake);
	fake = fake_start(claims_and_never_disables);
	assert_int_equal(begin(&fake, LONG_NS, &m), -EACCES);
	assert_non_null(strstr(err.text, "could not write /tmp/perf-"));
	assert_non_null(strstr(err.text, "may stay switched on"));
	assert_null(strstr(err.text, "in time"));
	fake_stop(&fake);
	snprintf(mark, sizeof(mark), "/tmp/perf-%d.map.profcpu", fake.pid);
	assert_int_equal(unlink(mark), 0);
	pid_t pid = start_other(geteuid(), "maps");

	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err),
			 -ENOTSUP);
	assert_non_null(strstr(err.text, "not an absolute path"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_map_is_removed_with_all_its_files),
		cmocka_unit_test(a_map_that_was_on_stays_on),
		cmocka_unit_test(a_file_without_a_writer_is_not_touched),
		cmocka_unit_test(the_last_of_two_switches_it_off),
		cmocka_unit_test(the_next_recorder_removes_a_killed_ones_map),
		cmocka_unit_test(a_recorder_killed_while_switching_on_leaves_nothing),
		cmocka_unit_test(files_of_an_ended_target_are_removed),
		cmocka_unit_test(a_process_that_ends_on_the_request_leaves_nothing),
		cmocka_unit_test(a_process_without_a_reply_keeps_its_map),
		cmocka_unit_test(a_runtime_without_the_command_is_reported),
		cmocka_unit_test(a_map_switched_on_too_late_is_switched_off_later),
		cmocka_unit_test(a_jitdump_is_not_ended),
		cmocka_unit_test(the_message_names_the_first_cause),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
