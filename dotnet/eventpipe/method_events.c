#include "dotnet/eventpipe/method_events.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/eventpipe/ipc.h"
#include "dotnet/eventpipe/nettrace_value.h"
#include "dotnet/eventpipe/session.h"

#include <errno.h>
#include <stdlib.h>

/* Events of the rundown provider, with the versions that .NET 8 to 10 write. */
static const struct events_kind {
	uint32_t event_id, version;
	uint64_t keywords;
} events_kinds[METHOD_EVENTS_KINDS] = {
	{144, 1, 0x30}, {154, 2, 0x20000008}, {156, 1, 0x8}, {146, 1, 0x20038}};

enum { EVENTS_METHOD, EVENTS_MODULE, EVENTS_ASSEMBLY, EVENTS_COMPLETE };

#define EVENTS_LEVEL 4
#define EVENTS_MODULE_HAS_MANIFEST 8
#define EVENTS_TOKEN 0x06000000 /* of a method without a row */
/* A thread that no runtime has. Its events are numbered from 1. */
#define EVENTS_THREAD UINT32_MAX

struct events_module {
	uint64_t id;
	uint32_t assembly; /* id in texts */
	const char *path;  /* NULL: unknown */
};

struct events_method {
	const struct method_event *event;
	uint32_t module; /* index */
};

struct events {
	struct nettrace_writer *w;
	uint32_t kind_id, sequence;
	uint64_t ticks, thread;
	struct outbuf payload, signature;
	struct intern texts;
	VEC(struct events_module) modules;
	struct hashmap by_id;       /* of the runtime */
	struct hashmap by_assembly; /* id in texts -> the first module */
	VEC(struct events_method) methods;
};

/* Writes the event whose payload was made, and empties that. */
static void events_put(struct events *e, uint32_t kind)
{
	const struct nettrace_blob blob = {
		.metadata_id = e->kind_id + kind,
		.sequence = ++e->sequence,
		.capture_thread = EVENTS_THREAD,
		.thread = e->thread,
		.processor = UINT32_MAX,
		/* TraceEvent sorts events by time, and may reverse those of one time. */
		.ticks = e->ticks++,
		.payload = (const unsigned char *)e->payload.data,
		.payload_len = (uint32_t)e->payload.len,
	};

	if (!e->payload.error)
		nettrace_writer_event(e->w, &blob);
	e->payload.len = 0;
}

static int events_add_module(struct events *e, uint64_t id, uint32_t assembly, const char *path,
			     uint32_t *ret_module)
{
	const struct events_module module = {.id = id, .assembly = assembly, .path = path};
	uint32_t index = (uint32_t)e->modules.len, *first;
	int r = vec_push(&e->modules, module) ? -ENOMEM : hashmap_put(&e->by_id, id, index);

	if (!r)
		r = hashmap_entry(&e->by_assembly, assembly, index, &first, NULL);
	if (!r)
		*ret_module = index;
	return r;
}

/* Finds or adds the module of a method. Modules that the runtime has come before made up ones. */
static int events_find_module(struct events *e, const struct method_event *method,
			      uint32_t assembly, uint32_t *ret_module)
{
	const uint32_t *known = method->module ? hashmap_get(&e->by_id, method->module) : NULL;

	if (method->module && !known)
		return events_add_module(e, method->module, assembly, method->path, ret_module);
	/* The id of an unloaded module may be that of another one now. */
	if (!known || e->modules.v[*known].assembly != assembly)
		known = hashmap_get(&e->by_assembly, assembly);
	if (known) {
		*ret_module = *known;
		return 0;
	}
	/* Odd, unlike those of the runtime, which are addresses. */
	return events_add_module(e, 2 * (uint64_t)e->modules.len + 1, assembly, NULL, ret_module);
}

