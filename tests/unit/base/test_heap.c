#include "base/heap.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BLOCKS 30000
#define BLOCK_BYTES ((size_t)2000)
#define KEPT_OF 100 /* one of so many blocks stays in use */

static char *blocks[BLOCKS];

static size_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %lu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A burst that leaves few blocks, in the heap of its thread. */
static void *burst(void *ctx)
{
	(void)ctx;
	for (size_t i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		memset(blocks[i], 1, BLOCK_BYTES);
	}
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % KEPT_OF)
			free(blocks[i]);
	return NULL;
}

static void pages_of_a_burst_are_returned_in_time(void **state)
{
	size_t before = resident_bytes(), burst_bytes = BLOCKS * BLOCK_BYTES;
	uint64_t last_ns = 0, now_ns = HEAP_TRIM_NS;
	pthread_t thread;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* the sanitizer's malloc keeps freed blocks */
#endif
	heap_trim(&last_ns, now_ns);
	assert_int_equal(last_ns, now_ns);
	assert_int_equal(pthread_create(&thread, NULL, burst, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(resident_bytes() > before + burst_bytes / 2);
	/* Too early. */
	heap_trim(&last_ns, now_ns + HEAP_TRIM_NS - 1);
	assert_true(resident_bytes() > before + burst_bytes / 2);
	heap_trim(&last_ns, now_ns + HEAP_TRIM_NS);
	assert_true(resident_bytes() < before + burst_bytes / 5);
	for (size_t i = 0; i < BLOCKS; i += KEPT_OF)
		assert_int_equal(blocks[i][BLOCK_BYTES - 1], 1);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(pages_of_a_burst_are_returned_in_time),
	};

	return cmocka_run_group_tests(all, NULL, NULL);
}
