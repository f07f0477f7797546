#include "base/cleanup.h"
#include "base/file.h"
#include "elf/debug_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define KEY "_.debug/elf-buildid-sym-0102030000000000000000000000000000000000/_.debug"

static char home[] = "/tmp/test_debug_cache.XXXXXX";
static const struct build_id short_id = {.bytes = {1, 2, 3}, .len = 3};

static void run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static int make_home(void **state)
{
	(void)state;
	strcpy(home, "/tmp/test_debug_cache.XXXXXX");
	return !mkdtemp(home) || setenv("HOME", home, 1) || unsetenv("XDG_CACHE_HOME") ||
	       unsetenv("DEBUGINFOD_CACHE_PATH");
}

static int remove_home(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", home);
	return system(command);
}

static struct debug_cache *opened(void)
{
	struct debug_cache *c = NULL;

	assert_int_equal(debug_cache_open(&c), 0);
	return c;
}

static void put(struct debug_cache *c, const char *key, const char *text)
{
	struct debug_cache_part part = {.fd = -1};

	assert_int_equal(debug_cache_begin(c, &part), 0);
	assert_int_equal(file_write_all(part.fd, text, strlen(text)), 0);
	assert_int_equal(debug_cache_commit(c, &part, key), 0);
	assert_int_equal(part.fd, -1);
}

static void assert_contains(int file, const char *text)
{
	AUTO_CLOSE int fd = file;
	AUTO_FREE char *data = NULL;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(file_read_fd(fd, 1000, &data, &len), 0);
	assert_string_equal(data, text);
}

static void the_cache_directory_follows_xdg(void **state)
{
	struct debug_cache *c = opened();
	char path[128];
	struct stat st;

	(void)state;
	snprintf(path, sizeof(path), "%s/.cache/profcpu/symbols", home);
	assert_string_equal(debug_cache_path(c), path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	debug_cache_free(c);
	snprintf(path, sizeof(path), "%s/other", home);
	setenv("XDG_CACHE_HOME", path, 1);
	c = opened();
	assert_int_equal(strncmp(debug_cache_path(c), path, strlen(path)), 0);
	debug_cache_free(c);
	/* A relative path is ignored. */
	setenv("XDG_CACHE_HOME", "other", 1);
	c = opened();
	assert_int_equal(strncmp(debug_cache_path(c), home, strlen(home)), 0);
	debug_cache_free(c);
}

static void cached_files_are_found_by_key_and_build_id(void **state)
{
	struct debug_cache *c = opened();
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(debug_cache_open_key(c, KEY), -ENOENT);
	assert_int_equal(debug_cache_open_build_id(DEBUG_CACHE_OWN, &short_id, path), -ENOENT);
	put(c, KEY, "one");
	assert_contains(debug_cache_open_key(c, KEY), "one");
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_OWN, &short_id, path), "one");
	assert_int_equal(strcmp(path + strlen(path) - strlen(KEY), KEY), 0);
	put(c, KEY, "two");
	assert_contains(debug_cache_open_key(c, KEY), "two");
	debug_cache_free(c);
}

static void caches_of_other_tools_are_searched(void **state)
{
	char path[PATH_MAX];

	(void)state;
	run("mkdir -p %s/.dotnet/symbolcache/%s && rmdir %s/.dotnet/symbolcache/%s && printf d "
	    ">%s/.dotnet/symbolcache/%s",
	    home, KEY, home, KEY, home, KEY);
	run("mkdir -p %s/.cache/debuginfod_client/010203 && printf i "
	    ">%s/.cache/debuginfod_client/010203/debuginfo",
	    home, home);
	run("mkdir -p %s/.debug/.build-id/01/0203 && printf p >%s/.debug/.build-id/01/0203/debug",
	    home, home);
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_DOTNET, &short_id, path), "d");
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_DEBUGINFOD, &short_id, path), "i");
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_PERF, &short_id, path), "p");
	run("mv %s/.cache/debuginfod_client %s/.debuginfod_client_cache", home, home);
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_DEBUGINFOD, &short_id, path), "i");
	run("mv %s/.debuginfod_client_cache %s/third", home, home);
	assert_int_equal(debug_cache_open_build_id(DEBUG_CACHE_DEBUGINFOD, &short_id, path),
			 -ENOENT);
	snprintf(path, sizeof(path), "%s/third", home);
	setenv("DEBUGINFOD_CACHE_PATH", path, 1);
	assert_contains(debug_cache_open_build_id(DEBUG_CACHE_DEBUGINFOD, &short_id, path), "i");
	/* A pipe in place of a file does not block. */
	run("rm %s/.debug/.build-id/01/0203/debug && mkfifo %s/.debug/.build-id/01/0203/debug",
	    home, home);
	assert_int_equal(debug_cache_open_build_id(DEBUG_CACHE_PERF, &short_id, path), -ENOENT);
}

