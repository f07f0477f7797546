#include "dotnet/eventpipe/rundown.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "dotnet/eventpipe/method_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNDOWN_BUFFER_MB 64
#define RUNDOWN_READ_BYTES ((size_t)4 << 20) /* of one read of a live session */

/* Keywords of both providers. */
#define KEYWORD_LOADER 0x8ULL
#define KEYWORD_JIT 0x10ULL
#define KEYWORD_RUNDOWN_END 0x100ULL
#define KEYWORD_IL_MAPS 0x20000ULL
#define LEVEL_VERBOSE 5 /* at level 4 the runtime reports no methods */

#define ASSEMBLY_COLLECTIBLE 0x8 /* in the flags of an assembly */
#define RUNDOWN_MODULE_BYTES 256 /* about, of a module or assembly besides its texts */
#define NO_ROOM UINT32_MAX       /* no room in the table for what has this id */

/* Events of the runtime's own provider. */
enum {
	EVENT_METHOD_LOAD = 143,
	EVENT_METHOD_UNLOAD = 144,
	EVENT_MODULE_LOAD = 152,
	EVENT_ASSEMBLY_LOAD = 154,
	EVENT_IL_MAP = 190,
};

/* Events of the rundown provider: END at the end of a session, START at its begin. */
enum {
	EVENT_METHOD_START = 143,
	EVENT_METHOD_END = 144,
	EVENT_IL_MAP_START = 149,
	EVENT_IL_MAP_END = 150,
	EVENT_MODULE_START = 153,
	EVENT_MODULE_END = 154,
	EVENT_ASSEMBLY_START = 155,
	EVENT_ASSEMBLY_END = 156,
};

struct rundown_known {
	struct rundown_module module;
	uint64_t assembly_id;
};

/* A method that waits for its module or assembly. Its texts are in pending_text. */
struct rundown_pending {
	struct rundown_method method;
	uint64_t module_id;
	size_t text; /* offset of type, method and signature, without NULs */
	uint32_t type_len, name_len, signature_len;
};

struct rundown {
	struct port port;
	struct rundown_listener listener;
	struct arena arena;
	VEC(struct rundown_known *) modules;
	VEC(const char *) assemblies;
	size_t module_bytes; /* texts of modules and assemblies */
	struct hashmap module_by_id, assembly_by_id;
	VEC(struct rundown_pending) pending;
	struct outbuf pending_text, line; /* line: the name being made */
	struct session *live;
	struct rundown_stats stats;
	uint64_t counted;     /* bytes in listener.memory */
	struct share streams; /* memory of sessions: what only improves names must not end them */
};

int rundown_new(struct opener *o, pid_t pid, const struct rundown_listener *listener,
		struct rundown **ret_rundown)
{
	struct rundown *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->port = (struct port){.opener = o, .pid = pid};
	r->listener = *listener;
	r->streams.of = listener->memory ? listener->memory->of : NULL;
	r->pending_text = outbuf_to(-1);
	r->line = outbuf_to(-1);
	*ret_rundown = r;
	return 0;
}

void rundown_free(struct rundown *r)
{
	if (!r)
		return;
	session_free(r->live);
	vec_free(&r->modules);
	vec_free(&r->assemblies);
	hashmap_free(&r->module_by_id);
	hashmap_free(&r->assembly_by_id);
	vec_free(&r->pending);
	outbuf_close(&r->pending_text);
	outbuf_close(&r->line);
	arena_free(&r->arena);
	share_release(r->listener.memory, &r->counted);
	free(r);
}

/* Counts the memory that is kept, and `more`. False: too little is left. */
static bool rundown_has_memory(struct rundown *r, size_t more)
{
	size_t bytes = r->arena.total_bytes + vec_bytes(&r->modules) + vec_bytes(&r->assemblies) +
		       hashmap_bytes(&r->module_by_id) + hashmap_bytes(&r->assembly_by_id) +
		       r->pending.len * sizeof(*r->pending.v) + r->pending_text.len;

	bool fits = !share_count(r->listener.memory, &r->counted, bytes + more);

	r->stats.refused += !fits;
	return fits;
}

uint64_t rundown_module_key(const struct rundown_module *module)
{
	uint64_t guid = hash_bytes(module->pdb_guid, sizeof(module->pdb_guid));

	return hash_mix(hash_mix(module->id, guid),
			hash_bytes(module->il_path, strlen(module->il_path)));
}

