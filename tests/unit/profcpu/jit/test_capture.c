#include "profcpu/jit/capture.h"

#include "base/log.h"
#include "dotnet/eventpipe/perf_map.h"
#include "profcpu/jit/capture_process.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define HUNG 4
#define ROOM 4096 /* for the mark beside the map */

static char dir[] = "/tmp/jit_capture.XXXXXX";
static int dir_fd = -1;
static char logged[4096];

static int set_up(void **state)
{
	/* Fakes inherit this mapping, so they look like .NET processes. */
	int fd = memfd_create("doublemapper", MFD_CLOEXEC);

	if (!mkdtemp(dir) || fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fake_set_up(state);
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	close(dir_fd);
	return system(command) || fake_tear_down(state);
}

/* In the fake runtime. */
static void maps(int fd, const struct fake_request *request)
{
	static int map = -1;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	if (request->command == IPC_ENABLE_PERF_MAP) {
		map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (write(map, "0x1000 10 void [A] T::M()[Optimized]\n", 37) != 37)
			abort();
	} else if (request->command == IPC_DISABLE_PERF_MAP) {
		close(map);
	}
	fake_hresult(fd, 0);
}

static void write_and_exit(int signal)
{
	char path[64];

	(void)signal;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

	_exit(write(fd, "0x2000 10 void [A] T::AtTheEnd()[Optimized]\n", 44) != 44);
}

static void maps_until_a_signal(int fd, const struct fake_request *request)
{
	signal(SIGUSR1, write_and_exit);
	maps(fd, request);
}

static bool there(pid_t pid, const char *end)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d%s", pid, end);
	return !access(path, F_OK);
}

static void wait_for_map(pid_t pid)
{
	for (int i = 0; i < 3000 && !there(pid, ".map"); i++)
		usleep(20000);
	assert_true(there(pid, ".map"));
}

static void wait_for_methods(pid_t pid)
{
	char name[64];
	struct stat st = {0};

	snprintf(name, sizeof(name), "symbols/%d.methods", pid);
	for (int i = 0; i < 500 && (fstatat(dir_fd, name, &st, 0) || st.st_size < 100); i++)
		usleep(20000);
	assert_true(st.st_size >= 100);
}

static void log_to_text(enum log_level level, const char *text, unsigned long more)
{
	size_t len = strlen(logged);

	if ((level == LOG_WARN || level == LOG_NOTE) && !more)
		snprintf(logged + len, sizeof(logged) - len, "%s\n", text);
}

static void report(const struct jit_capture *c, bool quiet)
{
	logged[0] = 0;
	log_set_sink(log_to_text);
	jit_capture_report(c, quiet);
	log_summarize();
	log_set_sink(NULL);
}

/* Otherwise each process would have its own time limit, and the user would wait for all of them. */
static void targets_that_hang_share_one_time_limit(void **state)
{
	struct fake_runtime fakes[HUNG + 1];
	struct jit_capture *c = NULL;

	(void)state;
	assert_int_equal(jit_capture_new(JIT_NAMES_PERF_MAP, dir_fd, &c), 0);
	for (int i = 0; i <= HUNG; i++) {
		fakes[i] = fake_start(maps);
		jit_capture_add_process(c, fakes[i].pid);
	}
	assert_int_equal(jit_capture_start(c, false), 0);
	for (int i = 0; i <= HUNG; i++)
		wait_for_methods(fakes[i].pid);
	for (int i = 0; i < HUNG; i++)
		kill(fakes[i].pid, SIGSTOP);
	uint64_t begin = clock_monotonic_ns();

	jit_capture_end(c);
	/* The thread ended by itself. It would be abandoned 2 s after its limit. */
	assert_true(clock_monotonic_ns() - begin < (JIT_CAPTURE_END_S + 2) * NS_PER_S);
	report(c, true);
	/* Replies that arrive in time count, even the last one. */
	assert_false(there(fakes[HUNG].pid, ".map"));
	assert_false(there(fakes[HUNG].pid, ".map.profcpu"));
	size_t stay = 0;

	for (const char *p = logged;
	     (p = strstr(p, "stays until the next profcpu collect on process ")); p++)
		stay++;
	assert_int_equal(stay, LOG_WARN_SHOWN);
	jit_capture_free(c);
	for (int i = 0; i <= HUNG; i++) {
		char path[64];

		fake_stop(&fakes[i]);
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", fakes[i].pid);
		unlink(path);
		snprintf(path, sizeof(path), "/tmp/perf-%d.map.profcpu", fakes[i].pid);
		unlink(path);
	}
}

/* A capture of one process; methods becomes the name of its file in dir. */
static struct jit_capture *capture_of(enum jit_names names, pid_t pid, char methods[64])
{
	struct jit_capture *c = NULL;

