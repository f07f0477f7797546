/* Memory that this program has allocated now, to test that something leaves none behind. */
#ifndef TESTS_UNIT_ALLOCATED_BYTES_H
#define TESTS_UNIT_ALLOCATED_BYTES_H

#include <malloc.h>

static inline size_t allocated_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

#endif