static void an_aborted_replace_leaves_nothing(void **state)
{
	struct debug_cache *c = opened();
	struct debug_cache_part part = {.fd = -1};

	(void)state;
	assert_int_equal(debug_cache_begin(c, &part), 0);
	debug_cache_abort(c, &part);
	run("test -z \"$(ls %s/.cache/profcpu/symbols/.part)\"", home);
	/* Files of a killed process are removed after a day. */
	assert_int_equal(debug_cache_begin(c, &part), 0);
	close(part.fd);
	run("touch -d '25 hours ago' %s/.cache/profcpu/symbols/.part/*", home);
	debug_cache_free(c);
	c = opened();
	run("test -z \"$(ls %s/.cache/profcpu/symbols/.part)\"", home);
	debug_cache_free(c);
}

static void keys_cannot_leave_the_store(void **state)
{
	static const char *const bad[] = {"",        "../x",    "a/../../x", "/x",   "a//b",
					  ".part/x", "a/b/c/d", "a/",        "a/./b"};
	struct debug_cache *c = opened();

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct debug_cache_part part = {.fd = -1};

		assert_int_equal(debug_cache_begin(c, &part), 0);
		assert_int_equal(debug_cache_commit(c, &part, bad[i]), -EINVAL);
	}
	/* Links in the way do no harm either. */
	struct debug_cache_part part = {.fd = -1};

	run("ln -s /tmp %s/.cache/profcpu/symbols/link", home);
	assert_int_equal(debug_cache_begin(c, &part), 0);
	assert_int_equal(debug_cache_commit(c, &part, "link/x"), -EPERM);
	debug_cache_free(c);
}

static void a_miss_on_a_server_is_cached_for_a_time(void **state)
{
	struct debug_cache *c = opened();

	(void)state;
	assert_false(debug_cache_has_failed(c, "http://a", KEY));
	debug_cache_note_failure(c, "http://a", KEY);
	assert_true(debug_cache_has_failed(c, "http://a", KEY));
	assert_false(debug_cache_has_failed(c, "http://b", KEY));
	assert_false(debug_cache_has_failed(c, "http://a", "x"));
	assert_false(debug_cache_has_failed(c, "http://a", NULL));
	debug_cache_note_failure(c, "http://me:secret@a", KEY);
	assert_true(debug_cache_has_failed(c, "http://me:secret@a", KEY));
	run("test -z \"$(grep -rl secret %s/.cache/profcpu/symbols/.missing)\"", home);
	debug_cache_clear_failure(c, "http://me:secret@a", KEY);
	/* A file of another key with the same name. */
	run("for f in %s/.cache/profcpu/symbols/.missing/*; do cp $f $f.x; echo 'http://a other' "
	    ">$f; done",
	    home);
	assert_false(debug_cache_has_failed(c, "http://a", KEY));
	run("for f in %s/.cache/profcpu/symbols/.missing/*.x; do mv $f ${f%%.x}; done", home);
	assert_true(debug_cache_has_failed(c, "http://a", KEY));
	run("touch -d '25 hours ago' %s/.cache/profcpu/symbols/.missing/*", home);
	assert_false(debug_cache_has_failed(c, "http://a", KEY));
	/* It is not kept for longer either. */
	debug_cache_free(c);
	c = opened();
	run("test -z \"$(ls %s/.cache/profcpu/symbols/.missing)\"", home);
	debug_cache_note_failure(c, "http://a", KEY);
	assert_true(debug_cache_has_failed(c, "http://a", KEY));
	debug_cache_clear_failure(c, "http://a", KEY);
	assert_false(debug_cache_has_failed(c, "http://a", KEY));
	debug_cache_note_failure(c, "http://a", NULL);
	assert_true(debug_cache_has_failed(c, "http://a", NULL));
	run("touch -d '16 minutes ago' %s/.cache/profcpu/symbols/.down/*", home);
	assert_false(debug_cache_has_failed(c, "http://a", NULL));
	debug_cache_free(c);
}

