/* profcpu/post/outdir: removal of directories that stayed empty. */
#include "profcpu/post/outdir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[] = "/tmp/profcpu-test-XXXXXX";

/* Works in a new directory, which has the directory `work`. */
static int set_up(void **state)
{
	(void)state;
	return !mkdtemp(top) || chdir(top) || mkdir("work", 0700) || mkdir("work/there", 0700);
}

/* Fails if a test left something. */
static int tear_down(void **state)
{
	(void)state;
	return rmdir("work/there") || rmdir("work") || chdir("/") || rmdir(top);
}

static void remove_empty(struct outdir *dir)
{
	post_outdir_remove_empty(dir);
	post_outdir_release(dir);
}

static bool exists(const char *path)
{
	return !access(path, F_OK);
}

static void an_empty_directory_is_removed_by_its_name(void **state)
{
	static const char *const paths[] = {"work/out", "work/out/", "work/there/../out//"};
	struct outdir dir;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		assert_int_equal(post_outdir_make(paths[i], &dir), 0);
		assert_true(exists("work/out"));
		remove_empty(&dir);
		assert_false(exists("work/out"));
	}
	assert_int_equal(post_outdir_make(NULL, &dir), 0);
	assert_true(exists(dir.path));
	remove_empty(&dir);
	assert_false(exists("profilings"));
}

static void a_directory_with_a_file_is_kept(void **state)
{
	struct outdir dir;

	(void)state;
	assert_int_equal(post_outdir_make("work/out", &dir), 0);
	assert_int_equal(mkdir("work/out/full", 0700), 0);
	remove_empty(&dir);
	assert_int_equal(rmdir("work/out/full") || rmdir("work/out"), 0);
}

/* The path leads elsewhere by then. Not the path but the directory counts. */
static void only_the_directory_itself_is_removed(void **state)
{
	struct outdir dir;

	(void)state;
	assert_int_equal(post_outdir_make("work/out", &dir), 0);
	assert_int_equal(rename("work", "moved") || mkdir("work", 0700) || mkdir("work/out", 0700),
			 0);
	remove_empty(&dir);
	assert_true(exists("work/out"));
	assert_false(exists("moved/out"));
	assert_int_equal(rmdir("work/out") || rmdir("work") || rename("moved", "work"), 0);

	assert_int_equal(post_outdir_make("work/out", &dir), 0);
	assert_int_equal(rename("work/out", "work/other") || mkdir("work/out", 0700), 0);
	remove_empty(&dir);
	assert_true(exists("work/out") && exists("work/other"));
	assert_int_equal(rmdir("work/out") || rmdir("work/other"), 0);

	assert_int_equal(symlink("there", "work/link"), 0);
	assert_int_equal(post_outdir_make("work/link", &dir), 0);
	remove_empty(&dir);
	assert_true(exists("work/link") && exists("work/there"));
	assert_int_equal(unlink("work/link"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_directory_is_removed_by_its_name),
		cmocka_unit_test(a_directory_with_a_file_is_kept),
		cmocka_unit_test(only_the_directory_itself_is_removed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
