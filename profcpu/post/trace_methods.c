#include "profcpu/post/trace_methods.h"

#include "base/arena.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/eventpipe/rundown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Events with the same layout: loaded, listed at the start, and listed at the end. */
#define METHOD_LOADED 143
#define METHOD_END 144 /* of the rundown */

struct trace_method {
	uint64_t start, end;
	const unsigned char *payload;
	uint32_t len, order;
	uint32_t version;
	bool of_rundown;
	bool named;
	uint32_t name, assembly; /* ids in texts, if named */
};

struct trace_methods {
	struct rundown *rundown;
	VEC(struct trace_method) v; /* sorted by start once names were asked for */
	bool sorted;
	size_t max_bytes;
	struct arena payloads;
	struct intern texts;
	struct trace_method *naming;
	uint64_t left_out;
};

/* Takes the name of the method that is being named. */
static int methods_take_name(void *ctx, const struct rundown_method *named)
{
	struct trace_methods *m = ctx;
	struct trace_method *method = m->naming;
	int r = method ? intern_put(&m->texts, named->name, named->len, &method->name) : 0;

	if (method && !r)
		r = intern_str(&m->texts, named->module ? named->module->assembly : "",
			       &method->assembly);
	if (method)
		method->named = !r;
	return r;
}

int trace_methods_new(size_t max_bytes, struct trace_methods **ret_methods)
{
	struct trace_methods *m = calloc(1, sizeof(*m));
	const struct rundown_listener listener = {.method = methods_take_name, .ctx = m};

	if (!m || rundown_new(NULL, 0, &listener, &m->rundown)) {
		free(m);
		return -ENOMEM;
	}
	m->max_bytes = max_bytes;
	*ret_methods = m;
	return 0;
}

void trace_methods_free(struct trace_methods *m)
{
	if (!m)
		return;
	rundown_free(m->rundown);
	vec_free(&m->v);
	arena_free(&m->payloads);
	intern_free(&m->texts);
	free(m);
}

uint64_t trace_methods_left_out(const struct trace_methods *m)
{
	return m->left_out;
}

static bool methods_is_rundown(const struct nettrace_kind *kind)
{
	return !strcmp(kind->provider, PROVIDER_RUNDOWN);
}

bool trace_methods_wants(const struct nettrace_kind *kind)
{
	return methods_is_rundown(kind) || !strcmp(kind->provider, PROVIDER_RUNTIME);
}

/* Keeps the payload of an event that lists a method. */
static int methods_keep(struct trace_methods *m, const struct nettrace_event *event)
{
	struct reader r = reader_of(event->blob.payload, event->blob.payload_len);
	struct trace_method method = {.len = event->blob.payload_len,
				      .order = (uint32_t)m->v.len,
				      .version = event->kind->version,
				      .of_rundown = methods_is_rundown(event->kind)};

	reader_skip(&r, 2 * sizeof(uint64_t)); /* ids of the method and its module */
	method.start = reader_u64(&r);
	method.end = method.start + reader_u32(&r);
	if (r.failed || method.end <= method.start)
		return 0;
	if (m->payloads.total_bytes + m->v.len * sizeof(method) + method.len > m->max_bytes) {
		m->left_out++;
		return 0;
	}
	char *copy = arena_alloc_text(&m->payloads, method.len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, event->blob.payload, method.len);
	method.payload = (const unsigned char *)copy;
	return vec_push(&m->v, method);
}

int trace_methods_take(struct trace_methods *m, const struct nettrace_event *event)
{
	uint32_t id = event->kind->event_id;

	if (methods_is_rundown(event->kind) ? id == METHOD_LOADED || id == METHOD_END
					    : id == METHOD_LOADED)
		return methods_keep(m, event);
	return rundown_take_event(m->rundown, event);
}

static int methods_order(const void *a, const void *b)
{
	const struct trace_method *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Makes the name of a method from its payload. All modules are known now. */
static int methods_name(struct trace_methods *m, struct trace_method *method)
{
	const struct nettrace_kind kind = {.provider = method->of_rundown ? PROVIDER_RUNDOWN
									  : PROVIDER_RUNTIME,
					   .event_id = METHOD_LOADED,
					   .version = method->version};
	const struct nettrace_event event = {
		.kind = &kind, .blob = {.payload = method->payload, .payload_len = method->len}};

	m->naming = method;
	int r = rundown_take_event(m->rundown, &event);

	if (!r && !method->named)
		r = rundown_flush(m->rundown);
	m->naming = NULL;
	return r;
}

int trace_methods_find(struct trace_methods *m, uint64_t addr, struct trace_method_name *ret_name)
{
	size_t low = 0, high = m->v.len;

	if (!m->sorted && m->v.len)
		qsort(m->v.v, m->v.len, sizeof(*m->v.v), methods_order);
	m->sorted = true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->v.v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	struct trace_method *method = low ? &m->v.v[low - 1] : NULL;

	if (!method || addr >= method->end)
		return -ENOENT;
	int r = method->named ? 0 : methods_name(m, method);

	if (r || !method->named)
		return r ? r : -ENOENT;
	*ret_name =
		(struct trace_method_name){.start = method->start,
					   .name = intern_text(&m->texts, method->name),
					   .len = intern_len(&m->texts, method->name),
					   .assembly = intern_text(&m->texts, method->assembly)};
	return 0;
}
