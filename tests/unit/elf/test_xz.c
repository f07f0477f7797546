#include "elf/xz.h"

#include <errno.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES ((size_t)300 << 10)

static unsigned char text[TEXT_BYTES], packed[TEXT_BYTES];

static size_t pack(void *state)
{
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (unsigned char)(i * i >> 7);
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, NULL, text, TEXT_BYTES,
						 packed, &len, TEXT_BYTES),
			 LZMA_OK);
	return len;
}

static void packed_files_come_out(void **state)
{
	size_t len = pack(state), out_len = 0;
	unsigned char *out = NULL;

	assert_int_equal(xz_unpack(packed, len, TEXT_BYTES * 2, &out, &out_len), 0);
	assert_int_equal(out_len, TEXT_BYTES);
	assert_memory_equal(out, text, TEXT_BYTES);
	assert_int_equal(out[out_len], 0);
	free(out);
}

static void more_than_the_limit_is_refused(void **state)
{
	size_t len = pack(state), out_len = 0;
	unsigned char *out = NULL;

	assert_int_equal(xz_unpack(packed, len, TEXT_BYTES - 1, &out, &out_len), -E2BIG);
	assert_int_equal(out_len, TEXT_BYTES); /* it was unpacked */
	assert_int_equal(xz_unpack(packed, len, 100, &out, &out_len), -E2BIG);
	assert_null(out);
}

static void a_decoder_that_needs_too_much_is_refused(void **state)
{
	lzma_options_lzma options;
	lzma_filter filters[] = {{LZMA_FILTER_LZMA2, &options}, {LZMA_VLI_UNKNOWN, NULL}};
	unsigned char *out = NULL;
	size_t len = 0, out_len = 0;

	pack(state);
	assert_false(lzma_lzma_preset(&options, 0));
	options.dict_size = (uint32_t)256 << 20;
	/* Avoids an encoder of that size: patches the dictionary size, one byte of the block's
	 * header, and its CRC. */
	lzma_block block = {.version = 0, .check = LZMA_CHECK_NONE, .filters = filters};
	lzma_stream_flags flags = {.version = 0, .check = LZMA_CHECK_NONE};

	assert_int_equal(lzma_stream_header_encode(&flags, packed), LZMA_OK);
	block.compressed_size = LZMA_VLI_UNKNOWN;
	block.uncompressed_size = LZMA_VLI_UNKNOWN;
	assert_int_equal(lzma_block_header_size(&block), LZMA_OK);
	len = LZMA_STREAM_HEADER_SIZE;
	assert_int_equal(lzma_block_header_encode(&block, packed + len), LZMA_OK);
	len += block.header_size;
	assert_int_equal(xz_unpack(packed, len, TEXT_BYTES, &out, &out_len), -E2BIG);
}

static void cut_or_changed_files_are_rejected(void **state)
{
	size_t len = pack(state), out_len = 0;
	unsigned char *out = NULL;

	for (size_t cut = 0; cut < len; cut += 97)
		assert_int_equal(xz_unpack(packed, cut, TEXT_BYTES, &out, &out_len), -EBADMSG);
	packed[len / 2] ^= 1;
	assert_int_equal(xz_unpack(packed, len, TEXT_BYTES, &out, &out_len), -EBADMSG);
	assert_int_equal(xz_unpack("no .xz at all, but text", 23, TEXT_BYTES, &out, &out_len),
			 -EBADMSG);
	assert_null(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packed_files_come_out),
		cmocka_unit_test(more_than_the_limit_is_refused),
		cmocka_unit_test(a_decoder_that_needs_too_much_is_refused),
		cmocka_unit_test(cut_or_changed_files_are_rejected),
	};

	return cmocka_run_group_tests_name("xz", tests, NULL, NULL);
}