/* Appends the next text of an event to out as UTF-8, without a NUL. */
static void rundown_utf8(struct reader *r, struct outbuf *out)
{
	size_t units = 0;
	const void *utf16 = nettrace_utf16(r, RUNDOWN_TEXT_MAX, &units);

	if (utf16)
		outbuf_utf16(out, utf16, units);
}

/*
 * Keeps the next text of an event. "": no room left, or damaged (event has failed). NULL: out of
 * memory.
 */
static const char *rundown_keep(struct rundown *r, struct reader *event)
{
	struct outbuf text = outbuf_to(-1);

	rundown_utf8(event, &text);
	if (text.len > RUNDOWN_MODULES_BYTES_MAX - r->module_bytes)
		text.len = 0;
	const char *kept =
		text.error ? NULL : arena_strndup(&r->arena, text.data ? text.data : "", text.len);

	r->module_bytes += text.len;
	outbuf_close(&text);
	return kept;
}

/*
 * Cuts "System.Private.CoreLib, Version=10.0.0.0, ..." at the comma, in place. "\," is not the end.
 */
static void rundown_simple_name(char *name)
{
	char *to = name;

	for (const char *p = name; *p && *p != ','; p++) {
		if (*p == '\\' && p[1])
			p++;
		*to++ = *p;
	}
	*to = 0;
}

/* Marks an id as without room, so its earlier owner is not mistaken for the present one. */
static void rundown_forget(struct hashmap *by_id, uint64_t id)
{
	uint32_t *at = hashmap_get(by_id, id);

	if (at)
		*at = NO_ROOM;
}

static int rundown_assembly(struct rundown *r, struct reader *event)
{
	struct outbuf text = outbuf_to(-1);
	uint64_t id = reader_u64(event);
	char *name = NULL;
	size_t len = 0;
	int error = 0;

	reader_skip(event, 8 + 8);
	r->stats.collectible += (reader_u32(event) & ASSEMBLY_COLLECTIBLE) != 0;
	rundown_utf8(event, &text);
	if (!event->failed && (r->assemblies.len >= RUNDOWN_MODULES_MAX ||
			       !rundown_has_memory(r, text.len + RUNDOWN_MODULE_BYTES))) {
		rundown_forget(&r->assembly_by_id, id);
	} else if (!event->failed) {
		outbuf_char(&text, 0);
		error = text.error;
		if (!error) {
			rundown_simple_name(text.data);
			len = strlen(text.data);
			len = len > RUNDOWN_MODULES_BYTES_MAX - r->module_bytes ? 0 : len;
			name = arena_strndup(&r->arena, text.data, len);
			r->module_bytes += len;
			error = name ? vec_push(&r->assemblies, name) : -ENOMEM;
		}
		if (!error)
			error = hashmap_put(&r->assembly_by_id, id,
					    (uint32_t)(r->assemblies.len - 1));
	}
	outbuf_close(&text);
	return error;
}

