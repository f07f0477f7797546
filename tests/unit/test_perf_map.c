#include "eventpipe/perf_map.h"

#include "base/clock.h"
#include "eventpipe/perf_map_undo.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#define SHORT_NS (300 * NS_PER_MS)
#define LONG_NS (20 * NS_PER_S)

static struct perf_map_error err;

/* In the fake runtime: its map, while that is on. */
static int fake_map = -1, fake_info = -1;

static void fake_path(char *buf, size_t cap, const char *kind)
{
	snprintf(buf, cap, "/tmp/%s-%d.map", kind, getpid());
}

static void fake_on(void)
{
	char path[64];

	fake_path(path, sizeof(path), "perf");
	fake_map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (write(fake_map, "0x1000 10 void [A] T::M()[Optimized]\n", 37) != 37)
		abort();
	fake_path(path, sizeof(path), "perfinfo");
	fake_info = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static void maps(int fd, const struct fake_request *request)
{
	if (request->command == IPC_ENABLE_PERF_MAP && request->len == 4 && request->payload[0] == 3) {
		fake_on();
	} else if (request->command == IPC_DISABLE_PERF_MAP) {
		close(fake_map);
		close(fake_info);
	}
	fake_hresult(fd, 0);
}

static void maps_slowly(int fd, const struct fake_request *request)
{
	if (request->command == IPC_ENABLE_PERF_MAP)
		usleep(600000);
	maps(fd, request);
}

static void on_already(int fd, const struct fake_request *request)
{
	if (request->command == IPC_STOP_TRACING)
		fake_on(); /* the user's own switch */
	fake_hresult(fd, request->command == IPC_STOP_TRACING ? 0 : IPC_E_FAIL);
}

static void only_claims(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, 0);
}

static void too_old(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
}

static void has_none(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_NOT_SUPPORTED);
}

static void claims_and_never_disables(int fd, const struct fake_request *request)
{
	fake_hresult(fd, request->command == IPC_DISABLE_PERF_MAP ? IPC_E_FAIL : 0);
}

static void never_disables(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP)
		pause();
	maps(fd, request);
}

/* As one that is killed just then: its memory goes before the connection does. */
static void ends_when_asked_to_disable(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP)
		_exit(0);
	maps(fd, request);
}

/* As one that returns from Main. */
static void ends_soon_after_its_port(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP) {
		shutdown(fd, SHUT_RDWR);
		usleep(50000);
		_exit(0);
	}
	maps(fd, request);
}

static void closes_when_asked_to_disable(int fd, const struct fake_request *request)
{
	if (request->command != IPC_DISABLE_PERF_MAP)
		maps(fd, request);
}

/* Whether /tmp/KIND-PIDEND is there. */
static bool there(const struct fake_runtime *fake, const char *kind, const char *end)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/tmp/%s-%d%s", kind, fake->pid, end);
	return !lstat(path, &st);
}

static bool is_on(const struct fake_runtime *fake)
{
	char name[PERF_MAP_NAME_BYTES];
	struct target_file file;
	int fd, r;

	perf_map_name(fake->pid, name);
	r = target_writes(fake->pid, name, &fd, &file);
	if (!r)
		close(fd);
	return !r;
}

static void assert_nothing_left(const struct fake_runtime *fake)
{
	assert_false(there(fake, "perf", ".map"));
	assert_false(there(fake, "perfinfo", ".map"));
	assert_false(there(fake, "perf", ".map.profcpu"));
}

static int begin(const struct fake_runtime *fake, uint64_t limit_ns, struct perf_map **m)
{
	*m = NULL;
	return perf_map_begin(o, fake->pid, clock_monotonic_ns() + limit_ns, m, &err);
}

static int end(struct perf_map *m)
{
	return perf_map_end(o, m, clock_monotonic_ns() + LONG_NS, &err);
}

/* Counts are of the whole /tmp, where others may leave something too. */
static struct perf_map_swept sweep(const struct fake_runtime *fake)
{
	struct perf_map_swept swept = {0};

