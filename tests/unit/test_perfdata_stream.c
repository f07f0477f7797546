#include "recording/perfdata.h"
#include "tests/unit/perfdata_builder.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zstd.h>

#include <cmocka.h>

static struct build_event plain_event(void)
{
	struct build_event e = {.ids = {1}, .nids = 1};

	e.attr.size = sizeof(e.attr);
	e.attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TIME;
	e.attr.sample_id_all = 1;
	return e;
}

static void put_sample(struct build *b, uint64_t ip, uint64_t time_ns)
{
	build_record(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	build_u64(b, ip);
	build_u64(b, time_ns);
	build_record_end(b);
}

static void put_comm(struct build *b, uint64_t time_ns)
{
	build_record(b, PERF_RECORD_COMM, 0);
	build_u64(b, 1);
	build_text(b, "comm");
	build_u64(b, time_ns);
	build_record_end(b);
}

static struct perfdata *open_fd(int fd)
{
	struct perfdata *d = NULL;
	struct parse_error err = {0};
	int r = perfdata_open(fd, &d, &err);

	if (r)
		print_error("perfdata_open: %d %s at %llu\n", r, err.what,
			    (unsigned long long)err.offset);
	assert_int_equal(r, 0);
	return d;
}

/* All samples come with these ips, in this order; then the end, with the given code. */
static void samples_are(struct perfdata *d, const uint64_t *ips, size_t n, int end_code)
{
	struct perfdata_record r;
	struct parse_error err = {0};

	for (size_t i = 0; i < n;) {
		assert_int_equal(perfdata_next(d, &r, &err), 1);
		if (r.type != PERF_RECORD_SAMPLE)
			continue;
		assert_int_equal(r.sample.ip, ips[i]);
		i++;
	}
	assert_int_equal(perfdata_next(d, &r, &err), end_code);
	assert_int_equal(perfdata_next(d, &r, &err), end_code);
	if (end_code) {
		assert_int_equal(err.code, end_code);
		assert_non_null(err.what);
	}
}

static void built_samples_are(struct build *b, const uint64_t *ips, size_t n, int end_code)
{
	int fd = build_fd(b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, ips, n, end_code);
	perfdata_close(d);
	close(fd);
	build_free(b);
}

static void rounds_come_in_order_of_time(void **state)
{
	static const uint64_t want[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	for (uint64_t i = 1; i <= 3; i++)
		put_sample(&b, i * 2, i * 2);
	put_sample(&b, 1, 1);
	put_sample(&b, 3, 3);
	build_round(&b);
	/* Older than the newest of the round before: the other CPU was read too early to have it.
	 */
	put_sample(&b, 5, 5);
	put_sample(&b, 9, 9);
	put_sample(&b, 7, 7);
	build_round(&b);
	put_sample(&b, 10, 10);
	put_sample(&b, 8, 8);
	build_round(&b);
	build_round(&b);
	put_sample(&b, 11, 11);
	build_data_end(&b);
	built_samples_are(&b, want, 11, 0);
}

static void equal_times_keep_the_order_of_the_file(void **state)
{
	static const uint64_t want[] = {5, 1, 2, 3, 4};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 20);
	put_sample(&b, 2, 20);
	put_sample(&b, 5, 10);
	put_sample(&b, 3, 20);
	put_sample(&b, 4, 20);
	build_data_end(&b);
	built_samples_are(&b, want, 5, 0);
}

static void a_record_older_than_its_round_allows_is_counted(void **state)
{
	static const uint64_t want[] = {1, 2, 9, 10};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 100);
	put_sample(&b, 2, 200);
	build_round(&b);
	build_round(&b);
	put_sample(&b, 9, 150);
	put_sample(&b, 10, 300);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 4, 0);
	assert_int_equal(perfdata_stats(d)->out_of_order, 1);
	assert_int_equal(perfdata_stats(d)->rounds, 2);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void records_without_time_go_out_at_once(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	struct perfdata_record r;

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 10);
	put_comm(&b, 0);
	put_comm(&b, UINT64_MAX);
	put_sample(&b, 2, 5);
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);
	static const uint32_t want[] = {PERF_RECORD_COMM, PERF_RECORD_COMM, PERF_RECORD_SAMPLE,
					PERF_RECORD_SAMPLE};

	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(perfdata_next(d, &r, NULL), 1);
		assert_int_equal(r.type, want[i]);
	}
	assert_int_equal(r.sample.ip, 1);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