/* Orders methods by their starts, then as in the list. */
static int events_order(const void *a, const void *b)
{
	const struct method_event *x = *(const struct method_event *const *)a,
				  *y = *(const struct method_event *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x < y ? -1 : x > y;
}

/*
 * Sorts n methods, and of those that overlap keeps only the last one in the list, at the front.
 * Returns the number of those.
 */
static size_t events_choose(const struct method_event **methods, size_t n)
{
	size_t kept = 0;

	if (n)
		qsort(methods, n, sizeof(const struct method_event *), events_order);
	for (size_t i = 0; i < n; i++) {
		bool is_newest = true;

		while (kept && is_newest &&
		       methods[i]->start - methods[kept - 1]->start < methods[kept - 1]->bytes) {
			is_newest = methods[i] > methods[kept - 1];
			kept -= is_newest;
		}
		if (is_newest)
			methods[kept++] = methods[i];
	}
	return kept;
}

/* Takes the methods whose module is known, or those whose module is not. */
static int events_take(struct events *e, const struct method_event *const *methods, size_t n,
		       bool known)
{
	int r = 0;

	for (size_t i = 0; i < n && !r; i++) {
		struct events_method method = {.event = methods[i]};
		struct method_name_parts parts;
		uint32_t assembly;

		if ((methods[i]->module != 0) != known || !methods[i]->bytes)
			continue;
		e->signature.len = 0;
		r = method_name_split(methods[i]->name, methods[i]->len, &parts, &e->signature);
		if (r == -EBADMSG) {
			r = 0;
			continue;
		}
		if (!r)
			r = intern_put(&e->texts, parts.assembly, parts.assembly_len, &assembly);
		if (!r)
			r = events_find_module(e, methods[i], assembly, &method.module);
		if (!r)
			r = vec_push(&e->methods, method);
	}
	return r;
}

static void events_put_module(struct events *e, const struct events_module *m)
{
	const char *assembly = intern_text(&e->texts, m->assembly);
	size_t len = intern_len(&e->texts, m->assembly);
	static const char none[16];
	struct outbuf *out = &e->payload;

	ipc_put_u64(out, m->id);
	ipc_put_u64(out, m->id + 2); /* of its assembly */
	ipc_put_u32(out, EVENTS_MODULE_HAS_MANIFEST);
	ipc_put_u32(out, 0);
	/* Runtimes give the name of an assembly without a file instead of its path. */
	if (m->path && *m->path) {
		nettrace_put_utf16(out, m->path, strlen(m->path));
	} else {
		outbuf_utf8_units(out, assembly, len);
		nettrace_put_utf16(out, ".dll", m->path ? 0 : strlen(".dll"));
	}
	ipc_put_u16(out, 0); /* the image's path */
	ipc_put_u16(out, 0); /* instance of the runtime */
	for (int i = 0; i < 2; i++) {
		/* PDBs: GUID, age, path */
		outbuf_put(out, none, sizeof(none));
		ipc_put_u32(out, 0);
		ipc_put_u16(out, 0);
	}
	events_put(e, EVENTS_MODULE);
	ipc_put_u64(out, m->id + 2);
	ipc_put_u64(out, 0); /* the domain */
	ipc_put_u64(out, 0);
	ipc_put_u32(out, 0);
	/* The full name, in which a comma ends the simple name. */
	e->signature.len = 0;
	for (const char *p = assembly; *p; p++) {
		if (strchr(",\\", *p))
			outbuf_char(&e->signature, '\\');
		outbuf_char(&e->signature, *p);
	}
	outbuf_utf8_units(out, e->signature.data, e->signature.len);
	ipc_put_u16(out, 0);
	ipc_put_u16(out, 0);
	events_put(e, EVENTS_ASSEMBLY);
}

static int events_put_method(struct events *e, const struct events_method *m)
{
	const struct method_event *event = m->event;
	struct method_name_parts parts;
	struct outbuf *out = &e->payload;

	e->signature.len = 0;
	int r = method_name_split(event->name, event->len, &parts, &e->signature);

	if (r)
		return r;
	ipc_put_u64(out, event->id ? event->id : event->start);
	ipc_put_u64(out, e->modules.v[m->module].id);
	ipc_put_u64(out, event->start);
	ipc_put_u32(out, event->bytes);
	ipc_put_u32(out,
		    event->token || event->flags & METHOD_DYNAMIC ? event->token : EVENTS_TOKEN);
	ipc_put_u32(out, event->flags);
	nettrace_put_utf16(out, parts.type, parts.type_len);
	nettrace_put_utf16(out, parts.name, parts.name_len);
	nettrace_put_utf16(out, e->signature.data, e->signature.len);
	ipc_put_u16(out, 0);
	events_put(e, EVENTS_METHOD);
	return 0;
}

static void events_put_kinds(struct events *e, const struct nettrace_trace *trace)
{
	for (uint32_t i = 0; i < METHOD_EVENTS_KINDS; i++)
		nettrace_writer_kind(e->w, &(struct nettrace_kind){
						   .provider = PROVIDER_RUNDOWN,
						   .name = "",
						   .metadata_id = e->kind_id + i,
						   .event_id = events_kinds[i].event_id,
						   .version = events_kinds[i].version,
						   .level = EVENTS_LEVEL,
						   .keywords = events_kinds[i].keywords,
					   });
	nettrace_writer_thread(e->w, EVENTS_THREAD, trace->pid, trace->pid);
}

static int events_write(struct events *e, const struct nettrace_trace *trace,
			const struct method_event *const *methods, size_t n)
{
	int r = events_take(e, methods, n, true);

	if (!r)
		r = events_take(e, methods, n, false);
	if (r)
		return r;
	events_put_kinds(e, trace);
	/* In the order of runtimes. TraceEvent shows the case of paths only if they follow. */
	for (size_t i = 0; i < e->methods.len && !r; i++)
		r = events_put_method(e, &e->methods.v[i]);
	for (size_t i = 0; i < e->modules.len; i++)
		events_put_module(e, &e->modules.v[i]);
	ipc_put_u16(&e->payload, 0);
	events_put(e, EVENTS_COMPLETE);
	nettrace_writer_flush(e->w);
	return r ? r : e->payload.error;
}

int method_events_write(struct nettrace_writer *w, const struct nettrace_trace *trace,
			uint32_t kind_id, uint64_t time_ns, const struct method_event *methods,
			size_t n, struct method_events_result *ret_result)
{
	AUTO_FREE const struct method_event **chosen = calloc(n + 1, sizeof(*chosen));

	struct events e = {
		.w = w,
		.kind_id = kind_id,
		.ticks =
			(uint64_t)((unsigned __int128)time_ns * trace->ticks_per_second / NS_PER_S),
		.thread = w->version == 6 ? EVENTS_THREAD : trace->pid,
		.payload = outbuf_to(-1),
		.signature = outbuf_to(-1),
	};
	size_t kept = 0;
	int r = chosen ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !r; i++)
		chosen[i] = &methods[i];
	if (!r) {
		kept = events_choose(chosen, n);
		r = events_write(&e, trace, chosen, kept);
	}
	if (!r)
		*ret_result = (struct method_events_result){.written = e.methods.len,
							    .replaced = n - kept};
	outbuf_close(&e.payload);
	outbuf_close(&e.signature);
	intern_free(&e.texts);
	vec_free(&e.modules);
	hashmap_free(&e.by_id);
	hashmap_free(&e.by_assembly);
	vec_free(&e.methods);
	return r;
}