static int rundown_module(struct rundown *r, const struct nettrace_event *e, struct reader *event)
{
	struct rundown_known known = {.module = {.assembly = "", .pdb_path = ""}}, *kept;
	struct rundown_module *m = &known.module;

	m->id = reader_u64(event);
	if (r->modules.len >= RUNDOWN_MODULES_MAX ||
	    !rundown_has_memory(r, reader_left(event) + RUNDOWN_MODULE_BYTES)) {
		if (!event->failed)
			rundown_forget(&r->module_by_id, m->id);
		return 0;
	}
	known.assembly_id = reader_u64(event);
	m->flags = reader_u32(event);
	reader_skip(event, 4);
	m->il_path = rundown_keep(r, event);
	if (e->kind->version >= 2) {
		size_t units = 0;

		/* The path of a precompiled image (old runtimes). */
		(void)nettrace_utf16(event, RUNDOWN_TEXT_MAX, &units);
		reader_skip(event, 2);
		const void *guid = reader_bytes(event, sizeof(m->pdb_guid));

		if (guid)
			memcpy(m->pdb_guid, guid, sizeof(m->pdb_guid));
		m->pdb_age = reader_u32(event);
		m->pdb_path = rundown_keep(r, event);
	}
	if (!m->il_path || !m->pdb_path)
		return -ENOMEM;
	if (event->failed)
		return 0;
	kept = arena_alloc(&r->arena, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	*kept = known;
	if (vec_push(&r->modules, kept))
		return -ENOMEM;
	return hashmap_put(&r->module_by_id, m->id, (uint32_t)(r->modules.len - 1));
}

/* Stands for modules that found no room. */
static const struct rundown_module unknown_module = {
	.assembly = "?", .il_path = "", .pdb_path = ""};

/* Finds a module with its assembly's name. NULL: one of them was not reported yet. */
static const struct rundown_module *rundown_find_module(struct rundown *r, uint64_t id)
{
	const uint32_t *at = hashmap_get(&r->module_by_id, id);

	if (!at || *at == NO_ROOM)
		return at ? &unknown_module : NULL;
	struct rundown_known *known = r->modules.v[*at];

	if (!known->module.assembly[0]) {
		const uint32_t *assembly = hashmap_get(&r->assembly_by_id, known->assembly_id);

		if (!assembly)
			return NULL;
		known->module.assembly =
			*assembly == NO_ROOM ? unknown_module.assembly : r->assemblies.v[*assembly];
	}
	return &known->module;
}

/* Makes the name of a method and reports it. */
static int rundown_report(struct rundown *r, const struct rundown_pending *p)
{
	const char *type = r->pending_text.data + p->text, *name = type + p->type_len,
		   *signature = name + p->name_len;
	struct rundown_method m = p->method;
	struct outbuf full = outbuf_to(-1);
	int error = -ENOENT;

	m.module = rundown_find_module(r, p->module_id);
	if ((!m.module || m.module == &unknown_module) && !(m.flags & METHOD_DYNAMIC))
		r->stats.no_module++;
	outbuf_printf(&full, "[%s] ", m.module ? m.module->assembly : "?");
	outbuf_put(&full, type, p->type_len);
	outbuf_str(&full, "::");
	outbuf_put(&full, name, p->name_len);
	r->line.len = 0;
	if (!full.error && r->listener.signature && m.module && !(m.flags & METHOD_DYNAMIC))
		error = r->listener.signature(r->listener.ctx, m.module, m.token, full.data,
					      full.len, &r->line);
	if (error && !full.error) {
		r->line.len = 0;
		r->stats.inexact++;
		method_name_signature(signature, p->signature_len, full.data, full.len, &r->line);
	}
	outbuf_printf(&r->line, "[%s]", method_name_tier(m.flags));
	outbuf_char(&r->line, 0);
	error = full.error ? full.error : r->line.error;
	outbuf_close(&full);
	if (error)
		return error;
	m.name = r->line.data;
	m.len = r->line.len - 1;
	r->stats.methods++;
	r->stats.precompiled += !(m.flags & METHOD_JITTED);
	return r->listener.method(r->listener.ctx, &m);
}

int rundown_flush(struct rundown *r)
{
	int error = 0;

	for (size_t i = 0; i < r->pending.len && !error; i++)
		error = rundown_report(r, &r->pending.v[i]);
	vec_free(&r->pending);
	outbuf_close(&r->pending_text);
	r->pending_text = outbuf_to(-1);
	(void)rundown_has_memory(r, 0);
	return error;
}

static int rundown_method(struct rundown *r, const struct nettrace_event *e, struct reader *event,
			  bool loaded)
{
	struct rundown_pending p = {.text = r->pending_text.len};
	struct rundown_method *m = &p.method;

	m->id = reader_u64(event);
	p.module_id = reader_u64(event);
	m->start = reader_u64(event);
	m->bytes = reader_u32(event);
	m->token = reader_u32(event);
	m->flags = reader_u32(event);
	m->time_ns = e->time_ns;
	m->loaded = loaded;
	rundown_utf8(event, &r->pending_text);
	p.type_len = (uint32_t)(r->pending_text.len - p.text);
	rundown_utf8(event, &r->pending_text);
	p.name_len = (uint32_t)(r->pending_text.len - p.text) - p.type_len;
	rundown_utf8(event, &r->pending_text);
	p.signature_len = (uint32_t)(r->pending_text.len - p.text) - p.type_len - p.name_len;
	outbuf_char(&r->pending_text, 0); /* ensures that data is not NULL if all texts are empty */
	if (e->kind->version >= 2 && !event->failed) {
		reader_skip(event, 2);
		m->code_id = reader_u64(event);
	}
	if (r->pending_text.error)
		return r->pending_text.error;
	bool too_many = r->pending_text.len > RUNDOWN_PENDING_BYTES_MAX ||
			r->pending.len >= RUNDOWN_PENDING_MAX;

	if (event->failed || !m->bytes || too_many) {
		r->pending_text.len = p.text;
		return too_many ? -E2BIG : 0;
	}
	/* Keep the order, because the latest method at an address is valid. */
	if (r->pending.len || !rundown_find_module(r, p.module_id)) {
		int error = vec_push(&r->pending, p);

		/* Names without an assembly are better than none. */
		return error || rundown_has_memory(r, 0) ? error : rundown_flush(r);
	}
	int error = rundown_report(r, &p);

	r->pending_text.len = p.text;
	return error;
}

static int rundown_take_gone(struct rundown *r, const struct nettrace_event *e,
			     struct reader *event)
{
	reader_skip(event, 8 + 8);
	uint64_t start = reader_u64(event);

	if (event->failed)
		return 0;
	r->stats.gone++;
	/* Pending methods may include this one. */
	int error = r->pending.len ? rundown_flush(r) : 0;

	return error || !r->listener.gone ? error
					  : r->listener.gone(r->listener.ctx, start, e->time_ns);
}

static int rundown_il_map(struct rundown *r, struct reader *event)
{
	struct rundown_il_map map = {.method_id = reader_u64(event)};

	map.code_id = reader_u64(event);
	reader_skip(event, 1);
	map.count = reader_u16(event);
	map.il = reader_bytes(event, map.count * 4);
	map.native = reader_bytes(event, map.count * 4);
	if (event->failed)
		return 0;
	r->stats.il_maps++;
	return r->listener.il_map ? r->listener.il_map(r->listener.ctx, &map) : 0;
}

static int rundown_take_runtime(struct rundown *r, const struct nettrace_event *e,
				struct reader *event)
{
	switch (e->kind->event_id) {
	case EVENT_METHOD_LOAD:
		return rundown_method(r, e, event, true);
	case EVENT_METHOD_UNLOAD:
		return rundown_take_gone(r, e, event);
	case EVENT_MODULE_LOAD:
		return rundown_module(r, e, event);
	case EVENT_ASSEMBLY_LOAD:
		return rundown_assembly(r, event);
	case EVENT_IL_MAP:
		return rundown_il_map(r, event);
	default:
		return 0;
	}
}

static int rundown_take_rundown(struct rundown *r, const struct nettrace_event *e,
				struct reader *event)
{
	switch (e->kind->event_id) {
	case EVENT_METHOD_START:
	case EVENT_METHOD_END:
		return rundown_method(r, e, event, false);
	case EVENT_IL_MAP_START:
	case EVENT_IL_MAP_END:
		return rundown_il_map(r, event);
	case EVENT_MODULE_START:
	case EVENT_MODULE_END:
		return rundown_module(r, e, event);
	case EVENT_ASSEMBLY_START:
	case EVENT_ASSEMBLY_END:
		return rundown_assembly(r, event);
	default:
		return 0;
	}
}

int rundown_take_event(struct rundown *r, const struct nettrace_event *e)
{
	struct reader event = reader_of(e->blob.payload, e->blob.payload_len);
	int error = 0;

	if (!strcmp(e->kind->provider, PROVIDER_RUNTIME))
		error = rundown_take_runtime(r, e, &event);
	else if (!strcmp(e->kind->provider, PROVIDER_RUNDOWN))
		error = rundown_take_rundown(r, e, &event);
	r->stats.bad += event.failed;
	return error;
}

static int rundown_event(void *ctx, const struct nettrace_event *e)
{
	return rundown_take_event(ctx, e);
}

static void rundown_add_stats(struct rundown_stats *stats, const struct session *s)
{
	struct nettrace_stats stream = session_stats(s);

	stats->stream.events += stream.events;
	stats->stream.bytes += stream.bytes;
	stats->stream.lost += stream.lost;
	stats->stream.unknown += stream.unknown;
}

struct rundown_stats rundown_stats(const struct rundown *r)
{
	struct rundown_stats stats = r->stats;

	if (r->live)
		rundown_add_stats(&stats, r->live);
	return stats;
}

static int rundown_flush_fail(struct rundown *r, struct port_error *err)
{
	int error = rundown_flush(r);

	if (error)
		*err = (struct port_error){.code = error, .what = "its methods cannot be kept"};
	return error;
}

/* Runs a session that sends only a rundown. */
static int rundown_once(struct rundown *r, uint64_t keywords, bool exact, uint64_t deadline_ns,
			struct port_error *err)
{
	/* Runtimes refuse a session without a provider. No provider has this name. */
	const struct session_provider nobody = {.name = "profcpu"};
	const struct session_request request = {.providers = &nobody,
						.nproviders = 1,
						.rundown = keywords,
						.rundown_exact = exact,
						.buffer_mb = RUNDOWN_BUFFER_MB};
	const struct nettrace_listener listener = {
		.event = rundown_event, .ctx = r, .memory = &r->streams};
	struct session *s;
	int error = session_begin(&r->port, &request, &listener, NULL, deadline_ns, &s, err);

	if (error)
		return error;
	error = session_stop(s, deadline_ns, err);
	rundown_add_stats(&r->stats, s);
	session_free(s);
	/* The events of a session cut short are valid too. */
	int flushed = rundown_flush_fail(r, err);

	return error ? error : flushed;
}

int rundown_count_collectible(struct rundown *r, uint64_t deadline_ns, struct port_error *err)
{
	return rundown_once(r, KEYWORD_LOADER | KEYWORD_RUNDOWN_END, true, deadline_ns, err);
}

int rundown_snapshot(struct rundown *r, bool il_maps, uint64_t deadline_ns, struct port_error *err)
{
	return rundown_once(r,
			    KEYWORD_LOADER | KEYWORD_JIT | KEYWORD_RUNDOWN_END |
				    (il_maps ? KEYWORD_IL_MAPS : 0),
			    false, deadline_ns, err);
}

int rundown_live_begin(struct rundown *r, bool il_maps, uint64_t deadline_ns,
		       struct port_error *err)
{
	/* Select the events, because half of the bytes would be methods about to be compiled. */
	static const uint32_t ids[] = {EVENT_METHOD_LOAD, EVENT_METHOD_UNLOAD, EVENT_MODULE_LOAD,
				       EVENT_ASSEMBLY_LOAD, EVENT_IL_MAP};
	const struct session_provider runtime = {
		.name = PROVIDER_RUNTIME,
		.keywords = KEYWORD_LOADER | KEYWORD_JIT | (il_maps ? KEYWORD_IL_MAPS : 0),
		.level = LEVEL_VERBOSE,
		.ids = ids,
		.nids = sizeof(ids) / sizeof(ids[0]) - !il_maps,
	};
	const struct session_request request = {
		.providers = &runtime, .nproviders = 1, .buffer_mb = RUNDOWN_BUFFER_MB};
	const struct nettrace_listener listener = {
		.event = rundown_event, .ctx = r, .memory = &r->streams};

	if (r->live) {
		*err = (struct port_error){.code = -EBUSY,
					   .what = "its events are already being read"};
		return -EBUSY;
	}
	return session_begin(&r->port, &request, &listener, NULL, deadline_ns, &r->live, err);
}

int rundown_live_fd(const struct rundown *r)
{
	return r->live ? session_fd(r->live) : -1;
}

int rundown_live_read(struct rundown *r, struct port_error *err)
{
	if (r->live)
		return session_read(r->live, RUNDOWN_READ_BYTES, err);
	*err = (struct port_error){.code = -ENODATA, .what = "its events are not being read"};
	return -ENODATA;
}

bool rundown_live_has_more(const struct rundown *r)
{
	return r->live && session_has_more(r->live);
}

int rundown_live_end(struct rundown *r, uint64_t deadline_ns, struct port_error *err)
{
	if (!r->live)
		return 0;
	int error = session_stop(r->live, deadline_ns, err);

	rundown_add_stats(&r->stats, r->live);
	session_free(r->live);
	r->live = NULL;
	int flushed = rundown_flush_fail(r, err);

	return error ? error : flushed;
}
