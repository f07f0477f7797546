/* Limits of CPU time that are valid under sanitizers and valgrind too. */
#ifndef TESTS_UNIT_CPU_LIMIT_H
#define TESTS_UNIT_CPU_LIMIT_H

#include "tests/unit/under_valgrind.h"

#include <time.h>

/* CPU time of so many seconds, in units of clock(). */
static inline clock_t cpu_limit(clock_t seconds)
{
	clock_t factor = under_valgrind() ? 40 : 1;

#ifdef __SANITIZE_ADDRESS__
	factor = 8;
#endif
	return factor * seconds * CLOCKS_PER_SEC;
}

#endif
