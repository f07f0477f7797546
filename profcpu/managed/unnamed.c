#include "profcpu/managed/unnamed.h"

#include <linux/perf_event.h>
#include <string.h>

int unnamed_make(struct unnamed_callchain *c, uint64_t leaf, const char *bytes, size_t len,
		 size_t pointer_bytes)
{
	size_t size = pointer_bytes < sizeof(uint64_t) ? pointer_bytes : sizeof(uint64_t);
	size_t n = size ? len / size : 0;

	c->words.len = 0;
	if (vec_reserve(&c->words, n + 2))
		return -ENOMEM;
	c->words.v[c->words.len++] = PERF_CONTEXT_USER;
	if (leaf)
		c->words.v[c->words.len++] = leaf;
	for (size_t i = 0; i < n; i++) {
		uint64_t addr = 0;

		memcpy(&addr, bytes + i * size, size);
		c->words.v[c->words.len++] = addr;
	}
	return 0;
}

void unnamed_free(struct unnamed_callchain *c)
{
	vec_free(&c->words);
}
