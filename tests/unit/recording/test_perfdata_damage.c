#include "tests/unit/perfdata_check.h"

static void damaged_records_are_skipped_and_counted(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 1);
	build_record(&b, PERF_RECORD_SAMPLE, 0); /* shorter than its fields */
	build_u64(&b, 5);
	build_record_end(&b);
	build_record(&b, PERF_RECORD_COMM, 0); /* text without a terminator */
	build_u64(&b, 5);
	build_put(&b, "abcdefgh", 8);
	build_u64(&b, 2);
	build_record_end(&b);
	build_record(&b, PERF_RECORD_MMAP2, 0);
	build_u64(&b, 5);
	build_u64(&b, 2);
	build_record_end(&b);
	put_plain(&b, 2, 2);
	build_record(&b, 40, 0); /* of a future kernel */
	build_u64(&b, 5);
	build_record_end(&b);
	build_record(&b, 200, 0);
	build_record_end(&b);
	put_plain(&b, 3, 3);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 3, 0);
	assert_int_equal(perfdata_stats(d)->damaged, 3);
	assert_int_equal(perfdata_stats(d)->unknown_types, 2);
	assert_int_equal(perfdata_stats(d)->records, 3);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void an_impossible_size_ends_reading_and_keeps_earlier_records(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 2, 2);
	put_plain(&b, 1, 1);
	build_u64(&b, 9); /* size 0 */
	put_plain(&b, 3, 3);
	build_data_end(&b);
	built_samples_are(&b, want, 2, -EBADMSG);
}

static void an_unfinished_file_is_read_to_its_end(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	for (size_t cut = 0; cut < 24; cut++) {
		build_file(&b, &e, 1);
		put_plain(&b, 2, 2);
		put_plain(&b, 1, 1);
		size_t end = b.len;

		put_plain(&b, 3, 3);
		b.len = end + cut;
		int fd = build_fd(&b);
		struct perfdata *d = open_fd(fd);

		samples_are(d, want, 2, 0);
		assert_true(perfdata_stats(d)->unfinished);
		assert_int_equal(perfdata_stats(d)->truncated_at, cut ? end : 0);
		perfdata_close(d);
		close(fd);
		build_free(&b);
	}
}

static void zeros_at_the_end_of_an_unfinished_file_are_cut_off(void **state)
{
	static const uint64_t want[] = {1};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_plain(&b, 1, 1);
	size_t end = b.len;

	for (int i = 0; i < 100; i++)
		build_u64(&b, 0);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 1, 0);
	assert_int_equal(perfdata_stats(d)->truncated_at, end);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static int open_code(const void *bytes, size_t len, struct parse_error *err)
{
	int fd = build_fd_of(bytes, len);
	struct perfdata *d = NULL;
	int r = perfdata_open(fd, &d, err);

	perfdata_close(d);
	close(fd);
	return r;
}

static void other_files_are_refused(void **state)
{
	struct parse_error err = {0};

	(void)state;
	assert_int_equal(open_code("", 0, &err), -EBADMSG);
	assert_int_equal(open_code("PERFILE2", 8, &err), -EBADMSG);
	assert_int_equal(open_code("a text of some length", 21, &err), -EBADMSG);
	assert_string_equal(err.what, "this is not perf.data");
	assert_int_equal(open_code("2ELIFREP\0\0\0\0\0\0\0\x68", 16, &err), -EBADMSG);
	assert_non_null(strstr(err.what, "byte order"));
	assert_int_equal(open_code("PERFFILE\x68\0\0\0\0\0\0\0", 16, &err), -EBADMSG);
	assert_int_equal(open_code("PERFILE2\x68\0\0\0\0\0\0\0", 16, &err), -EBADMSG);
}

static void file_mode_through_a_pipe_is_refused(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	struct parse_error err = {0};
	struct perfdata *d = NULL;
	int fds[2];

	(void)state;
	build_file(&b, &e, 1);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], b.bytes, b.len), (ssize_t)b.len);
	close(fds[1]);
	assert_int_equal(perfdata_open(fds[0], &d, &err), -EBADMSG);
	assert_non_null(strstr(err.what, "pipe"));
	close(fds[0]);
	build_free(&b);
}

static void build_a_bit_of_all(struct build *b, bool pipe)
{
	struct build_event e = plain_event();
	struct build inner = {0};

	if (pipe)
		build_pipe(b, &e, 1);
	else
		build_file(b, &e, 1);
	for (uint64_t i = 0; i < 20; i++)
		put_plain(&inner, i, i + 1);
	put_plain(b, 1, 1);
	put_comm(b, 2);
	put_compressed(b, &inner, 100, PERFDATA_RECORD_COMPRESSED);
	put_compressed(b, &inner, 100, PERFDATA_RECORD_COMPRESSED2);
	build_record(b, PERFDATA_RECORD_AUXTRACE, 0);
	build_u64(b, 16);
	build_record_end(b);
	build_u64(b, 0);
	build_u64(b, 0);
	put_update_name(b, 2, 1, "x");
	build_round(b);
	put_plain(b, 3, 3);
	if (!pipe)
		build_data_end(b);
	build_free(&inner);
}

/* Reads to the end, with any result. Returns the number of records. */
static uint64_t drain(const void *bytes, size_t len)
{
	int fd = build_fd_of(bytes, len);
	struct perfdata *d = NULL;
	struct perfdata_record r;
	struct parse_error err = {0};
	uint64_t n = 0;
	int code = perfdata_open(fd, &d, &err);

	while (!code) {
		code = perfdata_next(d, &r, &err);
		if (code != 1)
			break;
		code = 0;
		n++;
	}
	assert_true(code == 0 || (code == err.code && err.what));
	perfdata_close(d);
	close(fd);
	return n;
}

static void a_stream_cut_at_any_byte_gives_its_complete_blocks(void **state)
{
	(void)state;
	for (int pipe = 0; pipe < 2; pipe++) {
		struct build b = {0};
		uint64_t before = 0;

		build_a_bit_of_all(&b, pipe);
		for (size_t len = 0; len <= b.len; len++) {
			uint64_t n = drain(b.bytes, len);

			assert_true(n >= before);
			before = n;
		}
		assert_int_equal(before, 3 + 40);
		build_free(&b);
	}
}

static void any_changed_byte_leaves_the_reading_bounded(void **state)
{
	static const unsigned char flips[] = {0x01, 0x80, 0xff};

	(void)state;
	for (int pipe = 0; pipe < 2; pipe++) {
		struct build b = {0};

		build_a_bit_of_all(&b, pipe);
		for (size_t i = 0; i < b.len * 3; i++) {
			b.bytes[i / 3] ^= flips[i % 3];
			drain(b.bytes, b.len);
			b.bytes[i / 3] ^= flips[i % 3];
		}
		build_free(&b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(damaged_records_are_skipped_and_counted),
		cmocka_unit_test(an_impossible_size_ends_reading_and_keeps_earlier_records),
		cmocka_unit_test(an_unfinished_file_is_read_to_its_end),
		cmocka_unit_test(zeros_at_the_end_of_an_unfinished_file_are_cut_off),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(file_mode_through_a_pipe_is_refused),
		cmocka_unit_test(a_stream_cut_at_any_byte_gives_its_complete_blocks),
		cmocka_unit_test(any_changed_byte_leaves_the_reading_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