static void without_sample_id_all_the_file_has_its_order(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	e.attr.sample_id_all = 0;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 30);
	put_sample(&b, 2, 10);
	put_sample(&b, 3, 20);
	build_data_end(&b);
	built_samples_are(&b, want, 3, 0);
}

/* Rings of n records of 32 kB each, in one round. */
static void put_rings(struct build *b, uint64_t rings, uint64_t n)
{
	static const char bulk[32000];

	for (uint64_t ring = 0; ring < rings; ring++) {
		for (uint64_t i = 0; i < n; i++) {
			build_record(b, PERF_RECORD_SAMPLE, 0);
			build_u64(b, 1 + rings * i + ring);
			build_u64(b, 1 + rings * i + ring);
			build_put(b, bulk, sizeof(bulk));
			build_record_end(b);
		}
	}
	build_round(b);
}

static void a_round_larger_than_memory_keeps_its_order(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	uint64_t want[2600];

	(void)state;
	for (size_t i = 0; i < 2600; i++)
		want[i] = i + 1;
	build_file(&b, &e, 1);
	put_rings(&b, 2, 1300); /* 83 MB */
	build_data_end(&b);
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 2600, 0);
	assert_int_equal(perfdata_stats(d)->out_of_order, 0);
	assert_int_equal(perfdata_stats(d)->damaged, 0);
	perfdata_close(d);
	close(fd);
	build_free(&b);
}

struct feeder {
	int fd;
	const struct build *b;
};

static void *feed(void *arg)
{
	const struct feeder *f = arg;
	size_t at = 0;

	while (at < f->b->len) {
		ssize_t n =
			write(f->fd, f->b->bytes + at, f->b->len - at < 777 ? f->b->len - at : 777);

		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(f->fd);
	return NULL;
}

static struct perfdata *open_pipe_of(const struct build *b, pthread_t *ret_thread, struct feeder *f,
				     int *ret_fd)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*f = (struct feeder){fds[1], b};
	assert_int_equal(pthread_create(ret_thread, NULL, feed, f), 0);
	*ret_fd = fds[0];
	return open_fd(fds[0]);
}

static void a_round_too_large_for_a_pipe_goes_out_early_and_is_counted(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0};
	struct perfdata_record r;
	struct feeder f;
	pthread_t thread;
	uint64_t n = 0;
	int fd;

	(void)state;
	build_pipe(&b, &e, 1);
	put_rings(&b, 3, 1300);
	struct perfdata *d = open_pipe_of(&b, &thread, &f, &fd);

	while (perfdata_next(d, &r, NULL) > 0)
		n++;
	assert_int_equal(n, 3900);
	assert_true(perfdata_stats(d)->out_of_order > 0);
	perfdata_close(d);
	pthread_join(thread, NULL);
	close(fd);
	build_free(&b);
}

static void put_update_name(struct build *b, uint64_t what, uint64_t id, const char *name)
{
	build_record(b, PERFDATA_RECORD_EVENT_UPDATE, 0);
	build_u64(b, what);
	build_u64(b, id);
	build_text(b, name);
	build_record_end(b);
}