static void a_directory_of_another_user_is_not_used(void **state)
{
	struct debug_cache *c = NULL;

	(void)state;
	run("mkdir -p %s/.cache %s/theirs && ln -s %s/theirs %s/.cache/profcpu", home, home, home,
	    home);
	assert_int_equal(debug_cache_open(&c), -EPERM);
	run("rm %s/.cache/profcpu && mkdir %s/.cache/profcpu && chmod 0777 %s/.cache/profcpu", home,
	    home, home);
	assert_int_equal(debug_cache_open(&c), -EPERM);
}

static void root_does_not_write_into_another_home(void **state)
{
	struct debug_cache *c = NULL;

	(void)state;
	if (geteuid()) {
		print_message("only root has another's home to spare\n");
		return;
	}
	assert_int_equal(chown(home, 1000, 1000), 0);
	assert_int_equal(debug_cache_open(&c), 0);
	assert_int_not_equal(strncmp(debug_cache_path(c), home, strlen(home)), 0);
	run("test -z \"$(ls -A %s)\"", home);
	debug_cache_free(c);
}

struct found {
	int files;
	uint64_t bytes;
};

static int count(void *ctx, const char *key, uint64_t bytes)
{
	struct found *f = ctx;

	assert_true(!strcmp(key, KEY) || !strcmp(key, "a.pdb/1/a.pdb"));
	f->files++;
	f->bytes += bytes;
	return 0;
}

static void all_files_are_reported(void **state)
{
	struct debug_cache *c = opened();
	struct found f = {0};

	(void)state;
	put(c, KEY, "12345");
	put(c, "a.pdb/1/a.pdb", "123");
	debug_cache_note_failure(c, "http://a", "b");
	assert_int_equal(debug_cache_each(c, count, &f), 0);
	assert_int_equal(f.files, 2);
	assert_int_equal(f.bytes, 8);
	debug_cache_free(c);
}

/* Every reader always sees one of the complete files. */
static void many_writers_leave_a_whole_file(void **state)
{
	struct debug_cache *c = opened();

	(void)state;
	put(c, KEY, "0");
	for (int w = 0; w < 4; w++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid)
			continue;
		char text[501];

		memset(text, 'a' + w, 500);
		text[500] = 0;
		for (int i = 0; i < 50; i++) {
			struct debug_cache_part part = {.fd = -1};

			if (debug_cache_begin(c, &part) || file_write_all(part.fd, text, 500) ||
			    debug_cache_commit(c, &part, KEY))
				_exit(1);
		}
		_exit(0);
	}
	for (int status, left = 4; left;) {
		AUTO_CLOSE int fd = debug_cache_open_key(c, KEY);
		AUTO_FREE char *data = NULL;
		size_t len;

		assert_true(fd >= 0);
		assert_int_equal(file_read_fd(fd, 1000, &data, &len), 0);
		assert_true((len == 1 || len == 500) && strspn(data, (char[]){data[0], 0}) == len);
		if (waitpid(-1, &status, WNOHANG) > 0) {
			assert_int_equal(status, 0);
			left--;
		}
	}
	debug_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_cache_directory_follows_xdg, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(cached_files_are_found_by_key_and_build_id,
						make_home, remove_home),
		cmocka_unit_test_setup_teardown(caches_of_other_tools_are_searched, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(an_aborted_replace_leaves_nothing, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(keys_cannot_leave_the_store, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(a_miss_on_a_server_is_cached_for_a_time, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(a_directory_of_another_user_is_not_used, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(root_does_not_write_into_another_home, make_home,
						remove_home),
		cmocka_unit_test_setup_teardown(all_files_are_reported, make_home, remove_home),
		cmocka_unit_test_setup_teardown(many_writers_leave_a_whole_file, make_home,
						remove_home),
	};

	return cmocka_run_group_tests_name("debug_cache", tests, NULL, NULL);
}
