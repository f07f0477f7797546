#include "dotnet/coreclr/emitted.h"

#include "dotnet/metadata.h"
#include "dotnet/metadata_names.h"
#include "tests/unit/emitted_image.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t guids;

static int name_of(uint32_t rid, char *text, size_t cap)
{
	struct clr_metadata *metadata = NULL;
	struct outbuf out = outbuf_to(-1);
	void *data = NULL;
	size_t bytes = 0;
	int r = clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536, &data, &bytes,
				 &guids);

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

static void methods_are_found_in_narrow_and_wide_tables(void **state)
{
	char text[128];

	(void)state;
	for (int wide = 0; wide < 2; wide++) {
		emitted_make(wide);
		assert_int_equal(name_of(1, text, sizeof(text)), 0);
		assert_string_equal(text, "int32 [Em] N.T::a()");
		assert_int_equal(name_of(2, text, sizeof(text)), 0);
		assert_string_equal(text, "int32 [Em] N.T::b()");
	}
}

/* Inconsistent memory: in the middle of a change, or invented. */
static void senseless_input_is_refused(void **state)
{
	void *data = NULL;
	size_t bytes;

	(void)state;
	for (int n = 0; n < 12; n++) {
		emitted_make(false);
		emitted_reads_left = n;
		int r = clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536, &data,
					 &bytes, &guids);

		assert_true(r == -ENOENT || !r);
		if (!r)
			free(data);
		assert_true(n > 9 || r);
	}
	emitted_make(false);
	emitted_put_segment(EMITTED_SEGMENT, EMITTED_ROWS + 0x200, EMITTED_SEGMENT,
			    0); /* endless and empty */
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536,
					  &data, &bytes, &guids),
			 -ENOENT);
	emitted_make(false);
	emitted_put_segment(EMITTED_DATABASE + 5328 + 8, EMITTED_HEAPS, EMITTED_SEGMENT, 16);
	emitted_put_segment(EMITTED_SEGMENT, EMITTED_HEAPS, EMITTED_SEGMENT, 4096);
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536,
					  &data, &bytes, &guids),
			 -ENOENT);
	emitted_make(false);
	emitted_put(EMITTED_DATABASE + 32 + 4 * CLR_METHOD_DEF, 0x1000000, 4);
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536,
					  &data, &bytes, &guids),
			 -ENOENT);
	emitted_make(false);
	emitted_put(EMITTED_DATABASE + 224 + 16 * CLR_METHOD_DEF + 10, 15,
		    2); /* rows of an impossible size */
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536,
					  &data, &bytes, &guids),
			 -ENOENT);
	emitted_make(false);
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 40, &data,
					  &bytes, &guids),
			 -ENOENT);
	emitted_put(EMITTED_DATABASE + 12, 3, 1);
	assert_int_equal(clr_emitted_read(&emitted_io, EMITTED_BASE + EMITTED_ASSEMBLY, 65536,
					  &data, &bytes, &guids),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_are_found_in_narrow_and_wide_tables),
		cmocka_unit_test(senseless_input_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