static void put_payloads(struct build *b)
{
	static const char payload[3000];

	build_record(b, PERFDATA_RECORD_HEADER_TRACING_DATA, 0);
	build_u64(b, 2997);
	build_record_end(b);
	build_put(b, payload, 3000);
	build_record(b, PERFDATA_RECORD_AUXTRACE, 0);
	build_u64(b, 1600);
	for (int i = 0; i < 4; i++)
		build_u64(b, 0);
	build_record_end(b);
	build_put(b, payload, 1600);
	put_sample(b, 1, 10);
	build_record(b, PERFDATA_RECORD_AUXTRACE, 0);
	build_u64(b, 3000000);
	for (int i = 0; i < 4; i++)
		build_u64(b, 0);
	build_record_end(b);
	for (int i = 0; i < 1000; i++)
		build_put(b, payload, 3000);
	put_sample(b, 2, 20);
}

static void pipe_mode_names_events_and_skips_payloads(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};
	struct feeder f;
	pthread_t thread;
	size_t n;
	int fd;

	(void)state;
	build_pipe(&b, &e, 1);
	put_update_name(&b, 0, 1, "unit");
	put_update_name(&b, PERFDATA_EVENT_UPDATE_NAME, 1, "my:event");
	put_update_name(&b, PERFDATA_EVENT_UPDATE_NAME, 99, "of nobody");
	put_payloads(&b);
	struct perfdata *d = open_pipe_of(&b, &thread, &f, &fd);

	samples_are(d, want, 2, 0);
	assert_int_equal(perfdata_stats(d)->damaged, 1);
	assert_string_equal(perfdata_events(d, &n)[0].name, "my:event");
	perfdata_close(d);
	pthread_join(thread, NULL);
	close(fd);
	built_samples_are(&b, want, 2, 0); /* the same bytes in a file */
}

static void file_mode_skips_payloads(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_payloads(&b);
	build_data_end(&b);
	built_samples_are(&b, want, 2, 0);
}

/* Compresses the records of `inner` as one stream, flushed at pieces of `step` bytes, into records
 * of the given type. */
static void put_compressed(struct build *b, const struct build *inner, size_t step, uint32_t type)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	unsigned char out[65536];

	assert_non_null(z);
	assert_false(ZSTD_isError(ZSTD_initCStream(z, 1)));
	for (size_t at = 0; at < inner->len; at += step) {
		size_t n = inner->len - at < step ? inner->len - at : step;
		ZSTD_inBuffer in = {inner->bytes + at, n, 0};
		ZSTD_outBuffer o = {out, 60000, 0};

		while (in.pos < in.size)
			assert_false(ZSTD_isError(ZSTD_compressStream(z, &o, &in)));
		assert_int_equal(at + step < inner->len ? ZSTD_flushStream(z, &o)
							: ZSTD_endStream(z, &o),
				 0);
		build_record(b, type, 0);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			build_u64(b, o.pos);
		build_put(b, out, o.pos);
		if (type == PERFDATA_RECORD_COMPRESSED2)
			build_put(b, "\0\0\0\0\0\0\0", (8 - o.pos % 8) % 8);
		build_record_end(b);
		if (at % 3 == 0)
			build_round(b);
	}
	ZSTD_freeCStream(z);
}

static void compressed_records_may_straddle_blocks(void **state)
{
	static const uint32_t types[] = {PERFDATA_RECORD_COMPRESSED, PERFDATA_RECORD_COMPRESSED2};
	static const size_t steps[] = {1, 7, 24, 100, 4099, 2000000};
	struct build_event e = plain_event();
	uint64_t want[200];

	(void)state;
	for (size_t i = 0; i < 200; i++)
		want[i] = i + 1;
	for (size_t k = 0; k < 12; k++) {
		struct build b = {0}, inner = {0};

		for (size_t i = 0; i < 200; i++)
			put_sample(&inner, i + 1, 1000 + i);
		build_file(&b, &e, 1);
		put_compressed(&b, &inner, steps[k / 2], types[k % 2]);
		put_comm(&b, 5); /* where it lies is not aligned */
		build_data_end(&b);
		built_samples_are(&b, want, 200, 0);
		build_free(&inner);
	}
}

