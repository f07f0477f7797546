#include "base/file.h"
#include "tests/unit/fake_memory.h"
#include "tests/unit/perfdata_check.h"

#include <fcntl.h>
#include <sys/stat.h>

static char dir_path[] = "/tmp/profcpu-merge-XXXXXX";
static int dir_fd;

static int setup(void **state)
{
	(void)state;
	strcpy(dir_path + sizeof(dir_path) - 7, "XXXXXX");
	assert_non_null(mkdtemp(dir_path));
	dir_fd = open(dir_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	file_remove_contents(dir_fd);
	close(dir_fd);
	return rmdir(dir_path);
}

/* Writes a file of the directory and empties the builder. */
static void put_file(const char *name, struct build *b)
{
	int fd;

	assert_int_equal(file_create(dir_fd, name, O_WRONLY, 0600, &fd), 0);
	assert_int_equal(file_write_all(fd, b->bytes, b->len), 0);
	close(fd);
	build_free(b);
	*b = (struct build){0};
}

static struct perfdata_merged merge(int *ret_fd)
{
	struct perfdata_merged merged = {0};
	struct parse_error err = {0};

	*ret_fd = memfd_create("merged", MFD_CLOEXEC);
	assert_int_equal(perfdata_merge(dir_fd, *ret_fd, &merged, &err), 0);
	return merged;
}

/* The file `data`, with a host's name, the mark of a directory, and one record. */
static void put_header(uint64_t ip, uint64_t time_ns)
{
	static const unsigned int bits[] = {PERFDATA_HOSTNAME, PERFDATA_DIR_FORMAT};
	struct build_event e = plain_event();
	struct build b = {0}, contents[2] = {0};

	build_u32(&contents[0], 8);
	build_text(&contents[0], "machine");
	build_u64(&contents[1], 1);
	build_file(&b, &e, 1);
	put_plain(&b, ip, time_ns);
	build_features(&b, bits, contents, 2);
	build_free(&contents[0]);
	build_free(&contents[1]);
	put_file("data", &b);
}

static void records_come_in_the_order_of_time(void **state)
{
	static const uint64_t want[] = {1, 2, 3, 4, 5, 6, 7};
	struct build b = {0}, inner = {0};
	int fd;

	(void)state;
	put_header(4, 400);
	put_plain(&b, 2, 200);
	put_plain(&b, 6, 600);
	put_file("data.0", &b);
	put_file("data.1", &b); /* a CPU without samples */
	put_plain(&inner, 1, 100);
	put_plain(&inner, 3, 300);
	put_plain(&inner, 5, 500);
	put_plain(&inner, 7, 700);
	put_compressed(&b, &inner, 10, PERFDATA_RECORD_COMPRESSED);
	put_file("data.2", &b);
	build_free(&inner);
	struct perfdata_merged merged = merge(&fd);

	assert_int_equal(merged.files, 4);
	assert_int_equal(merged.damaged, 0);
	struct perfdata *d = open_fd(fd);

	assert_string_equal(perfdata_info(d)->hostname, "machine");
	samples_are(d, want, 7, 0);
	assert_int_equal(perfdata_stats(d)->out_of_order, 0);
	assert_int_equal(perfdata_stats(d)->unknown_features, 0);
	perfdata_close(d);
	close(fd);
}

/* Two rings in one file, whose parts are further apart than a million records. */
static void large_files_keep_the_order(void **state)
{
	enum { N = 700000 };
	struct build b = {0};
	struct perfdata_record r;
	struct parse_error err = {0};
	uint64_t last_ns = 0;
	int fd;

	(void)state;
	put_header(1, 1);
	for (uint64_t file = 0; file < 2; file++) {
		for (uint64_t i = 0; i < N; i += 1000)
			for (uint64_t ring = 0; ring < 2; ring++)
				for (uint64_t k = 0; k < 1000; k += 2)
					put_plain(&b, 1, 10 + 2 * (i + k + ring) + file);
		put_file(file ? "data.1" : "data.0", &b);
	}
	(void)merge(&fd);
	struct perfdata *d = open_fd(fd);

	while (perfdata_next(d, &r, &err) == 1) {
		assert_true(r.time_ns >= last_ns);
		last_ns = r.time_ns;
	}
	assert_int_equal(perfdata_stats(d)->samples, 2 * N + 1);
	assert_int_equal(perfdata_stats(d)->out_of_order, 0);
	perfdata_close(d);
	close(fd);
}

static void damage_is_counted_and_the_rest_is_merged(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct build b = {0};
	int fd;

	(void)state;
	put_header(1, 100);
	put_plain(&b, 2, 200);
	put_plain(&b, 9, 900);
	b.len -= 3;
	put_file("data.1", &b);
	put_plain(&b, 3, 300);
	put_file("data.3", &b);
	struct perfdata_merged merged = merge(&fd);

	assert_int_equal(merged.damaged, 3);
	assert_string_equal(merged.first_damaged, "data.0");
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 3, 0);
	perfdata_close(d);
	close(fd);
}

