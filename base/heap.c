#include "base/heap.h"

#include <malloc.h>

void heap_trim(uint64_t *last_ns, uint64_t now_ns)
{
	if (now_ns - *last_ns < HEAP_TRIM_NS)
		return;
	malloc_trim(0);
	*last_ns = now_ns;
}
