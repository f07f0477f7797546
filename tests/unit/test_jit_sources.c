#include "symbols/jit_methods_file.h"
#include "symbols/jit_sources.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 0x70000000 /* of no process */

struct fixture {
	char dir[32];
	int dir_fd;
	struct jit_sources *sources;
};

static int open_nothing(void *ctx, uint32_t image, int *ret_fd)
{
	(void)ctx;
	(void)image;
	(void)ret_fd;
	return -ENOENT;
}

static int open_no_path(void *ctx, const char *path, int *ret_fd)
{
	(void)path;
	return open_nothing(ctx, 0, ret_fd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct jit_sources_options options = {.live = false};

	strcpy(f->dir, "/tmp/test_jit_sources.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	options.capture_dir_fd = f->dir_fd;
	assert_int_equal(jit_sources_new(&options, NULL, open_nothing, NULL, &f->sources), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	jit_sources_free(f->sources);
	assert_int_equal(jit_methods_remove(f->dir_fd), 0);
	close(f->dir_fd);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void capture(const struct fixture *f, int32_t pid, const char *text)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "%d.methods", (int)pid);
	fd = openat(f->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void lines_of_many_processes_can_be_asked_for_first(void **state)
{
	enum { PROCESSES = 100 };
	static const char text[] = "profcpu-methods 1\nway memory\nmodule 0 - - /a.dll\nadd 0 1000 10 rundown m\n"
				   "il 1000 rundown 0 1 0+0\n";
	const struct jit_lines_files files = {.open = open_no_path};
	struct fixture *f = *state;

	for (int32_t i = 0; i < PROCESSES; i++) {
		struct line_source *lines = NULL;

		capture(f, PID + i, text);
		assert_int_equal(jit_sources_lines(f->sources, PID + i, &files, &lines), 0);
		line_source_free(lines);
	}
	for (int32_t i = 0; i < PROCESSES; i++) {
		const char *way = jit_sources_way(f->sources, PID + i);

		assert_non_null(way);
		assert_string_equal(way, "memory");
		assert_true(jit_sources_captured(f->sources, PID + i));
	}
	assert_int_equal(jit_sources_stats(f->sources).captures, PROCESSES);
	assert_int_equal(jit_sources_stats(f->sources).il_maps, PROCESSES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_of_many_processes_can_be_asked_for_first, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
