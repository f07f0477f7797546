/*
 * Replaces clock_monotonic_ns in a test, so that deadlines pass when the test moves the clock and
 * not when the machine is busy. A test that includes this header is linked with --wrap; see the
 * Makefile.
 */
#ifndef TESTS_UNIT_FAKE_CLOCK_H
#define TESTS_UNIT_FAKE_CLOCK_H

#include "base/clock.h"

#include <stdatomic.h>

static _Atomic uint64_t fake_clock_ns; /* 0: the clock runs */

uint64_t __real_clock_monotonic_ns(void);
uint64_t __wrap_clock_monotonic_ns(void);

uint64_t __wrap_clock_monotonic_ns(void)
{
	uint64_t now_ns = atomic_load(&fake_clock_ns);

	return now_ns ? now_ns : __real_clock_monotonic_ns();
}

/* Stops the clock at the present time, or lets it run again. */
static inline void fake_clock_stop(void)
{
	atomic_store(&fake_clock_ns, __real_clock_monotonic_ns());
}

static inline void fake_clock_run(void)
{
	atomic_store(&fake_clock_ns, 0);
}

/* Moves the stopped clock forward. */
static inline void fake_clock_advance(uint64_t ns)
{
	atomic_fetch_add(&fake_clock_ns, ns);
}

#endif
