#include "profcpu/jit_way.h"

#include "symbols/clr_process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct way {
	struct jit_target *target;
	struct clr_heap *heap;
};

static int take_code(void *ctx, const struct clr_heap_code *code)
{
	const struct way *w = ctx;
	struct jit_method method = {
		.start = code->start,
		.bytes = code->bytes,
		.source = SYMBOL_MEMORY,
		.name = code->name,
		.len = code->name_len,
	};

	jit_methods_writer_found(w->target->out, &method);
	return 0;
}

static int take_gone(void *ctx, uint64_t start)
{
	const struct way *w = ctx;

	jit_methods_writer_lost(w->target->out, SYMBOL_MEMORY, start);
	return 0;
}

static int begin(struct jit_target *t, void **ret_state, char *why)
{
	struct way *w = calloc(1, sizeof(*w));
	struct parse_error err = {0};
	int r = w ? clr_process_open(t->pid, &w->heap, &err) : -ENOMEM;

	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", err.what ? err.what : strerror(-r));
		free(w);
		return r;
	}
	w->target = t;
	jit_methods_writer_way(t->out, jit_way_memory.name);
	*ret_state = w;
	return 0;
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	struct clr_heap_listener listener = {take_code, take_gone, w};
	struct clr_heap_stats stats;
	int r;

	jit_methods_writer_scan(w->target->out, now_ns);
	r = clr_heap_scan(w->heap, &listener, w->target->until_ns);
	if (r == -ETIMEDOUT && !last)
		r = 0; /* the next step tells the rest */
	clr_heap_stats(w->heap, &stats);
	w->target->frees = stats.gone > 0;
	if (r && r != -ESRCH)
		snprintf(why, JIT_WAY_WHY_BYTES, "its memory could not be read to the end: %s", strerror(-r));
	return r;
}

static void end(void *state, uint64_t until_ns, char *why)
{
	struct way *w = state;

	(void)until_ns;
	(void)why;
	if (!w)
		return;
	clr_heap_free(w->heap);
	free(w);
}

const struct jit_way jit_way_memory = {
	.name = "memory",
	.words = "the runtime's memory",
	.begin = begin,
	.step = step,
	.end = end,
};
