/* Whether valgrind runs this test. Then code runs at other addresses and many times slower. */
#ifndef TESTS_UNIT_UNDER_VALGRIND_H
#define TESTS_UNIT_UNDER_VALGRIND_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "valgrind");
}

#endif