static void more_than_a_chunk_may_be_in_one_block(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0}, inner = {0};
	static uint64_t want[100000];

	(void)state;
	for (size_t i = 0; i < 100000; i++) {
		want[i] = i + 1;
		put_sample(&inner, i + 1, 1);
	}
	build_file(&b, &e, 1);
	/* One record of 64 kB at most holds all 2.4 MB: the times are equal, so they compress well
	 * enough. */
	put_compressed(&b, &inner, inner.len / 20, PERFDATA_RECORD_COMPRESSED);
	build_data_end(&b);
	built_samples_are(&b, want, 100000, 0);
	build_free(&inner);
}

/* Bytes that cannot be compressed, as one stream in records of at most `max` bytes of payload. */
static size_t compress_noise(struct build *out, const struct build *inner)
{
	size_t cap = ZSTD_compressBound(inner->len);

	out->bytes = malloc(cap);
	assert_non_null(out->bytes);
	out->cap = cap;
	out->len = ZSTD_compress(out->bytes, cap, inner->bytes, inner->len, 1);
	assert_false(ZSTD_isError(out->len));
	return out->len;
}

static void put_noise_sample(struct build *b, uint64_t ip, size_t bytes)
{
	uint64_t x = 88172645463325252ULL + ip;

	build_record(b, PERF_RECORD_SAMPLE, 0);
	build_u64(b, ip);
	build_u64(b, ip);
	for (size_t i = 0; i < bytes / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		build_u64(b, x);
	}
	build_record_end(b);
}

/* As perf 6.16 writes them: no padding, and the sizes of the first record are those of all. */
static void compressed2_with_overflowed_sizes_is_read(void **state)
{
	static const uint64_t want[] = {1, 2, 3, 4};
	struct build_event e = plain_event();
	struct build b = {0}, inner = {0}, z = {0};
	size_t at = 0;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		put_noise_sample(&inner, i, 50000);
	compress_noise(&z, &inner);
	assert_true(z.len > 2 * 65519);
	build_file(&b, &e, 1);
	for (int part = 0; part < 3; part++) {
		size_t n = z.len - at < 65519 ? z.len - at : 65519;

		build_record(&b, PERFDATA_RECORD_COMPRESSED2, 0);
		/* Of all records, with their heads: that is what was written over the first one's.
		 */
		build_u64(&b, part ? 0x5555555555555555 : z.len + 2 * 16);
		build_put(&b, z.bytes + at, n);
		build_record_end(&b);
		if (!part) {
			uint16_t size = (uint16_t)((z.len + 3 * 16 + 7) / 8 * 8);

			memcpy(b.bytes + b.record + 6, &size, sizeof(size));
		}
		at += n;
	}
	put_sample(&b, 4, 4);
	build_data_end(&b);
	built_samples_are(&b, want, 4, 0);
	build_free(&inner);
	build_free(&z);
}

static void a_broken_block_costs_what_is_compressed_behind_it(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0}, inner = {0}, fresh = {0};
	uint64_t want[52];
	uint16_t size;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		put_sample(&inner, i + 1, 1000 + i);
	put_sample(&fresh, 501, 3000);
	build_file(&b, &e, 1);
	put_compressed(&b, &inner, 1200, PERFDATA_RECORD_COMPRESSED2);
	put_sample(&b, 500, 2000);
	put_compressed(&b, &fresh, 1200, PERFDATA_RECORD_COMPRESSED2); /* begins anew */
	build_data_end(&b);
	/* The first block with its 50 records and a FINISHED_ROUND stay whole. */
	memcpy(&size, b.bytes + b.data + 6, sizeof(size));
	memset(b.bytes + b.data + size + 8 + 16, 0xff, 40);
	for (size_t i = 0; i < 52; i++)
		want[i] = i < 50 ? i + 1 : 450 + i;
	int fd = build_fd(&b);
	struct perfdata *d = open_fd(fd);

	samples_are(d, want, 52, 0);
	assert_int_equal(perfdata_stats(d)->damaged, 3);
	perfdata_close(d);
	close(fd);
	build_free(&b);
	build_free(&inner);
	build_free(&fresh);
}

