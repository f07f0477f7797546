#include "unwind/return_cache.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

struct cached_return {
	uint64_t at, ip;
	uint64_t caller_at, caller_ip; /* of the next frame up */
	int32_t tid;                   /* 0: free */
};

struct return_cache {
	struct cached_return entries[RETURN_CACHE_ENTRIES];
};

int return_cache_new(struct return_cache **ret_cache)
{
	struct return_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	*ret_cache = c;
	return 0;
}

void return_cache_free(struct return_cache *c)
{
	free(c);
}

static size_t entry_index(int32_t tid, uint64_t at)
{
	return hash_mix(at, (uint32_t)tid) & (RETURN_CACHE_ENTRIES - 1);
}

/* Whether a return address was read from the copy, by rules or by a frame pointer. */
static bool is_certain(const struct walk_frame *f)
{
	return f->at && !f->exact && (f->how == WALK_RULE || f->how == WALK_FRAME_POINTER);
}

void return_cache_put(struct return_cache *c, int32_t tid, const struct walk_frame *frames,
		      size_t n)
{
	n = n < RETURN_CACHE_FRAMES ? n : RETURN_CACHE_FRAMES;
	for (size_t i = 1; i + 1 < n; i++) {
		const struct walk_frame *f = &frames[i], *caller = &frames[i + 1];

		if (is_certain(f) && is_certain(caller))
			c->entries[entry_index(tid, f->at)] =
				(struct cached_return){f->at, f->ip, caller->at, caller->ip, tid};
	}
}

int return_cache_find(const struct return_cache *c, int32_t tid, uint64_t at,
		      const struct unwind_memory *memory, uint64_t *ret_ip)
{
	const struct cached_return *p = &c->entries[entry_index(tid, at)];
	uint64_t caller_ip;

	if (p->tid != tid || p->at != at || !unwind_memory_word(memory, p->caller_at, &caller_ip) ||
	    caller_ip != p->caller_ip)
		return -ENOENT;
	*ret_ip = p->ip;
	return 0;
}