	assert_int_equal(jit_capture_new(names, dir_fd, &c), 0);
	jit_capture_add_process(c, pid);
	snprintf(methods, 64, "symbols/%d.methods", pid);
	return c;
}

static void unwritable_names_are_reported(void **state)
{
	struct rlimit before, none = {0};
	struct fake_runtime fake = fake_start(maps);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_PERF_MAP, fake.pid, name);

	(void)state;
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(ftruncate(fd, ROOM), 0);
	close(fd);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_IGN);
	none.rlim_max = before.rlim_max;
	none.rlim_cur = ROOM;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(jit_capture_start(c, false), 0);
	jit_capture_end(c);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	report(c, true);
	assert_non_null(
		strstr(logged, "they cannot all be written to the recording: File too large"));
	assert_false(there(fake.pid, ".map"));
	jit_capture_free(c);
	fake_stop(&fake);
}

/* A second way would switch on perf maps of the process, and hide the failure of the first. */
static void names_that_cannot_be_written_are_taken_in_no_other_way(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_AUTO, fake.pid, name);

	(void)state;
	assert_int_equal(mkdirat(dir_fd, name, 0700), 0);
	assert_int_equal(jit_capture_start(c, false), 0);
	jit_capture_end(c);
	report(c, true);
	assert_non_null(
		strstr(logged, "auto: names cannot be written to the recording: Is a directory\n"));
	assert_false(jit_capture_is_written(c));
	jit_capture_free(c);
	fake_stop(&fake);
}

static void methods_before_the_end_of_a_process_are_kept(void **state)
{
	struct fake_runtime fake = fake_start(maps_until_a_signal);
	char name[64], text[512] = "";
	struct jit_capture *c = capture_of(JIT_NAMES_PERF_MAP, fake.pid, name);

	(void)state;
	assert_int_equal(jit_capture_start(c, false), 0);
	wait_for_methods(fake.pid);
	/* The process becomes a zombie between two steps. */
	kill(fake.pid, SIGUSR1);
	for (int i = 0; i < 100 && there(fake.pid, ".map"); i++)
		usleep(20000);
	jit_capture_end(c);
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, "T::M()"));
	assert_non_null(strstr(text, "T::AtTheEnd()"));
	report(c, false);
	assert_non_null(strstr(logged, "come from its perf map"));
	assert_null(strstr(logged, "ended before"));
	assert_false(there(fake.pid, ".map"));
	assert_false(there(fake.pid, ".map.profcpu"));
	jit_capture_free(c);
	fake_stop(&fake);
}

/* A profcpu that is killed while it has the perf map of a process on. */
static void leave_map(pid_t pid)
{
	struct perf_map_error err;
	struct perf_map *m;
	int status;
	pid_t killed = fork();

	if (!killed)
		_exit(perf_map_begin(o, pid, clock_monotonic_ns() + JIT_PROCESS_READY_NS, &m,
				     &err) != 0);
	assert_int_equal(waitpid(killed, &status, 0), killed);
	assert_int_equal(status, 0);
	assert_true(there(pid, ".map.profcpu"));
}

/* The remains of a killed profcpu are removed after names are taken. A process that hangs costs one
 * wait. */
static void a_foreign_process_that_hangs_costs_no_names(void **state)
{
	struct fake_runtime hung = fake_start(maps), fakes[3];
	struct jit_capture *c = NULL;
	char text[64], name[64];
	struct stat st;

	(void)state;
	leave_map(hung.pid);
	kill(hung.pid, SIGSTOP);
	assert_int_equal(jit_capture_new(JIT_NAMES_PERF_MAP, dir_fd, &c), 0);
	for (size_t i = 0; i < 3; i++) {
		fakes[i] = fake_start(maps);
		jit_capture_add_process(c, fakes[i].pid);
	}
	/* Maps are on before anybody waits: while the clock stands still, a wait does not end. */
	fake_clock_stop();
	assert_int_equal(jit_capture_start(c, false), 0);
	for (size_t i = 0; i < 3; i++)
		wait_for_map(fakes[i].pid);
	fake_clock_run();
	uint64_t begin = clock_monotonic_ns();

	jit_capture_end(c);
	assert_true(clock_monotonic_ns() - begin < JIT_CAPTURE_END_S * NS_PER_S);
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "symbols/%d.methods", fakes[i].pid);
		assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
		assert_true(st.st_size >= 100);
		assert_false(there(fakes[i].pid, ".map"));
	}
	report(c, true);
	snprintf(text, sizeof(text), "process %d: the perf map", hung.pid);
	assert_non_null(strstr(logged, text));
	assert_non_null(strstr(logged, "is it stopped?"));
	assert_null(strchr(strchr(logged, '\n') + 1, '\n')); /* one line */
	jit_capture_free(c);
	/* Once it replies, the next profcpu removes the map. */
	kill(hung.pid, SIGCONT);
	assert_int_equal(jit_capture_new(JIT_NAMES_PERF_MAP, dir_fd, &c), 0);
	jit_capture_add_process(c, fakes[0].pid);
	assert_int_equal(jit_capture_start(c, false), 0);
	for (int i = 0; i < 200 && there(hung.pid, ".map.profcpu"); i++)
		usleep(20000);
	jit_capture_end(c);
	assert_false(there(hung.pid, ".map.profcpu"));
	report(c, false);
	assert_non_null(strstr(logged, "1 perf map of a killed profcpu: switched off and removed"));
	jit_capture_free(c);
	for (size_t i = 0; i < 3; i++)
		fake_stop(&fakes[i]);
	fake_stop(&hung);
}

