#include "symbols/clr_emitted.h"

#include "symbols/clr_metadata.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Memory of a process from 0x10000 on: PEAssembly, what reads its metadata, the database, segments, rows and heaps. */
#define BASE 0x10000u
#define ASSEMBLY 0x0u
#define IMPORT 0x100u
#define DATABASE 0x1000u
#define SEGMENT 0x4000u
#define ROWS 0x5000u
#define HEAPS 0x6000u
#define BYTES 0x8000u

static unsigned char memory[BYTES];
static int reads_left; /* then -EFAULT; below 0: no end */

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t len)
{
	(void)ctx;
	if (!reads_left || addr < BASE || addr - BASE > BYTES || len > BYTES - (addr - BASE))
		return -EFAULT;
	reads_left -= reads_left > 0;
	memcpy(buf, memory + (addr - BASE), len);
	return 0;
}

static uint64_t guids;
static const struct clr_io io = {.read = read_memory};

static void put(size_t at, uint64_t x, size_t bytes)
{
	memcpy(memory + at, &x, bytes);
}

static void put_segment(size_t at, size_t data, size_t next, uint32_t used)
{
	put(at, BASE + data, 8);
	put(at + 8, next ? BASE + next : 0, 8);
	put(at + 16, used + 16, 4);
	put(at + 20, used, 4);
}

static void put_table(int table, uint32_t rows, uint16_t row_bytes, size_t data)
{
	put(DATABASE + 32 + 4 * (size_t)table, rows, 4);
	put(DATABASE + 224 + 16 * (size_t)table + 10, row_bytes, 2);
	put_segment(DATABASE + 1368 + 80 * (size_t)table + 8, data, 0, rows * row_bytes);
}

/* Of one type N.T with two static methods "int32 a()" and "int32 b()", the second in a segment of its own. */
static void make(bool wide)
{
	static const char strings[] = "\0N\0T\0a\0b\0Em";
	static const char blobs[] = "\0\3\0\0\10";
	size_t i = wide ? 4 : 2, at = ROWS, type, method = 8 + 3 * i;

	memset(memory, 0, sizeof(memory));
	reads_left = -1;
	put(ASSEMBLY + 24, BASE + IMPORT, 8);
	put(IMPORT + 16, BASE + DATABASE, 8);
	put(DATABASE + 12, 2, 1);
	put(DATABASE + 14, wide ? 7 : 0, 1);
	type = at;
	put(at + 4, 3, i), put(at + 4 + i, 1, i), put(at + 4 + 3 * i, 1, i), put(at + 4 + 4 * i, 1, i);
	put_table(CLR_TYPE_DEF, 1, (uint16_t)(4 + 5 * i), type);
	for (size_t m = 0; m < 2; m++) {
		at = ROWS + 0x100 + 0x100 * m;
		put(at + 8, 5 + 2 * m, i), put(at + 8 + i, 1, i), put(at + 8 + 2 * i, 1, i);
	}
	put_table(CLR_METHOD_DEF, 2, (uint16_t)method, ROWS + 0x100);
	put_segment(DATABASE + 1368 + 80 * CLR_METHOD_DEF + 8, ROWS + 0x100, SEGMENT, (uint32_t)method);
	put_segment(SEGMENT, ROWS + 0x200, 0, (uint32_t)method);
	at = ROWS + 0x400;
	put(at + 16 + i, 9, i);
	put_table(CLR_ASSEMBLY, 1, (uint16_t)(16 + 3 * i), at);
	memcpy(memory + HEAPS, strings, sizeof(strings));
	memcpy(memory + HEAPS + 0x100, blobs, sizeof(blobs));
	put_segment(DATABASE + 5328 + 8, HEAPS, 0, sizeof(strings));
	put_segment(DATABASE + 5456 + 8, HEAPS + 0x100, 0, sizeof(blobs));
	put_segment(DATABASE + 5696 + 8, HEAPS + 0x200, 0, 16);
}

static int name_of(uint32_t rid, char *text, size_t cap)
{
	struct clr_metadata *metadata = NULL;
	struct outbuf out = outbuf_to(-1);
	void *data = NULL;
	size_t bytes = 0;
	int r = clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids);

	if (!r)
		r = clr_metadata_open(data, bytes, &metadata, NULL);
	if (!r)
		r = clr_metadata_method_name(metadata, rid, NULL, NULL, NULL, &out);
	if (!r)
		snprintf(text, cap, "%.*s", (int)out.len, out.data);
	(void)outbuf_close(&out);
	if (metadata)
		clr_metadata_free(metadata);
	free(data);
	return r;
}

static void methods_of_narrow_and_wide_tables(void **state)
{
	char text[128];

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		make(wide);
		assert_int_equal(name_of(1, text, sizeof(text)), 0);
		assert_string_equal(text, "int32 [Em] N.T::a()");
		assert_int_equal(name_of(2, text, sizeof(text)), 0);
		assert_string_equal(text, "int32 [Em] N.T::b()");
	}
}

/* In the middle of a change, or made up. */
static void what_makes_no_sense(void **state)
{
	void *data = NULL;
	size_t bytes;

	(void)state;
	for (int n = 0; n < 12; n++) {
		make(false);
		reads_left = n;
		int r = clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids);

		assert_true(r == -ENOENT || !r);
		if (!r)
			free(data);
		assert_true(n > 9 || r);
	}
	make(false);
	put_segment(SEGMENT, ROWS + 0x200, SEGMENT, 0); /* without end, and nothing in it */
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids), -ENOENT);
	make(false);
	put_segment(DATABASE + 5328 + 8, HEAPS, SEGMENT, 16);
	put_segment(SEGMENT, HEAPS, SEGMENT, 4096);
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids), -ENOENT);
	make(false);
	put(DATABASE + 32 + 4 * CLR_METHOD_DEF, 0x1000000, 4);
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids), -ENOENT);
	make(false);
	put(DATABASE + 224 + 16 * CLR_METHOD_DEF + 10, 15, 2); /* rows of a size that they cannot have */
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids), -ENOENT);
	make(false);
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 40, &data, &bytes, &guids), -ENOENT);
	put(DATABASE + 12, 3, 1);
	assert_int_equal(clr_emitted_read(&io, BASE + ASSEMBLY, 65536, &data, &bytes, &guids), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_of_narrow_and_wide_tables),
		cmocka_unit_test(what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
