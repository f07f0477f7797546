#include "unwind/kept_returns.h"

#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

struct kept_return {
	uint64_t at, ip;
	uint64_t caller_at, caller_ip; /* the next one up */
	int32_t tid; /* 0: free */
};

struct kept_returns {
	struct kept_return places[KEPT_RETURNS];
};

int kept_returns_new(struct kept_returns **ret_kept)
{
	struct kept_returns *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	*ret_kept = k;
	return 0;
}

void kept_returns_free(struct kept_returns *k)
{
	free(k);
}

static size_t place_of(int32_t tid, uint64_t at)
{
	return hash_mix(at, (uint32_t)tid) & (KEPT_RETURNS - 1);
}

/* Read from the copy of the stack, where the rules or a frame pointer said. */
static bool is_certain(const struct walk_frame *f)
{
	return f->at && !f->exact && (f->how == WALK_RULE || f->how == WALK_FRAME_POINTER);
}

void kept_returns_put(struct kept_returns *k, int32_t tid, const struct walk_frame *frames, size_t n)
{
	n = n < KEPT_RETURNS_FRAMES ? n : KEPT_RETURNS_FRAMES;
	for (size_t i = 1; i + 1 < n; i++) {
		const struct walk_frame *f = &frames[i], *caller = &frames[i + 1];

		if (is_certain(f) && is_certain(caller))
			k->places[place_of(tid, f->at)] = (struct kept_return){f->at, f->ip, caller->at, caller->ip, tid};
	}
}

int kept_returns_find(const struct kept_returns *k, int32_t tid, uint64_t at, const struct unwind_memory *memory, uint64_t *ret_ip)
{
	const struct kept_return *p = &k->places[place_of(tid, at)];
	uint64_t caller_ip;

	if (p->tid != tid || p->at != at || !unwind_memory_word(memory, p->caller_at, &caller_ip) || caller_ip != p->caller_ip)
		return -ENOENT;
	*ret_ip = p->ip;
	return 0;
}