/* A busy machine is no reason to send a command to a runtime, which can crash it. */
static void a_late_process_is_retried_without_a_command(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct jit_process p = {.pid = fake.pid};
	uint64_t now = clock_monotonic_ns();

	(void)state;
	/* Old enough for another way to be used. */
	p.since_ns = p.next_ns = now - 2 * JIT_PROCESS_READY_NS;
	jit_process_probe(&all, &p, now, now, false);
	assert_true(p.is_dotnet && p.late);
	assert_false(p.done);
	assert_null(p.way);
	assert_true(p.next_ns > now);
	assert_string_equal(p.why, "memory: there was no time");
	assert_false(there(fake.pid, ".map"));
	/* With enough time, its memory shows no runtime, and the next way is used. */
	now = clock_monotonic_ns();
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_ptr_equal(p.way, &jit_way_perf_map);
	assert_int_equal(all.maps_on, 1);
	assert_false(p.late);
	assert_true(there(fake.pid, ".map"));
	jit_process_release(&p, clock_monotonic_ns() + JIT_PROCESS_READY_NS);
	assert_false(there(fake.pid, ".map"));
	assert_int_equal(all.maps_on, 0);
	/* Nothing is retried at the end. */
	now = clock_monotonic_ns();
	jit_process_probe(&all, &p, now, now, true);
	assert_true(p.done);
	assert_false(p.late);
	assert_false(there(fake.pid, ".map"));
	fake_stop(&fake);
}

/* Names of an earlier program could not be written. Each way is tried for the next program of its
 * PID. */
static void a_failed_write_concerns_one_program_of_a_pid(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct jit_process p = {.pid = fake.pid, .write_failures = 1};
	uint64_t now = clock_monotonic_ns();

	(void)state;
	p.since_ns = p.next_ns = now - 2 * JIT_PROCESS_READY_NS;
	/* Its memory shows no runtime, so the next way is used. */
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_ptr_equal(p.way, &jit_way_perf_map);
	assert_int_equal(p.write_failures, 1);
	jit_process_release(&p, clock_monotonic_ns() + JIT_PROCESS_READY_NS);
	assert_false(there(fake.pid, ".map"));
	fake_stop(&fake);
}

/* A lack of descriptors does not mean that the process ended. It may be over next time. */
static void unreadable_parts_are_counted(void **state)
{
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct jit_process p = {.pid = getpid()},
			   followed = {.pid = getpid(), .way = &jit_way_memory};
	struct rlimit before, none;
	uint64_t now = clock_monotonic_ns();
	int lowest = dup(dir_fd);

	(void)state;
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, false);
	assert_false(p.done);
	assert_int_equal(all.unseen, 0);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(p.done);
	assert_int_equal(all.unseen, 1);
	assert_int_equal(all.unseen_error, -EMFILE);
	/* When the time is over, some processes miss their last poll. */
	jit_process_note_missed_step(&all, &followed);
	assert_true(followed.broken);
	assert_non_null(strstr(followed.why, "the last read did not finish in time"));
	p = (struct jit_process){.pid = getpid()};
	jit_process_note_missed_step(&all, &p);
	assert_int_equal(all.unseen, 2);
	assert_int_equal(all.unseen_error, -ETIMEDOUT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_that_hang_share_one_time_limit),
		cmocka_unit_test(unwritable_names_are_reported),
		cmocka_unit_test(names_that_cannot_be_written_are_taken_in_no_other_way),
		cmocka_unit_test(methods_before_the_end_of_a_process_are_kept),
		cmocka_unit_test(unreadable_parts_are_counted),
		cmocka_unit_test(a_foreign_process_that_hangs_costs_no_names),
		cmocka_unit_test(a_late_process_is_retried_without_a_command),
		cmocka_unit_test(a_failed_write_concerns_one_program_of_a_pid),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
