/* container/memory_guard: allocations fail before the memory that is left ends. */
#include "container/memory_guard.h"

#include "base/bigmem.h"
#include "tests/unit/fake_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

/* Takes blocks of the size until one is refused. Returns how many MiB it got. */
static size_t take(size_t bytes, size_t mib_max)
{
	void *blocks[1 << 12];
	size_t n = 0;

	for (; n < sizeof(blocks) / sizeof(*blocks) && n * bytes < mib_max * MIB; n++) {
		blocks[n] = malloc(bytes);
		if (!blocks[n])
			break;
		fake_memory_left -= bytes;
	}
	for (size_t i = 0; i < n; i++)
		free(blocks[i]);
	fake_memory_left += n * bytes;
	return n * bytes / MIB;
}

static void no_block_is_larger_than_what_is_left(void **state)
{
	char *some = malloc(100);

	(void)state;
	assert_null(malloc(FAKE_MEMORY_BYTES));
	assert_int_equal(errno, ENOMEM);
	assert_null(calloc(FAKE_MEMORY_BYTES / 64, 64));
	assert_null(bigmem_alloc(FAKE_MEMORY_BYTES / 64, 64));
	assert_non_null(some);
	char *more = realloc(some, FAKE_MEMORY_BYTES);

	assert_null(more);
	assert_null(reallocarray(NULL, FAKE_MEMORY_BYTES / 64, 64));
	free(more ? more : some);
}

static void small_blocks_end_at_the_reserve(void **state)
{
	const size_t mib = FAKE_MEMORY_BYTES / MIB, reserve = mib / MEMORY_GUARD_RESERVE_PART;

	(void)state;
	assert_in_range(take(MIB, mib), mib - reserve - 2, mib - reserve + 1);
	/* Memory that is free again, or more of it, can be used. */
	assert_in_range(take(MIB, mib), mib - reserve - 2, mib - reserve + 1);
	fake_memory_left *= 2;
	assert_int_equal(take(MIB, mib), mib);
	fake_memory_left /= 2;
}

static void unknown_memory_has_no_limit(void **state)
{
	(void)state;
	assert_null(malloc(FAKE_MEMORY_BYTES));
	fake_memory_left = UINT64_MAX;
	void *block = malloc(FAKE_MEMORY_BYTES);

	assert_non_null(block);
	free(block);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(no_block_is_larger_than_what_is_left),
		cmocka_unit_test(small_blocks_end_at_the_reserve),
		cmocka_unit_test(unknown_memory_has_no_limit),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
