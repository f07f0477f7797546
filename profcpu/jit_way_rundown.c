#include "profcpu/jit_way.h"

#include "eventpipe/method_name.h"
#include "eventpipe/rundown.h"
#include "symbols/event_signatures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct way {
	struct jit_target *target;
	struct event_signatures *signatures;
	struct rundown *rundown;
	bool listening;
};

/* Precompiled code is named by its image. */
static int take_method(void *ctx, const struct rundown_method *m)
{
	const struct way *w = ctx;
	struct jit_method method = {
		.start = m->start,
		.bytes = m->bytes,
		.source = SYMBOL_RUNDOWN,
		.from_ns = m->loaded ? m->time_ns : 0,
		.until_ns = UINT64_MAX,
		.name = m->name,
		.len = (uint32_t)m->len,
	};

	if (m->flags & METHOD_JITTED)
		jit_methods_writer_add(w->target->out, &method);
	return 0;
}

static int take_gone(void *ctx, uint64_t start, uint64_t time_ns)
{
	const struct way *w = ctx;

	jit_methods_writer_gone(w->target->out, SYMBOL_RUNDOWN, start, time_ns);
	return 0;
}

static int put_signature(void *ctx, const struct rundown_module *module, uint32_t token, const char *name, size_t len,
			 struct outbuf *out)
{
	const struct way *w = ctx;

	return event_signatures_put(w->signatures, module, token, name, len, out);
}

static void end(void *state, uint64_t until_ns, char *why)
{
	struct way *w = state;
	struct port_error err;

	(void)why;
	if (!w)
		return;
	/* A session ends with its connection too. */
	if (w->listening)
		(void)rundown_live_end(w->rundown, until_ns, &err);
	rundown_free(w->rundown);
	event_signatures_free(w->signatures);
	free(w);
}

static int explain(int error, const struct port_error *err, char *why)
{
	char text[PORT_TEXT_BYTES];

	port_error_text(err, text, sizeof(text));
	snprintf(why, JIT_WAY_WHY_BYTES, "%s", err->code ? text : strerror(-error));
	return error;
}

/* What is compiled from now on, then what was before: so nothing is missed between. */
static int begin_listening(struct way *w, struct port_error *err)
{
	int r = rundown_live_begin(w->rundown, w->target->until_ns, err);

	w->listening = !r;
	return r ? r : rundown_snapshot(w->rundown, false, w->target->until_ns, err);
}

static int begin(struct jit_target *t, void **ret_state, char *why)
{
	struct way *w = calloc(1, sizeof(*w));
	struct rundown_listener listener = {
		.method = take_method, .gone = take_gone, .signature = put_signature, .ctx = w};
	struct port_error err = {0};
	int r = w ? event_signatures_new(t->opener, t->pid, &w->signatures) : -ENOMEM;

	if (!r) {
		w->target = t;
		jit_methods_writer_way(t->out, jit_way_rundown.name);
		r = rundown_new(t->opener, t->pid, &listener, &w->rundown);
	}
	if (!r)
		r = begin_listening(w, &err);
	if (r) {
		end(w, t->until_ns, why);
		(void)explain(r, &err, why);
		/* A runtime that starts has no port yet. */
		return r == -ENOENT || r == -ECONNREFUSED ? -EAGAIN : r;
	}
	*ret_state = w;
	return 0;
}

static int step(void *state, uint64_t now_ns, bool last, char *why)
{
	struct way *w = state;
	struct port_error err = {0};
	int r = rundown_live_read(w->rundown, &err);

	(void)now_ns;
	if (!r && last) {
		w->listening = false;
		r = rundown_live_end(w->rundown, w->target->until_ns, &err);
	}
	if (r == -ENODATA)
		r = -ESRCH;
	return r && r != -ESRCH ? explain(r, &err, why) : r;
}

const struct jit_way jit_way_rundown = {
	.name = "rundown",
	.words = "the runtime's events",
	.begin = begin,
	.step = step,
	.end = end,
};
