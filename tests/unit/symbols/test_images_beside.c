/* Images of map records, and files beside them. */
#include "base/file.h"
#include "symbols/images_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PID 1
#define IMAGES 1000 /* the smaller number of time_is_linear_in_images */

struct fixture {
	struct lookup_cache cache;
	struct kernel_map kernel;
	struct images *images;
	char dir[32];
};

static void begin(struct fixture *f)
{
	const struct images_options options = {.jit = {.capture_dir_fd = -1}};

	*f = (struct fixture){.dir = "/tmp/test_images.XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	/* The processes are unknown, so they get no private file. */
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(images_new(&f->cache, &f->kernel, NULL, &options, &f->images), 0);
}

static void end(struct fixture *f)
{
	images_free(f->images);
	lookup_cache_free(&f->cache);
	rmdir(f->dir);
}

/* The image of a process that maps a file of this name below the directory. */
static uint32_t map(struct fixture *f, int32_t pid, const char *name)
{
	char path[64];
	struct perfdata_record r = {.type = PERF_RECORD_MMAP2,
				    .misc = PERF_RECORD_MISC_USER,
				    .pid = pid,
				    .tid = pid,
				    .mmap = {.addr = 0x1000,
					     .len = 0x1000,
					     .prot = PROT_READ | PROT_EXEC,
					     .filename = path}};
	uint32_t image;
	bool anonymous;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	assert_int_equal(images_add_record(f->images, &r, &image, &anonymous), 0);
	return image;
}

static void make_file(struct fixture *f, const char *name, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	assert_true(fd >= 0);
	assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int folder(struct fixture *f, const char *name, bool is_wanted)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	return is_wanted ? mkdir(path, 0755) : rmdir(path);
}

/* The length of the file of this name beside an image, or -errno. */
static int beside(struct fixture *f, uint32_t image, const char *name)
{
	struct images_beside of = {f->images, image};
	struct pe_file file;
	int r = images_open_beside(&of, name, &file);

	if (r)
		return r;
	close(file.fd);
	return (int)file.bytes;
}

/* An assembly is in the directory of the image, or else where the same process mapped it. */
static void assemblies_of_a_process_are_found(void **state)
{
	static const char *const files[] = {"app/app.dll", "lib/a.dll", "lib/b.dll", "two/b.dll",
					    "app/b.dll"};
	struct fixture f;
	char path[64];

	(void)state;
	begin(&f);
	assert_int_equal(
		folder(&f, "app", true) | folder(&f, "lib", true) | folder(&f, "two", true), 0);
	make_file(&f, "app/app.dll", "1");
	make_file(&f, "lib/a.dll", "22");
	make_file(&f, "lib/b.dll", "333");
	make_file(&f, "two/b.dll", "4444");
	uint32_t app = map(&f, PID, "app/app.dll");

	map(&f, PID + 1, "lib/a.dll");
	assert_int_equal(beside(&f, app, "a.dll"), -ENOENT);
	map(&f, PID, "gone/b.dll");
	map(&f, PID, "two/b.dll");
	map(&f, PID, "lib/b.dll");
	assert_int_equal(beside(&f, app, "b.dll"), 4);
	assert_int_equal(beside(&f, app, "c.dll"), -ENOENT);
	make_file(&f, "app/b.dll", "55555");
	assert_int_equal(beside(&f, app, "b.dll"), 5);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		snprintf(path, sizeof(path), "%s/%s", f.dir, files[i]);
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(
		folder(&f, "app", false) | folder(&f, "lib", false) | folder(&f, "two", false), 0);
	end(&f);
}

/* Targets can map many files of one name, and images can refer to many assemblies. */
static void searches_are_bounded(void **state)
{
	struct fixture f;
	int n = 0, r = -ENOENT;

	(void)state;
	begin(&f);
	uint32_t app = map(&f, PID, "app/app.dll");

	for (int i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "gone%d/a.dll", i);
		map(&f, PID, name);
	}
	for (; r == -ENOENT && n < 5000; n++)
		r = beside(&f, app, "a.dll");
	assert_int_equal(r, -E2BIG);
	assert_in_range(n, 32768 / 17 - 1, 32768 / 17 + 2);
	end(&f);
}

/* CPU seconds to search one file for each of n images. */
static double search_all(uint32_t n)
{
	struct fixture f;
	char name[32];

	begin(&f);
	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u/%u.dll", i, i);
		map(&f, PID, name);
	}
	clock_t began = clock();

	for (uint32_t i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u.dll", i + 1);
		assert_int_equal(beside(&f, i, name), -ENOENT);
	}
	double took = (double)(clock() - began) / CLOCKS_PER_SEC;

	end(&f);
	return took;
}

static void time_is_linear_in_images(void **state)
{
	double few = search_all(IMAGES), many = search_all(8 * IMAGES);

	(void)state;
	print_message("%d images: %.3f s; %d images: %.3f s\n", IMAGES, few, 8 * IMAGES, many);
	assert_true(many < 20 * few + 0.05);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assemblies_of_a_process_are_found),
		cmocka_unit_test(searches_are_bounded),
		cmocka_unit_test(time_is_linear_in_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
