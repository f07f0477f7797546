/* A fake runtime that writes perf maps, other users' processes, and marks. Used by tests of
 * eventpipe/perf_map and its sweep. */
#ifndef TESTS_UNIT_FAKE_PERF_MAP_H
#define TESTS_UNIT_FAKE_PERF_MAP_H

#include "dotnet/eventpipe/perf_map.h"

#include "base/clock.h"
#include "dotnet/eventpipe/perf_map_undo.h"
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

/* In the fake runtime: writes its map while that is on. */
static int fake_map = -1, fake_info = -1;

static inline void fake_path(char *buf, size_t cap, const char *kind)
{
	snprintf(buf, cap, "/tmp/%s-%d.map", kind, getpid());
}

static inline void fake_on(void)
{
	char path[64];

	fake_path(path, sizeof(path), "perf");
	fake_map = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (write(fake_map, "0x1000 10 void [A] T::M()[Optimized]\n", 37) != 37)
		abort();
	fake_path(path, sizeof(path), "perfinfo");
	fake_info = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
}

static inline void maps(int fd, const struct fake_request *request)
{
	if (request->command == IPC_ENABLE_PERF_MAP && request->len == 4 &&
	    request->payload[0] == 3) {
		fake_on();
	} else if (request->command == IPC_DISABLE_PERF_MAP) {
		close(fake_map);
		close(fake_info);
	}
	fake_hresult(fd, 0);
}

static inline void maps_slowly(int fd, const struct fake_request *request)
{
	if (request->command == IPC_ENABLE_PERF_MAP)
		usleep(600000);
	maps(fd, request);
}

static inline void on_already(int fd, const struct fake_request *request)
{
	if (request->command == IPC_STOP_TRACING)
		fake_on(); /* the user's own switch */
	fake_hresult(fd, request->command == IPC_STOP_TRACING ? 0 : IPC_E_FAIL);
}

static inline void only_claims(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, 0);
}

static inline void too_old(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
}

static inline void has_none(int fd, const struct fake_request *request)
{
	(void)request;
	fake_hresult(fd, IPC_E_NOT_SUPPORTED);
}

static inline void claims_and_never_disables(int fd, const struct fake_request *request)
{
	fake_hresult(fd, request->command == IPC_DISABLE_PERF_MAP ? IPC_E_FAIL : 0);
}

static inline void never_disables(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP)
		pause();
	maps(fd, request);
}

/* Ends like a killed process: its memory goes before its connection. */
static inline void ends_on_disable(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP)
		_exit(0);
	maps(fd, request);
}

/* Ends like a process that returns from Main. */
static inline void ends_soon_after_its_port(int fd, const struct fake_request *request)
{
	if (request->command == IPC_DISABLE_PERF_MAP) {
		shutdown(fd, SHUT_RDWR);
		usleep(50000);
		_exit(0);
	}
	maps(fd, request);
}

static inline void closes_on_disable(int fd, const struct fake_request *request)
{
	if (request->command != IPC_DISABLE_PERF_MAP)
		maps(fd, request);
}

/* Whether /tmp/KIND-PIDEND exists. */
static inline bool tmp_has(const struct fake_runtime *fake, const char *kind, const char *end)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/tmp/%s-%d%s", kind, fake->pid, end);
	return !lstat(path, &st);
}

static inline bool is_on(const struct fake_runtime *fake)
{
	char name[PERF_MAP_NAME_BYTES];
	struct target_file file;
	int fd, r;

	perf_map_name(fake->pid, name);
	r = target_dir_find_written_file(fake->pid, name, &fd, &file);
	if (!r)
		close(fd);
	return !r;
}

static inline void assert_nothing_left(const struct fake_runtime *fake)
{
	assert_false(tmp_has(fake, "perf", ".map"));
	assert_false(tmp_has(fake, "perfinfo", ".map"));
	assert_false(tmp_has(fake, "perf", ".map.profcpu"));
}

static inline int begin(const struct fake_runtime *fake, uint64_t limit_ns, struct perf_map **m)
{
	*m = NULL;
	return perf_map_begin(o, fake->pid, clock_monotonic_ns() + limit_ns, m, &err);
}

static inline int end(struct perf_map *m)
{
	return perf_map_end(o, m, clock_monotonic_ns() + LONG_NS, &err);
}

/* Counts cover the whole /tmp, which others may use too. */
static inline struct perf_map_sweep_counts sweep(const struct fake_runtime *fake)
{
	struct perf_map_sweep_counts swept = {0};

	assert_int_equal(perf_map_sweep(o, fake->pid, clock_monotonic_ns() + LONG_NS, NULL, &swept),
			 0);
	return swept;
}

/* A process of another user; dir: its own directory for maps, or NULL. */
static inline pid_t start_other(uid_t uid, const char *dir)
{
	pid_t pid = fork();
	char comm[64] = "";

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((dir && setenv("DOTNET_PerfMapJitDumpPath", dir, 1)) || setgid(uid) ||
		    setuid(uid))
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

static inline void write_mark(const char *path, const struct perf_map_mark *mark, uid_t uid)
{
	char text[PERF_MAP_MARK_MAX];
	size_t len = perf_map_mark_text(mark, text, sizeof(text));
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	assert_int_equal(write(fd, text, len), len);
	assert_int_equal(fchown(fd, uid, uid), 0);
	close(fd);
}

static inline struct target_file file_of(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	return (struct target_file){.dev = st.st_dev, .ino = st.st_ino};
}

#endif