	assert_int_equal(perf_map_sweep(o, fake->pid, clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	return swept;
}

static void a_map_of_ours_goes_with_all_that_belongs_to_it(void **state)
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
	/* Whoever looks for what was left sees that it is in use. */
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
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0, clock_monotonic_ns() + LONG_NS, NULL), 0);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_USERS);
	assert_false(there(&fake, "perf", ".map.profcpu"));
	assert_int_equal(end(m), 0);
	assert_true(is_on(&fake));
	assert_true(there(&fake, "perf", ".map"));
	/* Also one whose file was removed under it. */
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

static void a_file_that_nobody_writes_is_not_touched(void **state)
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
	assert_true(there(&fake, "perf", ".map"));
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
		assert_true(there(&fake, "perf", ".map"));
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

static void what_a_killed_one_left_is_undone_by_the_next(void **state)
{
	struct fake_runtime fake = fake_start(maps);

	(void)state;
	killed_profcpu(&fake, 0);
	assert_true(is_on(&fake));
	assert_true(there(&fake, "perf", ".map.profcpu"));
	sweep(&fake);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	/* Or taken over, if the next one wants the same. */
	struct perf_map *m;

	killed_profcpu(&fake, 0);
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_OURS);
	assert_int_equal(end(m), 0);
	assert_false(is_on(&fake));
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