static void damaged_records_are_skipped_and_counted(void **state)
{
	static const uint64_t want[] = {1, 2, 3};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 1);
	build_record(&b, PERF_RECORD_SAMPLE, 0); /* shorter than its fields */
	build_u64(&b, 5);
	build_record_end(&b);
	build_record(&b, PERF_RECORD_COMM, 0); /* text without an end */
	build_u64(&b, 5);
	build_put(&b, "abcdefgh", 8);
	build_u64(&b, 2);
	build_record_end(&b);
	build_record(&b, PERF_RECORD_MMAP2, 0);
	build_u64(&b, 5);
	build_u64(&b, 2);
	build_record_end(&b);
	put_sample(&b, 2, 2);
	build_record(&b, 40, 0); /* of a kernel to come */
	build_u64(&b, 5);
	build_record_end(&b);
	build_record(&b, 200, 0);
	build_record_end(&b);
	put_sample(&b, 3, 3);
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

static void a_size_that_leads_nowhere_ends_reading_after_all_before_it(void **state)
{
	static const uint64_t want[] = {1, 2};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 2, 2);
	put_sample(&b, 1, 1);
	build_u64(&b, 9); /* size 0 */
	put_sample(&b, 3, 3);
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
		put_sample(&b, 2, 2);
		put_sample(&b, 1, 1);
		size_t end = b.len;

		put_sample(&b, 3, 3);
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

static void zeros_at_the_end_of_an_unfinished_file_are_a_cut(void **state)
{
	static const uint64_t want[] = {1};
	struct build_event e = plain_event();
	struct build b = {0};

	(void)state;
	build_file(&b, &e, 1);
	put_sample(&b, 1, 1);
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

static void what_is_no_perf_data_is_said_so(void **state)
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
		put_sample(&inner, i, i + 1);
	put_sample(b, 1, 1);
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
	put_sample(b, 3, 3);
	if (!pipe)
		build_data_end(b);
	build_free(&inner);
}

/* Reads to the end, whatever it is; gives the number of records. */
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

static void cut_at_any_byte_it_gives_what_is_whole(void **state)
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

static void with_any_byte_changed_it_comes_to_an_end(void **state)
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
		cmocka_unit_test(rounds_come_in_order_of_time),
		cmocka_unit_test(equal_times_keep_the_order_of_the_file),
		cmocka_unit_test(a_record_older_than_its_round_allows_is_counted),
		cmocka_unit_test(records_without_time_go_out_at_once),
		cmocka_unit_test(without_sample_id_all_the_file_has_its_order),
		cmocka_unit_test(a_round_larger_than_memory_keeps_its_order),
		cmocka_unit_test(a_round_too_large_for_a_pipe_goes_out_early_and_is_counted),
		cmocka_unit_test(pipe_mode_names_events_and_skips_payloads),
		cmocka_unit_test(file_mode_skips_payloads),
		cmocka_unit_test(compressed_records_may_straddle_blocks),
		cmocka_unit_test(more_than_a_chunk_may_be_in_one_block),
		cmocka_unit_test(compressed2_with_overflowed_sizes_is_read),
		cmocka_unit_test(a_broken_block_costs_what_is_compressed_behind_it),
		cmocka_unit_test(damaged_records_are_skipped_and_counted),
		cmocka_unit_test(a_size_that_leads_nowhere_ends_reading_after_all_before_it),
		cmocka_unit_test(an_unfinished_file_is_read_to_its_end),
		cmocka_unit_test(zeros_at_the_end_of_an_unfinished_file_are_a_cut),
		cmocka_unit_test(what_is_no_perf_data_is_said_so),
		cmocka_unit_test(file_mode_through_a_pipe_is_refused),
		cmocka_unit_test(cut_at_any_byte_it_gives_what_is_whole),
		cmocka_unit_test(with_any_byte_changed_it_comes_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
