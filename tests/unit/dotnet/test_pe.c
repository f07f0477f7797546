/* dotnet/pe: the memory for parts of images. */
#include "dotnet/pe.h"

#include "tests/unit/fake_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void unknown_memory_is_no_limit(void **state)
{
	(void)state;
	fake_memory_left = UINT64_MAX;
	fake_memory_taken = (uint64_t)64 << 20;
	assert_true(pe_has_memory((uint32_t)1 << 30));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_memory_is_no_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
