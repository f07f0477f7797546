/* Names from the runtime's memory (dotnet/coreclr/jit_code.h), without its help. */
#include "profcpu/jit/way.h"

#include "base/hash.h"
#include "base/hashmap.h"
#include "dotnet/coreclr/runtime.h"
#include "profcpu/jit/stubs.h"
#include "symbols/core/symbol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAY_UNREAD_SHARE 100 /* unreadable parts are reported above one in this many methods */

struct way {
	struct jit_target *target;
	struct clr_jit_code *jit;
	struct hashmap modules; /* module and MVID -> number in the file */
	/* methods, if stubs are found by their code in the memory between them */
	struct jit_known known;
	struct jit_stubs stubs;
};

static int put_il(struct way *w, const struct clr_jit_code_body *code)
{
	const struct clr_jit_code_il *il = code->il;
	struct jit_il_module module = {.path = il->path, .kind = JIT_IL_MVID};
	uint32_t *number;
	int is_new, r;

	if (il->path[0] != '/')
		return 0;
	memcpy(module.id, il->mvid, sizeof(module.id));
	/* Another module may get the address of one that was freed. */
	r = hashmap_entry(&w->modules,
			  hash_mix(il->module, hash_bytes(module.id, sizeof(module.id))), 0,
			  &number, &is_new);
	if (r)
		return r;
	if (is_new)
		*number = jit_methods_writer_module(w->target->out, &module);
	jit_methods_writer_il(w->target->out, SYMBOL_MEMORY, code->start, *number, il->rid,
			      il->points, il->npoints);
	return 0;
}

static int take_code(void *ctx, const struct clr_jit_code_body *code)
{
	struct way *w = ctx;
	struct jit_method method = {
		.start = code->start,
		.bytes = code->bytes,
		.source = SYMBOL_MEMORY,
		.name = code->name,
		.len = code->name_len,
	};

	jit_methods_writer_found(w->target->out, &method);
	if (!clr_jit_code_is_described(w->jit))
		jit_known_add(&w->known, code->start, code->bytes);
	return code->il ? put_il(w, code) : 0;
}

static int take_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	const struct way *w = ctx;

	if (seen_ns)
		jit_methods_writer_doubt(w->target->out, SYMBOL_MEMORY, start, seen_ns);
	jit_methods_writer_lost(w->target->out, SYMBOL_MEMORY, start);
	return 0;
}

static int begin(struct jit_target *t, void **ret_state, char *why)
{
	struct way *w = calloc(1, sizeof(*w));
	struct parse_error err = {0};
	int r = w ? clr_runtime_open(t->pid, t->until_ns, &w->jit, &err) : -ENOMEM;

	if (r) {
		snprintf(why, JIT_WAY_WHY_BYTES, "%s", err.what ? err.what : strerror(-r));
		free(w);
		return r;
	}
	w->target = t;
	if (t->lines)
		clr_jit_code_request_il(w->jit);
	jit_methods_writer_way(t->out, jit_way_memory.name);
	*ret_state = w;
	return 0;
}

/* Reports code without a name. Some of it is unreadable only because it changes at that moment. */
static void report_missing(const struct way *w, const struct clr_jit_code_stats *stats, char *why)
{
	char text[128];

	if (stats->unnamed) {
		snprintf(text, sizeof(text), "%zu method%s no name that could be read",
			 stats->unnamed, stats->unnamed == 1 ? " has" : "s have");
		jit_way_add_why(why, text);
	}
	if (stats->over) {
		snprintf(text, sizeof(text),
			 "it has more than %zu methods; the others get no names",
			 CLR_JIT_CODE_BODIES_MAX);
		jit_way_add_why(why, text);
	} else if (stats->unread > stats->bodies / WAY_UNREAD_SHARE) {
		snprintf(text, sizeof(text), "%zu parts of its code could not be read",
			 stats->unread);
		jit_way_add_why(why, text);
	}
	if (stats->plain) {
		snprintf(text, sizeof(text),
			 "%zu name%s without the type's arguments, which could not be read",
			 stats->plain, stats->plain == 1 ? " is" : "s are");
		jit_way_add_why(why, text);
	}
	if (!clr_jit_code_is_described(w->jit))
		jit_stubs_report(&w->stubs, &w->known, why);
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	struct clr_jit_code_listener listener = {take_code, take_gone, w};
	struct clr_jit_code_stats stats;
	int r;

	if (last)
		clr_jit_code_compare_all(w->jit);
	jit_methods_writer_scan(w->target->out, now_ns);
	r = clr_jit_code_scan(w->jit, &listener, w->target->until_ns);
	if (r == -ETIMEDOUT)
		jit_methods_writer_partial(w->target->out);
	if (r == -ETIMEDOUT && !last)
		r = 0; /* the next step takes the rest */
	clr_jit_code_stats(w->jit, &stats);
	w->target->frees = stats.gone > 0;
	if (!r && !clr_jit_code_is_described(w->jit) && (last || !w->stubs.tried)) {
		jit_known_flush(&w->known);
		/* Methods are enough without stubs. */
		if (jit_stubs_search(&w->stubs, w->target, &w->known, now_ns) == -ESRCH)
			r = -ESRCH;
	}
	if (!r && last)
		report_missing(w, &stats, why);
	if (r && r != -ESRCH)
		snprintf(why, JIT_WAY_WHY_BYTES, "its memory could not be read to the end: %s",
			 r == -ETIMEDOUT ? "there was no time" : strerror(-r));
	return r;
}

static void end(void *state, uint64_t until_ns)
{
	struct way *w = state;

	(void)until_ns;
	if (!w)
		return;
	clr_jit_code_free(w->jit);
	hashmap_free(&w->modules);
	jit_known_free(&w->known);
	jit_stubs_free(&w->stubs);
	free(w);
}

const struct jit_way jit_way_memory = {
	.name = "memory",
	.words = "the runtime's memory",
	.begin = begin,
	.step = step,
	.end = end,
};