static void one_that_was_killed_while_it_switched_it_on_leaves_nothing_either(void **state)
{
	struct fake_runtime fake = fake_start(maps_slowly);
	struct perf_map *m;

	(void)state;
	killed_profcpu(&fake, 300);
	assert_true(there(&fake, "perf", ".map.profcpu"));
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

static void the_files_of_a_target_that_ended_are_removed(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;
	struct perf_map_swept swept;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	fake_stop(&fake);
	assert_int_equal(end(m), 0);
	assert_nothing_left(&fake);
	fake = fake_start(maps);
	killed_profcpu(&fake, 0);
	fake_stop(&fake);
	assert_true(there(&fake, "perf", ".map"));
	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_true(swept.removed >= 1);
	assert_nothing_left(&fake);
}

/* Not waited for by its parent, so that its PID and start time are there. */
static void one_that_ends_when_it_is_asked_leaves_nothing(void **state)
{
	fake_serve_fn *const serve[] = {ends_when_asked_to_disable, ends_soon_after_its_port};

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

static void one_that_lives_without_an_answer_keeps_its_map(void **state)
{
	struct fake_runtime fake = fake_start(closes_when_asked_to_disable);
	struct perf_map *m;
	struct perf_map_swept swept;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(end(m), -EBADMSG);
	assert_true(is_on(&fake));
	assert_true(there(&fake, "perf", ".map"));
	assert_true(there(&fake, "perf", ".map.profcpu"));
	fake_stop(&fake);
	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_nothing_left(&fake);
}

static void a_runtime_that_does_not_do_it_is_said_to(void **state)
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

static void one_that_takes_too_long_is_undone_later(void **state)
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
	assert_true(there(&fake, "perf", ".map.profcpu"));
	fake_stop(&fake);
	struct perf_map_swept swept;

	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
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

		if (ftruncate(fd, 4096) || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED ||
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

/* Puts something in the place of the mark of a fake that has no map on, and has it swept. */
static void assert_not_believed(const struct fake_runtime *fake, const char *mark, const char *victim)
{
	struct stat st;

	sweep(fake);
	assert_int_equal(lstat(victim, &st), 0);
	unlink(mark);
}

static void marks_of_strangers_remove_nothing(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	char mark[64], victim[64], text[PERF_MAP_MARK_MAX];
	struct perf_map_mark forged = {.ns_pid = fake.pid, .pid_ns = perf_map_own_pid_ns(), .pid = fake.pid};
	struct stat st;
	uint64_t start;

	(void)state;
	snprintf(mark, sizeof(mark), "/tmp/perf-%d.map.profcpu", fake.pid);
	snprintf(victim, sizeof(victim), "/tmp/perf-%d.map", fake.pid);
	int fd = open(victim, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(proc_start_ticks(fake.pid, &start), 0);
	close(fd);
	/* A link to a mark, and text that is none. */
	assert_int_equal(symlink("/etc/passwd", mark), 0);
	assert_not_believed(&fake, mark, victim);
	fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, "perf", 4), 4);
	close(fd);
	assert_not_believed(&fake, mark, victim);
	/* Another file of that name than the one that was marked. */
	forged.start_ticks = start;
	forged.map = (struct target_file){.dev = st.st_dev, .ino = st.st_ino + 1};
	fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
	size_t len = perf_map_mark_text(&forged, text, sizeof(text));

	assert_int_equal(write(fd, text, len), len);
	close(fd);
	(void)sweep(&fake);
	assert_int_equal(lstat(victim, &st), 0);
	/* The right file in the mark of a user who is neither us nor the target's. */
	if (!geteuid()) {
		forged.map.ino = st.st_ino;
		len = perf_map_mark_text(&forged, text, sizeof(text));
		fd = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
		assert_int_equal(write(fd, text, len), len);
		assert_int_equal(fchown(fd, 4711, 4711), 0);
		close(fd);
		assert_not_believed(&fake, mark, victim);
	}
	unlink(victim);
	assert_nothing_left(&fake);
	fake_stop(&fake);
}

/* A process of a user who is not us; with a directory of its own for maps unless that is NULL. */
static pid_t start_other(uid_t uid, const char *dir)
{
	pid_t pid = fork();
	char comm[64] = "";

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((dir && setenv("DOTNET_PerfMapJitDumpPath", dir, 1)) || setgid(uid) || setuid(uid))
			_exit(1);
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	for (int i = 0; i < 500 && strcmp(comm, "sleep") != 0; i++) {
		struct proc_status status;

		usleep(10000);
		if (!proc_status(pid, &status))
			snprintf(comm, sizeof(comm), "%s", status.comm);
	}
	assert_string_equal(comm, "sleep");
	return pid;
}

static void write_mark(const char *path, const struct perf_map_mark *mark, uid_t uid)
{
	char text[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(mark, text, sizeof(text));
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchown(fd, uid, uid), 0);
	close(fd);
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

	assert_int_equal(proc_each_number("/proc/self/fd", count_one, &n), 0);
	return n;
}

/* Each container has a PID 1, and the opener holds the root of what it is asked of. */
static void processes_that_write_no_map_are_not_held(void **state)
{
	struct perf_map_mark mark = {.ns_pid = 1, .start_ticks = UINT64_MAX, .pid_ns = perf_map_own_pid_ns(), .pid = 1};
	char dir[] = "/tmp/perf_map.XXXXXX", path[64];
	struct perf_map_swept swept = {0};
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
		skip(); /* it may make no namespaces */
	}
	pid_t own = start_other(0, dir);

	snprintf(path, sizeof(path), "%s/perf-1.map.profcpu", dir);
	write_mark(path, &mark, 0);
	assert_int_equal(opener_hold(o, own), 0);
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

/* What the kernel would not let it do itself, root does not do for it. */
static void a_user_has_nothing_removed_or_made_but_its_own(void **state)
{
	enum { OTHER = 4711, NOBODYS = 2147480000 };
	struct perf_map_mark mark = {.ns_pid = NOBODYS, .start_ticks = 1, .pid_ns = perf_map_own_pid_ns(), .pid = NOBODYS};
	char mark_path[64], map_path[64], dir[] = "/tmp/perf_map.XXXXXX";
	struct perf_map_swept swept = {0};
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
	/* Its own goes, but not once the time is over. */
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
	/* A directory where it may not write, though we may. */
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	pid = start_other(OTHER, dir);
	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err), -EACCES);
	assert_int_equal(chown(dir, OTHER, OTHER), 0);
	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err), -ENOENT);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(rmdir(dir), 0);
}

static struct target_file file_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
}

/* The process of the mark has ended, and another one has its number and writes the very file, as runtimes overwrite what is there. */
static void a_map_that_a_later_process_writes_is_its_users(void **state)
{
	struct fake_runtime fake = fake_start(on_already);
	struct perf_map_mark mark = {.ns_pid = fake.pid, .start_ticks = 1, .pid_ns = perf_map_own_pid_ns(), .pid = fake.pid};
	char mark_path[64], path[64];
	struct perf_map *m;

	(void)state;
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0, clock_monotonic_ns() + LONG_NS, NULL), 0);
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
	assert_true(there(&fake, "perf", ".map"));
	assert_true(there(&fake, "perfinfo", ".map"));
	assert_false(there(&fake, "perf", ".map.profcpu"));
	/* Nobody writes it any more. */
	fake_stop(&fake);
	write_mark(mark_path, &mark, geteuid());
	struct perf_map_swept swept;

	assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
	assert_nothing_left(&fake);
}

