/* Files in our root, for processes of another one. */
#include "base/cleanup.h"
#include "container/opener.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT ((uint64_t)1 << 20)
#define DEBUG "usr/lib/debug/"
#define BY_ID DEBUG ".build-id/ab/cd.debug"

static char dir[] = "/tmp/profcpu-links-XXXXXX";

/* A root that is not this process's, with links also in the place of this process's perf map. */
static int setup(void **state)
{
	char command[512];

	(void)state;
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	snprintf(command, sizeof(command),
		 "umask 022 && cd %s && mkdir -p tmp usr/lib/debug/.build-id/ab && "
		 "echo text | tee secret tmp/file " DEBUG "public >" DEBUG "private && "
		 "chmod 600 " DEBUG "private && ln -s public " DEBUG "link && "
		 "ln -s /secret tmp/perf-%d.map && ln -s ../secret tmp/link && "
		 "ln -s usr/lib top && ln -s ../../../../../secret " BY_ID,
		 dir, getpid());
	return system(command);
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static struct opener *opener_in(const char *root, bool by_steps)
{
	AUTO_CLOSE int fd = open(root, O_PATH | O_CLOEXEC);
	struct opener *o;

	assert_int_equal(opener_new_in(fd, &o), 0);
	if (by_steps)
		opener_without_openat2(o);
	return o;
}

/* Opens a file of the opener's own root, as a debug file and as an image. */
static int open_own(struct opener *o, pid_t pid, bool no_links, const char *path)
{
	struct opener_place place = {.opener = o, .pid = pid, .own = true, .no_links = no_links};
	AUTO_CLOSE int fd = -1;
	AUTO_CLOSE int image = -1;
	int r = opener_place_open(&place, path, &fd);

	if (pid)
		assert_int_equal(opener_own_file(o, pid, getuid(), path, LIMIT, &image), r);
	return r;
}

/* The rights of this process, perhaps root's, would open all of them. */
static void a_process_of_another_root_has_public_debug_files_only(void **state)
{
	static const struct {
		const char *path;
		int error;
	} cases[] = {
		{"/" DEBUG "public", 0},
		{"/" BY_ID, 0},
		{"/" DEBUG "private", -EACCES},
		{"/" DEBUG "link", -ELOOP},
		{"/" DEBUG "none", -ENOENT},
		{"/secret", -ENOENT},
		{"/tmp/file", -ENOENT},
		{"/tmp/link", -ENOENT},
		{"/top/debug/public", -ENOENT},
		{"/" DEBUG "../../../tmp/file", -ENOENT},
		{"/" DEBUG ".build-id/../link", -ENOENT},
		{"/" DEBUG ".build-id/../../../../tmp/link", -ENOENT},
	};

	(void)state;
	for (int by_steps = 0; by_steps < 2; by_steps++) {
		struct opener *o = opener_in(dir, by_steps);
		int fd = -1;

		assert_int_equal(opener_pin(o, getpid()), 0);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			int r = open_own(o, getpid(), false, cases[i].path);

			if (r != cases[i].error)
				fail_msg("%s: %d", cases[i].path, r);
		}
		assert_int_equal(opener_perfmap(o, getpid(), LIMIT, &fd), -ENOENT);
		opener_free(o);
	}
}

/* As after its end */
static void a_process_that_had_another_root_has_no_more(void **state)
{
	struct opener *o = opener_in(dir, false);
	struct opener_place place = {.opener = o, .own = true, .other_root = true};
	int fd = -1;

	(void)state;
	assert_int_equal(opener_place_open(&place, "/secret", &fd), -ENOENT);
	assert_int_equal(opener_place_open(&place, "/" DEBUG "private", &fd), -EACCES);
	assert_int_equal(opener_place_open(&place, "/" BY_ID, &fd), 0);
	close(fd);
	opener_free(o);
}

static void links_are_followed_for_processes_of_our_root_only(void **state)
{
	struct opener *o = opener_in("/", false);
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/tmp/link", dir);
	assert_int_equal(opener_pin(o, getpid()), 0);
	assert_int_equal(open_own(o, getpid(), true, path), 0);
	/* A process that is not known. */
	assert_int_equal(open_own(o, 0, false, path), 0);
	assert_int_equal(open_own(o, 0, true, path), -ELOOP);
	opener_free(o);
}

/* Appends words, and returns the error of opening the path. */
static int open_with(struct opener *o, int n, const char *word)
{
	char path[4096];
	size_t len = (size_t)snprintf(path, sizeof(path), "%s", dir);

	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(path + len, sizeof(path) - len, "/%s", word);
	snprintf(path + len, sizeof(path) - len, "/tmp/file");
	return open_own(o, 0, true, path);
}

/* Each ".." walks from the root again. */
static void long_walks_end(void **state)
{
	struct opener *o = opener_in("/", false);

	(void)state;
	assert_int_equal(open_with(o, 1500, "."), 0);
	assert_int_equal(open_with(o, 20, "tmp/.."), 0);
	assert_int_equal(open_with(o, 500, "tmp/.."), -ELOOP);
	/* All walks share the further steps. */
	assert_int_equal(open_with(o, 100, "tmp/.."), 0);
	for (int i = 0; i < 80; i++)
		(void)open_with(o, 500, "tmp/..");
	assert_int_equal(open_with(o, 100, "tmp/.."), -ELOOP);
	assert_int_equal(open_with(o, 20, "tmp/.."), 0);
	opener_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_of_another_root_has_public_debug_files_only),
		cmocka_unit_test(a_process_that_had_another_root_has_no_more),
		cmocka_unit_test(links_are_followed_for_processes_of_our_root_only),
		cmocka_unit_test(long_walks_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
