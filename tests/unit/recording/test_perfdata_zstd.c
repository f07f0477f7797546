#include "tests/unit/perfdata_check.h"

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
			put_plain(&inner, i + 1, 1000 + i);
		build_file(&b, &e, 1);
		put_compressed(&b, &inner, steps[k / 2], types[k % 2]);
		put_comm(&b, 5); /* its place is not aligned */
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
		put_plain(&inner, i + 1, 1);
	}
	build_file(&b, &e, 1);
	/* Records of at most 64 kB hold all 2.4 MB: equal times compress well enough. */
	put_compressed(&b, &inner, inner.len / 20, PERFDATA_RECORD_COMPRESSED);
	build_data_end(&b);
	built_samples_are(&b, want, 100000, 0);
	build_free(&inner);
}

/* Incompressible bytes as one stream, in records of at most `max` bytes of payload. */
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

/* perf 6.16 writes them without padding; the sizes in the first record are totals. */
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
		/* Length of all records with their headers, as written into the first one's. */
		build_u64(&b, part ? 0x5555555555555555 : z.len + 2 * 16);
		build_put(&b, z.bytes + at, n);
		build_record_end(&b);
		if (!part) {
			uint16_t size = (uint16_t)((z.len + 3 * 16 + 7) / 8 * 8);

			memcpy(b.bytes + b.record + 6, &size, sizeof(size));
		}
		at += n;
	}
	put_plain(&b, 4, 4);
	build_data_end(&b);
	built_samples_are(&b, want, 4, 0);
	build_free(&inner);
	build_free(&z);
}

static void a_broken_block_loses_only_later_data_of_its_stream(void **state)
{
	struct build_event e = plain_event();
	struct build b = {0}, inner = {0}, fresh = {0};
	uint64_t want[52];
	uint16_t size;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		put_plain(&inner, i + 1, 1000 + i);
	put_plain(&fresh, 501, 3000);
	build_file(&b, &e, 1);
	put_compressed(&b, &inner, 1200, PERFDATA_RECORD_COMPRESSED2);
	put_plain(&b, 500, 2000);
	put_compressed(&b, &fresh, 1200, PERFDATA_RECORD_COMPRESSED2); /* a new stream */
	build_data_end(&b);
	/* The first block with its 50 records and a FINISHED_ROUND stays complete. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compressed_records_may_straddle_blocks),
		cmocka_unit_test(more_than_a_chunk_may_be_in_one_block),
		cmocka_unit_test(compressed2_with_overflowed_sizes_is_read),
		cmocka_unit_test(a_broken_block_loses_only_later_data_of_its_stream),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
