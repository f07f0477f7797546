#include "profcpu/jit/events.h"

#include "dotnet/eventpipe/event_signatures.h"
#include "dotnet/eventpipe/method_name.h"
#include "profcpu/jit/il_maps.h"
#include "symbols/core/symbol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jit_events {
	struct jit_target *target;
	struct jit_known *known;
	struct jit_il_maps maps;
	struct event_signatures *signatures;
	struct rundown *rundown;
};

/* Precompiled code is named by its image, so it is left out. */
static int take_method(void *ctx, const struct rundown_method *m)
{
	struct jit_events *e = ctx;
	struct jit_method method = {
		.start = m->start,
		.bytes = m->bytes,
		.source = SYMBOL_RUNDOWN,
		.from_ns = m->loaded ? m->time_ns : 0,
		.until_ns = UINT64_MAX,
		.name = m->name,
		.len = (uint32_t)m->len,
	};

	if (!(m->flags & METHOD_JITTED))
		return 0;
	jit_methods_writer_add(e->target->out, &method);
	jit_known_add(e->known, m->start, m->bytes);
	return e->target->lines ? jit_il_maps_method(&e->maps, m) : 0;
}

static int take_il_map(void *ctx, const struct rundown_il_map *map)
{
	struct jit_events *e = ctx;

	return jit_il_maps_map(&e->maps, map);
}

static int take_gone(void *ctx, uint64_t start, uint64_t time_ns)
{
	struct jit_events *e = ctx;

	jit_methods_writer_gone(e->target->out, SYMBOL_RUNDOWN, start, time_ns);
	jit_il_maps_gone(&e->maps, start);
	return 0;
}

static int put_signature(void *ctx, const struct rundown_module *module, uint32_t token,
			 const char *name, size_t len, struct outbuf *out)
{
	const struct jit_events *e = ctx;

	return event_signatures_put(e->signatures, module, token, name, len, out);
}

int jit_events_new(struct jit_target *t, struct jit_known *known, struct jit_events **ret_events)
{
	struct jit_events *e = calloc(1, sizeof(*e));
	struct rundown_listener listener = {
		.method = take_method, .gone = take_gone, .signature = put_signature, .ctx = e};
	int r = e ? event_signatures_new(t->opener, t->pid, &t->memory, &e->signatures) : -ENOMEM;

	if (!r) {
		e->target = t;
		e->known = known;
		e->maps.out = t->out;
		e->maps.memory = known->memory = listener.memory = &t->memory;
		/* Older runtimes send maps without a request. */
		listener.il_map = t->lines ? take_il_map : NULL;
		r = rundown_new(t->opener, t->pid, &listener, &e->rundown);
	}
	if (r)
		jit_events_free(e);
	else
		*ret_events = e;
	return r;
}

void jit_events_free(struct jit_events *e)
{
	if (!e)
		return;
	rundown_free(e->rundown);
	event_signatures_free(e->signatures);
	jit_il_maps_free(&e->maps);
	free(e);
}

struct rundown *jit_events_rundown(struct jit_events *e)
{
	return e->rundown;
}

int jit_events_explain(int error, const struct port_error *err, char *why)
{
	char text[PORT_TEXT_BYTES];

	if (err->code)
		port_error_text(err, text, sizeof(text));
	snprintf(why, JIT_WAY_WHY_BYTES, "%s", err->code ? text : strerror(-error));
	return error;
}