/* An exec leaves PID and start time as they were. */
static void the_map_of_a_program_that_was_executed_is_its_users(void **state)
{
	struct fake_runtime fake = fake_start(maps);
	struct perf_map *m;

	(void)state;
	assert_int_equal(begin(&fake, LONG_NS, &m), 0);
	assert_int_equal(perf_map_way(m), PERF_MAP_OURS);
	perf_map_is_replaced(m);
	assert_int_equal(end(m), 0);
	assert_true(is_on(&fake));
	assert_true(there(&fake, "perf", ".map"));
	assert_true(there(&fake, "perfinfo", ".map"));
	assert_false(there(&fake, "perf", ".map.profcpu"));
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

static void words_tell_the_first_cause(void **state)
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

	assert_int_equal(perf_map_begin(o, pid, clock_monotonic_ns() + SHORT_NS, &m, &err), -ENOTSUP);
	assert_non_null(strstr(err.text, "no absolute path"));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Root's mark too: of a process that has its maps elsewhere, and with another number than its name has. */
static void a_mark_is_about_its_own_directory_and_number(void **state)
{
	enum { NOBODYS = 2147480001 };
	struct fake_runtime fake = fake_start(on_already);
	char mark_path[64], map_path[64], path[64], dir[] = "/tmp/perf_map.XXXXXX";
	struct perf_map_mark mark = {.pid_ns = perf_map_own_pid_ns()};
	struct perf_map *m;

	(void)state;
	assert_int_equal(port_command(o, fake.pid, IPC_STOP_TRACING, NULL, 0, clock_monotonic_ns() + LONG_NS, NULL), 0);
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
		struct perf_map_swept swept;

		assert_int_equal(perf_map_sweep(o, getpid(), clock_monotonic_ns() + LONG_NS, NULL, &swept), 0);
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
	struct perf_map_mark m = {.ns_pid = 7, .start_ticks = UINT64_MAX, .pid_ns = 4026531836, .pid = INT32_MAX,
				  .map = {.dev = 66, .ino = UINT64_MAX}, .info = {.dev = 1, .ino = 2}}, back;
	char text[PERF_MAP_MARK_MAX], again[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(&m, text, sizeof(text));

	(void)state;
	assert_true(len > 0);
	assert_int_equal(perf_map_mark_parse(text, len, &back), 0);
	assert_true(back.start_ticks == UINT64_MAX && back.map.ino == UINT64_MAX && back.info.dev == 1 && back.info.ino == 2);
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
		cmocka_unit_test(a_map_of_ours_goes_with_all_that_belongs_to_it),
		cmocka_unit_test(a_map_that_was_on_stays_on),
		cmocka_unit_test(a_file_that_nobody_writes_is_not_touched),
		cmocka_unit_test(the_last_of_two_switches_it_off),
		cmocka_unit_test(what_a_killed_one_left_is_undone_by_the_next),
		cmocka_unit_test(one_that_was_killed_while_it_switched_it_on_leaves_nothing_either),
		cmocka_unit_test(the_files_of_a_target_that_ended_are_removed),
		cmocka_unit_test(one_that_ends_when_it_is_asked_leaves_nothing),
		cmocka_unit_test(one_that_lives_without_an_answer_keeps_its_map),
		cmocka_unit_test(a_runtime_that_does_not_do_it_is_said_to),
		cmocka_unit_test(processes_that_write_no_map_are_not_held),
		cmocka_unit_test(one_that_takes_too_long_is_undone_later),
		cmocka_unit_test(a_jitdump_is_not_ended),
		cmocka_unit_test(marks_of_strangers_remove_nothing),
		cmocka_unit_test(a_user_has_nothing_removed_or_made_but_its_own),
		cmocka_unit_test(a_map_that_a_later_process_writes_is_its_users),
		cmocka_unit_test(the_map_of_a_program_that_was_executed_is_its_users),
		cmocka_unit_test(words_tell_the_first_cause),
		cmocka_unit_test(a_mark_is_about_its_own_directory_and_number),
		cmocka_unit_test(marks_are_read_as_written),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
