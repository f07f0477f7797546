#include "recording/archive_input.h"

#include "recording/archive.h"
#include "tests/unit/fake_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#define SMALL_LOG 20 /* windows of 1 MiB and 32 MiB */
#define LARGE_LOG 25
#define N(a) (sizeof(a) / sizeof((a)[0]))

static const char one[] = "the first stream, ", two[] = "and the second one";
static unsigned char bytes[200000];
static size_t len;

static void put(const void *from, size_t n)
{
	memcpy(bytes + len, from, n);
	len += n;
}

static void put_gzip(const char *text, int window_log)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)text,
		      .avail_in = (uInt)strlen(text),
		      .next_out = bytes + len,
		      .avail_out = (uInt)(sizeof(bytes) - len)};

	(void)window_log;
	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	len += z.total_out;
	deflateEnd(&z);
}

/* A stream does not know its size, so the frame has the window as it is. */
static void put_zstd(const char *text, int window_log)
{
	ZSTD_CCtx *z = ZSTD_createCCtx();
	ZSTD_inBuffer in = {.src = text, .size = strlen(text)};
	ZSTD_outBuffer out = {.dst = bytes + len, .size = sizeof(bytes) - len};

	ZSTD_CCtx_setParameter(z, ZSTD_c_windowLog, window_log);
	ZSTD_CCtx_setParameter(z, ZSTD_c_checksumFlag, 1);
	assert_int_equal(ZSTD_compressStream2(z, &out, &in, ZSTD_e_flush), 0);
	assert_int_equal(ZSTD_compressStream2(z, &out, &in, ZSTD_e_end), 0);
	len += out.pos;
	ZSTD_freeCCtx(z);
}

static void put_xz_blocks(const char *const *texts, const int *window_logs, size_t n)
{
	lzma_options_lzma options;
	lzma_filter filters[] = {{.id = LZMA_FILTER_LZMA2, .options = &options},
				 {.id = LZMA_VLI_UNKNOWN}};
	lzma_stream xz = LZMA_STREAM_INIT;

	lzma_lzma_preset(&options, 0);
	for (size_t i = 0; i < n; i++) {
		options.dict_size = 1U << window_logs[i];
		assert_int_equal(i ? lzma_filters_update(&xz, filters)
				   : lzma_stream_encoder(&xz, filters, LZMA_CHECK_CRC32),
				 LZMA_OK);
		xz.next_in = (const uint8_t *)texts[i];
		xz.avail_in = strlen(texts[i]);
		xz.next_out = bytes + len;
		xz.avail_out = sizeof(bytes) - len;
		assert_int_equal(lzma_code(&xz, i + 1 < n ? LZMA_FULL_FLUSH : LZMA_FINISH),
				 LZMA_STREAM_END);
		len = (size_t)(xz.next_out - bytes);
	}
	lzma_end(&xz);
}

static void put_xz(const char *text, int window_log)
{
	put_xz_blocks(&text, &window_log, 1);
}

static void (*const packers[])(const char *text, int window_log) = {put_gzip, put_zstd, put_xz};

/* Reads n of the bytes as a file: its end; *ret_r: error. Output must be the start of both texts.
 */
static enum archive_input_end read_input(size_t n, size_t *ret_unpacked, int *ret_r)
{
	char text[sizeof(one) + sizeof(two)];
	struct archive_input *in;
	enum archive_input_end end;
	const void *part;
	ssize_t got;
	size_t all = 0;
	int fd = memfd_create("input", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, n), n);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(archive_input_new(fd, &in), 0);
	while ((got = archive_input_next(in, &part)) > 0) {
		assert_true(all + (size_t)got < sizeof(text));
		memcpy(text + all, part, (size_t)got);
		all += (size_t)got;
	}
	assert_true(all <= sizeof(one) + sizeof(two) - 2);
	assert_memory_equal(text, "the first stream, and the second one", all);
	*ret_unpacked = all;
	*ret_r = (int)got;
	end = archive_input_end(in);
	archive_input_free(in);
	close(fd);
	return end;
}

static void streams_in_sequence_are_read_as_one(void **state)
{
	static const unsigned char skipped[] = {0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3};
	size_t unpacked;
	int r;

	(void)state;
	for (size_t i = 0; i < N(packers); i++) {
		len = 0;
		packers[i](one, SMALL_LOG);
		size_t first = len;

		if (packers[i] == put_zstd)
			put(skipped, sizeof(skipped));
		if (packers[i] == put_xz)
			put("\0\0\0", 4);
		size_t second = len;

		packers[i](two, SMALL_LOG);
		size_t whole = len;

		put("mail signature", 15);
		assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
		assert_int_equal(unpacked, strlen(one) + strlen(two));
		for (size_t cut = 8; cut < whole; cut++) {
			bool between = cut >= first && cut <= second;
			enum archive_input_end end = read_input(cut, &unpacked, &r);

			assert_int_equal(r, 0);
			/* A cut frame without content takes nothing away. */
			if (!between || cut == first || cut == second)
				assert_int_equal(end,
						 between ? ARCHIVE_INPUT_WHOLE : ARCHIVE_INPUT_CUT);
			assert_true(unpacked >= (cut < first ? 0 : strlen(one)));
		}
		bytes[whole - 3] ^= 1;
		assert_int_equal(read_input(whole, &unpacked, &r), ARCHIVE_INPUT_DAMAGED);
	}
}

