/*
 * Replaces the memory that is left, and that which this process has. Link with
 * -Wl,--wrap=memory_left -Wl,--wrap=memory_taken (Makefile).
 */
#ifndef TESTS_UNIT_FAKE_MEMORY_H
#define TESTS_UNIT_FAKE_MEMORY_H

#include <stdint.h>

#define FAKE_MEMORY_BYTES ((uint64_t)1 << 30)

static uint64_t fake_memory_left = FAKE_MEMORY_BYTES, fake_memory_taken;

uint64_t __wrap_memory_left(void);
uint64_t __wrap_memory_taken(void);

uint64_t __wrap_memory_left(void)
{
	return fake_memory_left;
}

uint64_t __wrap_memory_taken(void)
{
	return fake_memory_taken;
}

#endif