/* As a killed perf leaves it: no size of the data, no features. */
static void an_unfinished_directory_stays_unfinished(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};
	int fd;

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 2, 200);
	put_file("data", &b);
	put_plain(&b, 1, 100);
	put_file("data.0", &b);
	assert_int_equal(merge(&fd).damaged, 0);
	struct perfdata *d = open_fd(fd);

	assert_true(perfdata_stats(d)->unfinished);
	samples_are(d, want, 2, 0);
	perfdata_close(d);
	close(fd);
}

static void wrong_headers_are_refused(void **state)
{
	struct build_event e = plain_event();
	struct perfdata_merged merged;
	struct parse_error err = {0};
	struct build b = {0};
	int fd = memfd_create("merged", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(perfdata_merge(dir_fd, fd, &merged, &err), -ENOENT);
	build_put(&b, "text", 4);
	put_file("data", &b);
	assert_int_equal(perfdata_merge(dir_fd, fd, &merged, &err), -EBADMSG);
	assert_string_equal(err.what, "this is not perf.data");
	build_pipe(&b, &e, 1);
	put_file("data", &b);
	err = (struct parse_error){0};
	assert_int_equal(perfdata_merge(dir_fd, fd, &merged, &err), -EBADMSG);
	assert_string_equal(err.what, "its file data has a wrong header");
	close(fd);
}

/* Each file takes 512 KiB for its window, and 1 MiB besides. */
static void windows_fit_into_the_memory_or_are_refused(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct perfdata_merged merged;
	struct build b = {0}, inner = {0};
	int fd;

	(void)state;
	put_header(1, 100);
	for (uint64_t file = 0; file < 2; file++) {
		put_plain(&inner, 2 + file, 200 + file);
		put_compressed(&b, &inner, 10, PERFDATA_RECORD_COMPRESSED);
		put_file(file ? "data.1" : "data.0", &b);
		build_free(&inner);
		inner = (struct build){0};
	}
	fake_memory_left = ((uint64_t)3 * (3 << 19) / 7 + 1) * 8;
	assert_int_equal(merge(&fd).damaged, 0);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 3, 0);
	perfdata_close(d);
	close(fd);
	for (fake_memory_left -= 8; fake_memory_left; fake_memory_left /= 8) {
		struct parse_error err = {0};

		fd = memfd_create("merged", MFD_CLOEXEC);
		assert_int_equal(perfdata_merge(dir_fd, fd, &merged, &err), -E2BIG);
		assert_non_null(strstr(err.what, "more memory than is left; raise the"));
		close(fd);
	}
	fake_memory_left = FAKE_MEMORY_BYTES;
}

/* The header of a zstd frame: a window of 2^28 bytes, and an empty block. */
static void windows_over_the_limit_are_damage_of_their_file(void **state)
{
	static const unsigned char frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0, (28 - 10) << 3, 1, 0, 0};
	static const uint64_t want[] = {1, 2, 3};
	struct build b = {0};
	int fd;

	(void)state;
	put_header(1, 100);
	put_plain(&b, 2, 200);
	build_record(&b, PERFDATA_RECORD_COMPRESSED, 0);
	build_put(&b, frame, sizeof(frame));
	build_record_end(&b);
	put_file("data.0", &b);
	put_plain(&b, 3, 300);
	put_file("data.1", &b);
	struct perfdata_merged merged = merge(&fd);

	assert_int_equal(merged.damaged, 1);
	assert_string_equal(merged.first_damaged, "data.0");
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 3, 0);
	perfdata_close(d);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(records_come_in_the_order_of_time, setup, teardown),
		cmocka_unit_test_setup_teardown(large_files_keep_the_order, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_counted_and_the_rest_is_merged, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_unfinished_directory_stays_unfinished, setup,
						teardown),
		cmocka_unit_test_setup_teardown(windows_over_the_limit_are_damage_of_their_file,
						setup, teardown),
		cmocka_unit_test_setup_teardown(windows_fit_into_the_memory_or_are_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(wrong_headers_are_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
