#include "elf/function_bounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int first_base(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(uint64_t *)data = info->dlpi_addr;
	return 1;
}

static void bounds_of_our_own_functions_are_found(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	uint64_t here = (uint64_t)(uintptr_t)bounds_of_our_own_functions_are_found, base = 0;
	const struct function_bounds_entry *e;
	struct function_bounds b;

	(void)state;
	dl_iterate_phdr(first_base, &base);
	assert_int_equal(function_bounds_open(fd, &b), 0);
	close(fd);
	assert_true(b.entries.len > 10);
	assert_int_equal(b.bad, 0);
	e = function_bounds_find(&b, here - base);
	assert_non_null(e);
	assert_int_equal(e->start, here - base);
	assert_true(e->bytes > 16);
	assert_ptr_equal(function_bounds_find(&b, e->start + e->bytes - 1), e);
	assert_null(function_bounds_find(&b, 0));
	assert_null(function_bounds_find(&b, UINT64_MAX));
	function_bounds_free(&b);
}

static void damaged_tables_give_their_readable_rows(void **state)
{
	/* A CIE with pc-relative sdata4, a function of 0x20 bytes at 0x1000, then a length past the
	 * end. */
	static const unsigned char table[] = {
		0x0c, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b - 0x1b + 0x00,
		0,    0, 0,
	};
	static const unsigned char good[] = {
		0x10, 0,    0,    0,    0,    0, 0,    0, 1,    'z',
		'R',  0,    1,    0x78, 16,   1, 0x1b, 0, 0,    0, /* CIE */
		0x10, 0,    0,    0,    0x18, 0, 0,    0, 0xe4, 0xff,
		0xff, 0xff, 0x20, 0,    0,    0, 0,    0, 0,    0, /* at 0x1000 */
		0x10, 0,    0,    0,    0x99, 0, 0,    0, 0,    0,
		0,    0,    0x20, 0,    0,    0, 0,    0, 0,    0, /* CIE that does not exist */
		0xf0, 0xff, 0,    0,
	};
	struct function_bounds b;

	(void)state;
	assert_int_equal(function_bounds_parse(table, sizeof(table), 0, true, &b), 0);
	assert_int_equal(b.entries.len, 0);
	function_bounds_free(&b);
	assert_int_equal(function_bounds_parse(good, sizeof(good), 0x1000, true, &b), 0);
	assert_int_equal(b.entries.len, 1);
	assert_int_equal(b.bad, 1);
	assert_int_equal(function_bounds_find(&b, 0x1005)->start, 0x1000);
	assert_int_equal(function_bounds_find(&b, 0x1005)->bytes, 0x20);
	assert_null(function_bounds_find(&b, 0x1020));
	function_bounds_free(&b);
}

static void functions_in_any_order_are_found(void **state)
{
	static const unsigned char cie[] = {0x10, 0, 0, 0,    0,  0, 0,    0, 1, 'z',
					    'R',  0, 1, 0x78, 16, 1, 0x1b, 0, 0, 0};
	static const int32_t starts[] = {0x5000, 0x3000, 0x7000, 0x1000};
	unsigned char table[sizeof(cie) + 4 * 20] = {0};
	const struct function_bounds_entry *e;
	struct function_bounds b;

	(void)state;
	memcpy(table, cie, sizeof(cie));
	for (int32_t i = 0; i < 4; i++) {
		int32_t at = 20 + 20 * i, fde[] = {16, at + 4, starts[i] - (at + 8), 0x10 + i, 0};

		memcpy(table + at, fde, sizeof(fde));
	}
	assert_int_equal(function_bounds_parse(table, sizeof(table), 0, true, &b), 0);
	for (uint64_t i = 0; i < 4; i++) {
		e = function_bounds_find(&b, (uint64_t)starts[i] + 0xf + i);
		assert_non_null(e);
		assert_int_equal(e->start, starts[i]);
		assert_int_equal(e->bytes, 0x10 + i);
	}
	function_bounds_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_of_our_own_functions_are_found),
		cmocka_unit_test(functions_in_any_order_are_found),
		cmocka_unit_test(damaged_tables_give_their_readable_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
