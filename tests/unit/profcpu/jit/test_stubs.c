#include "profcpu/jit/stubs.h"

#include "base/clock.h"
#include "dotnet/coreclr/barriers.h"
#include "tests/unit/under_valgrind.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MAPPINGS 500
#define PAGE 4096

static void *mapped[MAPPINGS];
extern uint64_t g_dacTable;
uint64_t g_dacTable =
	1; /* symbol that identifies a runtime; the linker flag -rdynamic exports it */

/* A single-file program maps precompiled code like this, in front of the runtime. */
static int map_another_image(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *at = mmap((void *)(uintptr_t)0x10000000, PAGE, PROT_READ | PROT_EXEC,
			MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, 0);

	close(fd);
	return at == MAP_FAILED ? -1 : 0;
}

/* A hostile process can make these to keep us busy: each looks like the copy of the write
 * barriers. */
static int set_up(void **state)
{
	int fd = memfd_create("doublemapper", MFD_CLOEXEC);

	(void)state;
	if (map_another_image())
		return -1;
	if (fd < 0 || ftruncate(fd, PAGE) ||
	    pwrite(fd, (const void *)(uintptr_t)jit_stubs_search, 128, 0) != 128)
		return -1;
	for (int i = 0; i < MAPPINGS; i++) {
		mapped[i] = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		if (mapped[i] == MAP_FAILED)
			return -1;
	}
	close(fd);
	return 0;
}

static struct jit_methods_writer *new_writer(char *dir)
{
	struct jit_methods_writer *out = NULL;
	char name[64];

	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), NULL, &out), 0);
	snprintf(name, sizeof(name), "%d.methods", getpid());
	assert_int_equal(unlinkat(dir_fd, name, 0), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
	return out;
}

static size_t count_barriers(const struct jit_stubs *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->found.len; i++)
		n += !strcmp(s->found.v[i].name, CLR_BARRIERS_NAME);
	return n;
}

static void there_is_one_copy_of_the_barriers(void **state)
{
	char dir[] = "/tmp/jit_stubs.XXXXXX";
	struct jit_target t = {.pid = getpid(), .until_ns = UINT64_MAX};
	struct jit_known known = {.over = false};
	struct jit_stubs s = {.searched_ns = 0};

	(void)state;
	t.out = new_writer(dir);
	assert_int_equal(jit_stubs_search(&s, &t, &known, clock_monotonic_ns()), 0);
	assert_int_equal(count_barriers(&s), 1);
	jit_methods_writer_close(t.out);
	jit_stubs_free(&s);
}

static void a_search_without_time_reports_that(void **state)
{
	char dir[] = "/tmp/jit_stubs.XXXXXX", why[JIT_WAY_WHY_BYTES] = "first";
	struct jit_target t = {.pid = getpid(), .until_ns = clock_monotonic_ns()};
	struct jit_known known = {.over = false};
	struct jit_stubs s = {.searched_ns = 0};

	(void)state;
	t.out = new_writer(dir);
	jit_stubs_report(&s, &known, why);
	assert_string_equal(why, "first");
	assert_int_equal(jit_stubs_search(&s, &t, &known, clock_monotonic_ns()), 0);
	assert_int_equal(s.found.len, 0);
	assert_true(s.cut);
	jit_stubs_report(&s, &known, why);
	assert_non_null(strstr(why, "first; not all of its memory was searched"));
	jit_methods_writer_close(t.out);
	jit_stubs_free(&s);
}

/* A child whose memory is closed to us: it is not dumpable, and root is another user meanwhile. */
static pid_t start_denied(void)
{
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0), 0);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	assert_int_equal(prctl(PR_SET_DUMPABLE, 1), 0);
	assert_true(geteuid() || !seteuid(4711));
	return pid;
}

static void stop_denied(pid_t pid)
{
	assert_int_equal(seteuid(getuid()), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void a_failed_search_reports_its_error_and_counts(void **state)
{
	char dir[] = "/tmp/jit_stubs.XXXXXX", why[JIT_WAY_WHY_BYTES] = "first",
	     expected[JIT_WAY_WHY_BYTES];
	struct jit_target t = {.pid = getpid(), .until_ns = UINT64_MAX};
	struct jit_known known = {.over = false};
	struct jit_stubs s = {.tried = false};
	uint64_t now = clock_monotonic_ns();

	(void)state;
	if (under_valgrind())
		skip(); /* this process has too much memory to search then */
	t.out = new_writer(dir);
	t.pid = start_denied();
	int r = jit_stubs_search(&s, &t, &known, now);

	stop_denied(t.pid);
	assert_true(r == -EACCES || r == -EPERM);
	assert_true(s.tried);
	assert_true(!s.searched_ns);
	jit_stubs_report(&s, &known, why);
	snprintf(expected, sizeof(expected), "first; the runtime's stubs could not be searched: %s",
		 strerror(-r));
	assert_string_equal(why, expected);
	/* The next search finds the stubs. */
	t.pid = getpid();
	assert_int_equal(jit_stubs_search(&s, &t, &known, now), 0);
	assert_true(s.searched_ns == now);
	why[0] = 0;
	jit_stubs_report(&s, &known, why);
	assert_string_equal(why, "");
	jit_methods_writer_close(t.out);
	jit_stubs_free(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_is_one_copy_of_the_barriers),
		cmocka_unit_test(a_search_without_time_reports_that),
		cmocka_unit_test(a_failed_search_reports_its_error_and_counts),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
