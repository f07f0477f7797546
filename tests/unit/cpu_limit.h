/* Limits of CPU time that hold under sanitizers and valgrind too. */
#ifndef TESTS_UNIT_CPU_LIMIT_H
#define TESTS_UNIT_CPU_LIMIT_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* CPU time of so many seconds, in units of clock(). */
static inline clock_t cpu_limit(clock_t seconds)
{
	const char *preload = getenv("LD_PRELOAD");
	clock_t factor = preload && strstr(preload, "valgrind") ? 40 : 1;

#ifdef __SANITIZE_ADDRESS__
	factor = 8;
#endif
	return factor * seconds * CLOCKS_PER_SEC;
}

#endif