/* As pzstd writes them. */
static void zstd_may_begin_with_a_frame_without_content(void **state)
{
	static const unsigned char skipped[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
	size_t unpacked;
	int r;

	(void)state;
	len = 0;
	put(skipped, sizeof(skipped));
	put_zstd(one, SMALL_LOG);
	assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
	assert_int_equal(unpacked, strlen(one));
	assert_string_equal(archive_input_packer(bytes, len), "zstd");
	assert_string_equal(archive_input_packer(bytes + sizeof(skipped), 4), "zstd");
	assert_null(archive_input_packer(bytes, 3));
	/* No format that is not known comes after it. */
	bytes[sizeof(skipped)]--;
	assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
	assert_int_equal(unpacked, 0);
}

static void zeros_between_xz_streams_may_be_many(void **state)
{
	size_t unpacked;
	int r;

	(void)state;
	len = 0;
	put_xz(one, SMALL_LOG);
	memset(bytes + len, 0, 100000);
	len += 100000;
	put_xz(two, SMALL_LOG);
	assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
	assert_int_equal(unpacked, strlen(one) + strlen(two));
}

/* Each later stream, frame and block may have a larger window than the first. */
static void a_window_beyond_the_memory_is_refused(void **state)
{
	static const char *const texts[] = {one, two};
	static const int window_logs[] = {SMALL_LOG, LARGE_LOG};
	size_t unpacked;
	int r;

	(void)state;
	for (int i = 0; i < 3; i++) {
		len = 0;
		if (i == 2) {
			put_xz_blocks(texts, window_logs, 2);
		} else {
			packers[i + 1](one, SMALL_LOG);
			packers[i + 1](two, LARGE_LOG);
		}
		fake_memory_left = (uint64_t)3 << LARGE_LOG;
		assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
		assert_int_equal(r, 0);
		assert_int_equal(unpacked, strlen(one) + strlen(two));
		fake_memory_left = ((uint64_t)2 << LARGE_LOG) - 1;
		read_input(len, &unpacked, &r);
		assert_int_equal(r, -E2BIG);
		assert_int_equal(unpacked, strlen(one));
		fake_memory_left = UINT64_MAX;
		assert_int_equal(read_input(len, &unpacked, &r), ARCHIVE_INPUT_WHOLE);
		assert_int_equal(r, 0);
	}
	fake_memory_left = FAKE_MEMORY_BYTES;
}

/*
 * libzstd knows frames of its old formats by the first bytes that it gets. They may be in the
 * middle of an invalid header that the end of a block divides.
 */
static void no_frame_of_an_old_format_is_unpacked(void **state)
{
	/* Version 0.7: window of 128 MiB, a raw block of 3 bytes, the last block. */
	static const unsigned char old[] = {0x27, 0xb5, 0x2f, 0xfd, 0,    17 << 3, 0x40, 0,
					    3,    'b',  'a',  'd',  0xc0, 0,       0};
	static const unsigned char skipped[] = {0x50, 0x2a, 0x4d, 0x18};
	static const unsigned char wrong[] = {0x28, 0xb5, 0x2f, 0xfd, 0x08};
	size_t unpacked;
	int r;

	(void)state;
	for (size_t split = 0; split <= sizeof(wrong); split++) {
		len = 0;
		put_zstd(one, SMALL_LOG);
		put(skipped, sizeof(skipped));
		uint32_t fill = (uint32_t)((64 << 10) - split - len - sizeof(fill));

		put(&fill, sizeof(fill));
		memset(bytes + len, 0, fill);
		len += fill;
		put(wrong, split);
		put(old, sizeof(old));
		enum archive_input_end end = read_input(len, &unpacked, &r);

		assert_int_equal(r, 0);
		assert_int_equal(unpacked, strlen(one));
		assert_int_equal(end, split < 4 ? ARCHIVE_INPUT_WHOLE : ARCHIVE_INPUT_DAMAGED);
	}
}

static void archives_with_such_a_window_give_the_remedy(void **state)
{
	struct archive_stats stats;
	struct parse_error err = {0};
	int fd, to = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	fake_memory_left = (uint64_t)1 << LARGE_LOG;
	for (size_t i = 1; i < N(packers); i++) {
		len = 0;
		packers[i](one, LARGE_LOG);
		fd = memfd_create("archive", MFD_CLOEXEC);
		assert_int_equal(write(fd, bytes, len), len);
		lseek(fd, 0, SEEK_SET);
		assert_int_equal(archive_read(fd, to, &stats, &err), -E2BIG);
		assert_non_null(strstr(err.what, "memory that is left; raise the limit of memory"));
		assert_false(stats.no_tar);
		close(fd);
	}
	fake_memory_left = FAKE_MEMORY_BYTES;
	close(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_in_sequence_are_read_as_one),
		cmocka_unit_test(zstd_may_begin_with_a_frame_without_content),
		cmocka_unit_test(zeros_between_xz_streams_may_be_many),
		cmocka_unit_test(a_window_beyond_the_memory_is_refused),
		cmocka_unit_test(no_frame_of_an_old_format_is_unpacked),
		cmocka_unit_test(archives_with_such_a_window_give_the_remedy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
