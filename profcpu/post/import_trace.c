#include "profcpu/post/import_trace.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/rundown.h"
#include "symbols/core/symbol.h"
#include "symbols/names/managed_name.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE_BLOCK_BYTES ((size_t)256 << 10)
#define TRACE_FRAMES_MAX 100 /* of a stack: runtimes leave out further callers */
#define TRACE_EXTERNAL 1     /* type of a sample outside of managed code */
#define TRACE_GROUPS_MAX ((size_t)1 << 27)
#define TRACE_METHODS_BYTES_MAX ((size_t)512 << 20) /* payloads of events that list methods */
#define TRACE_METHOD_LOADED 143
#define TRACE_METHOD_END 144 /* of the rundown */
#define TRACE_PROVIDER_INFO "Microsoft-DotNETCore-EventPipe"

/* A stack of a thread, and its samples. */
struct trace_group {
	uint64_t thread; /* id */
	uint64_t weight;
	uint32_t stack; /* id in stacks */
	uint32_t samples;
	bool outside;
};

/* A method that the trace lists. Its name is made when a frame needs it. */
struct trace_method {
	uint64_t start, end;
	const unsigned char *payload;
	uint32_t len, order;
	uint32_t version;
	bool of_rundown;
	bool named;
	uint32_t name, module; /* ids in texts, if named */
};

/* The use of an event here. */
enum trace_role { TRACE_IGNORED, TRACE_CHOSEN, TRACE_OTHER, TRACE_INFO, TRACE_RUNDOWN };

struct trace_kind {
	bool known;
	enum trace_role role;
	bool is_sample, is_method, of_rundown;
	uint32_t name; /* id in names */
};

/* Events of one name that have a stack and were not chosen. */
struct trace_other {
	uint64_t events;
	uint32_t name; /* id in names */
};

struct trace_import {
	const struct import_trace_options *options;
	struct profile *profile;
	struct import_trace_result *result;
	struct rundown *rundown;
	struct nettrace_trace head;
	char *wanted, *field; /* of options->event */
	struct intern stacks; /* addresses as they are in the trace */
	struct intern texts;
	struct intern names;          /* of events */
	VEC(struct trace_kind) kinds; /* by their number */
	VEC(struct trace_group) groups;
	struct hashmap group_by_key;
	VEC(struct trace_method) methods;
	struct arena payloads; /* of the methods */
	struct trace_method *naming;
	VEC(struct trace_other) others; /* by id in names; without those that were chosen */
	struct hashmap frame_of; /* address and whether it is a caller -> frame of the profile */
	VEC(uint32_t) frames;    /* of the stack that is being added, innermost first */
	uint32_t program;        /* id in texts */
	bool has_program;
};

static int trace_take_head(void *ctx, const struct nettrace_trace *head)
{
	struct trace_import *t = ctx;

	t->head = *head;
	return 0;
}

/* The program of a command line, without its arguments, which may hold secrets. */
static int trace_take_program(struct trace_import *t, const struct nettrace_event *event)
{
	struct outbuf line = outbuf_to(-1);
	struct event_value value;
	int r = 0;

	if (event_payload_find(event, t->head.pointer_bytes, "CommandLine", &value) ||
	    value.type != EVENT_TEXT16)
		return 0;
	outbuf_utf16(&line, value.bytes, value.len);
	outbuf_char(&line, 0);
	if (!line.error) {
		char *rest = line.data, *word = strsep(&rest, " "), *next = strsep(&rest, " ");
		char *base = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;

		if (!strcmp(base, "dotnet") && next) {
			base = strrchr(next, '/') ? strrchr(next, '/') + 1 : next;
			char *dll = strstr(base, ".dll");

			if (dll && !dll[4])
				*dll = 0;
		}
		r = intern_str(&t->texts, base, &t->program);
		t->has_program = !r && *base;
	}
	outbuf_close(&line);
	return r;
}

/* Whether a name is one of a sampler's poll for suspension, which is above what was running. */
static bool trace_is_poll(const char *name)
{
	return strstr(name, "System.Threading.Thread::PollGC(") ||
	       strstr(name, "System.Threading.Thread::<PollGC>g__PollGC");
}

/* Keeps the payload of an event that lists a method. */
static int trace_keep_method(struct trace_import *t, const struct nettrace_event *event,
			     const struct trace_kind *kind)
{
	struct reader r = reader_of(event->blob.payload, event->blob.payload_len);
	struct trace_method m = {.len = event->blob.payload_len,
				 .order = (uint32_t)t->methods.len,
				 .version = event->kind->version,
				 .of_rundown = kind->of_rundown};

	reader_skip(&r, 2 * sizeof(uint64_t)); /* ids of the method and its module */
	m.start = reader_u64(&r);
	m.end = m.start + reader_u32(&r);
	if (r.failed || m.end <= m.start)
		return 0;
	if (t->payloads.total_bytes + m.len > TRACE_METHODS_BYTES_MAX) {
		t->result->methods_left_out++;
		return 0;
	}
	char *copy = arena_alloc_text(&t->payloads, m.len);

	if (!copy)
		return -ENOMEM;
	memcpy(copy, event->blob.payload, m.len);
	m.payload = (const unsigned char *)copy;
	return vec_push(&t->methods, m);
}

/* Takes the name of the method that is being named. */
static int trace_take_name(void *ctx, const struct rundown_method *named)
{
	struct trace_import *t = ctx;
	struct trace_method *m = t->naming;
	int r = intern_put(&t->texts, named->name, named->len, &m->name);

	if (!r)
		r = intern_str(&t->texts, named->module ? named->module->assembly : "", &m->module);
	m->named = !r;
	return r;
}

/* Makes the name of a method from its payload. All modules are known now. */
static int trace_name_method(struct trace_import *t, struct trace_method *m)
{
	const struct nettrace_kind kind = {.provider = m->of_rundown ? PROVIDER_RUNDOWN
								     : PROVIDER_RUNTIME,
					   .event_id = TRACE_METHOD_LOADED,
					   .version = m->version};
	const struct nettrace_event event = {
		.kind = &kind, .blob = {.payload = m->payload, .payload_len = m->len}};

	t->naming = m;
	int r = rundown_take_event(t->rundown, &event);

	return r || m->named ? r : rundown_flush(t->rundown);
}

static int trace_add(struct trace_import *t, const struct nettrace_event *event, uint64_t weight,
		     bool outside)
{
	uint32_t stack, *index;
	int is_new,
		r = intern_put(&t->stacks, (const char *)event->stack, event->stack_bytes, &stack);

	if (r)
		return r;
	uint64_t key = hash_mix(hash_mix(event->thread, stack), outside);

	if (t->groups.len >= TRACE_GROUPS_MAX)
		return -E2BIG;
	r = hashmap_entry(&t->group_by_key, key, (uint32_t)t->groups.len, &index, &is_new);
	if (!r && is_new)
		r = vec_push(&t->groups,
			     ((struct trace_group){
				     .thread = event->thread, .stack = stack, .outside = outside}));
	if (r)
		return r;
	struct trace_group *g = &t->groups.v[*index];

	g->samples += g->samples < UINT32_MAX;
	g->weight = g->weight > UINT64_MAX - weight ? UINT64_MAX : g->weight + weight;
	t->result->samples++;
	return 0;
}

/* The weight of an event: a field that is a number. False: it has none. */
static bool trace_weight(const struct trace_import *t, const struct nettrace_event *event,
			 uint64_t *ret_weight)
{
	struct event_value v;

	if (event_payload_find(event, t->head.pointer_bytes, t->field, &v))
		return false;
	switch (v.type) {
	case EVENT_F32:
	case EVENT_F64:
		if (!(v.real >= 0 && v.real < 0x1p63))
			return false;
		*ret_weight = (uint64_t)llround(v.real);
		return true;
	case EVENT_I8:
	case EVENT_I16:
	case EVENT_I32:
	case EVENT_I64:
	case EVENT_VARINT:
		*ret_weight = (int64_t)v.number < 0 ? 0 : v.number;
		return true;
	case EVENT_GUID:
	case EVENT_TEXT16:
	case EVENT_TEXT8:
	case EVENT_TIME:
		return false;
	default:
		*ret_weight = v.number;
		return true;
	}
}

static int trace_count_other(struct trace_import *t, const struct trace_kind *kind)
{
	t->result->other_events++;
	while (t->others.len <= kind->name) {
		const struct trace_other other = {.name = (uint32_t)t->others.len};

		if (vec_push(&t->others, other))
			return -ENOMEM;
	}
	t->others.v[kind->name].events++;
	return 0;
}

/* Decides what events of a kind are here. */
static int trace_classify(struct trace_import *t, const struct nettrace_kind *kind,
			  struct trace_kind *ret_kind)
{
	bool of_runtime = !strcmp(kind->provider, PROVIDER_RUNTIME);
	struct trace_kind k = {.known = true,
			       .is_sample = !strcmp(kind->provider, PROVIDER_SAMPLER),
			       .of_rundown = !strcmp(kind->provider, PROVIDER_RUNDOWN)};

	/* With the same layout: loaded, listed at the start, and listed at the end. */
	k.is_method = (of_runtime && kind->event_id == TRACE_METHOD_LOADED) ||
		      (k.of_rundown && (kind->event_id == TRACE_METHOD_LOADED ||
					kind->event_id == TRACE_METHOD_END));
	if (t->wanted ? !strcmp(t->wanted, kind->name) : k.is_sample)
		k.role = TRACE_CHOSEN;
	else if (!strcmp(kind->provider, TRACE_PROVIDER_INFO))
		k.role = TRACE_INFO;
	else
		k.role = (of_runtime || k.of_rundown) && !k.is_method ? TRACE_RUNDOWN : TRACE_OTHER;
	*ret_kind = k;
	return intern_str(&t->names, kind->name, &ret_kind->name);
}

static int trace_kind_of(struct trace_import *t, const struct nettrace_kind *kind,
			 const struct trace_kind **ret_kind)
{
	int r = 0;

	while (t->kinds.len <= kind->number)
		if (vec_push(&t->kinds, (struct trace_kind){0}))
			return -ENOMEM;
	if (!t->kinds.v[kind->number].known)
		r = trace_classify(t, kind, &t->kinds.v[kind->number]);
	*ret_kind = &t->kinds.v[kind->number];
	return r;
}

static int trace_take_chosen(struct trace_import *t, const struct nettrace_event *event,
			     const struct trace_kind *kind)
{
	struct event_value type = {0};
	uint64_t weight = 1;

	if (t->field && !trace_weight(t, event, &weight)) {
		t->result->unweighted++;
		return 0;
	}
	if (kind->is_sample)
		(void)event_payload_find(event, t->head.pointer_bytes, "Type", &type);
	return trace_add(t, event, weight, kind->is_sample && type.number == TRACE_EXTERNAL);
}

static int trace_take_event(void *ctx, const struct nettrace_event *event)
{
	struct trace_import *t = ctx;
	const struct trace_kind *kind;
	int r = trace_kind_of(t, event->kind, &kind);

	if (!r && kind->is_method)
		r = trace_keep_method(t, event, kind);
	else if (!r && kind->role == TRACE_RUNDOWN)
		r = rundown_take_event(t->rundown, event);
	else if (!r && kind->role == TRACE_INFO)
		r = trace_take_program(t, event);
	if (r || !event->stack)
		return r;
	return kind->role == TRACE_CHOSEN ? trace_take_chosen(t, event, kind)
					  : trace_count_other(t, kind);
}

static int trace_order(const void *a, const void *b)
{
	const struct trace_method *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* The method at an address; of several, the one that the trace listed last. NULL: none. */
static struct trace_method *trace_method_at(const struct trace_import *t, uint64_t addr)
{
	size_t low = 0, high = t->methods.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->methods.v[middle].start <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	struct trace_method *m = low ? &t->methods.v[low - 1] : NULL;

	return m && addr < m->end ? m : NULL;
}

static int trace_name_frame(struct trace_import *t, const struct trace_method *m, uint64_t addr,
			    struct profile_frame *frame)
{
	const char *raw = intern_text(&t->texts, m->name), *module;
	struct outbuf full = outbuf_to(-1);
	size_t len = intern_len(&t->texts, m->name);

	frame->addr = t->options->functions_only ? m->start : addr;
	frame->sym_off = frame->addr - m->start;
	frame->has_sym_off = true;
	frame->kind = FRAME_MANAGED;
	frame->status = FRAME_IS_NAMED;
	frame->source = SYMBOL_RUNDOWN;
	int r = profile_text(t->profile, raw, len, &frame->perf_name);

	if (t->options->raw_names)
		outbuf_put(&full, raw, len);
	else
		managed_name_full(raw, len, &full, NULL, NULL);
	if (!r)
		r = full.error ? full.error
			       : profile_text(t->profile, full.data, full.len, &frame->name);
	outbuf_close(&full);
	module = intern_text(&t->texts, m->module);
	if (!r && *module)
		r = profile_text(t->profile, module, strlen(module), &frame->module);
	return r;
}

/* The frame of an address. A return address is behind its call, perhaps behind its method. */
static int trace_frame(struct trace_import *t, uint64_t addr, bool is_caller, uint32_t *ret_frame)
{
	struct profile_frame frame = {.addr = addr,
				      .perf_name = PROFILE_NONE,
				      .module = PROFILE_NONE,
				      .srcline = PROFILE_NONE};
	uint32_t *known, blank = 0;
	int is_new,
		r = hashmap_entry(&t->frame_of, hash_mix(addr, is_caller), blank, &known, &is_new);

	if (r || !is_new) {
		*ret_frame = r ? 0 : *known;
		return r;
	}
	struct trace_method *m = trace_method_at(t, addr - is_caller);

	if (m && !m->named)
		r = trace_name_method(t, m);
	if (!r && m && m->named) {
		r = trace_name_frame(t, m, addr, &frame);
	} else if (!r) {
		frame.addr = t->options->functions_only ? 0 : addr;
		r = profile_text(t->profile, "[unknown]", strlen("[unknown]"), &frame.name);
	}
	if (!r)
		r = profile_frame(t->profile, &frame, ret_frame);
	if (!r)
		*known = *ret_frame;
	return r;
}

/* Whether the innermost frame is the runtime's poll for suspension. */
static bool trace_frame_is_poll(const struct trace_import *t, uint32_t frame)
{
	uint32_t name = profile_frame_of(t->profile, frame)->perf_name;

	return name != PROFILE_NONE && trace_is_poll(profile_text_of(t->profile, name, NULL));
}

static int trace_put_group(struct trace_import *t, const struct trace_group *g, uint32_t event)
{
	const unsigned char *bytes = (const unsigned char *)intern_text(&t->stacks, g->stack);
	size_t size = t->head.pointer_bytes, n = intern_len(&t->stacks, g->stack) / size;
	struct profile_sample sample = {.event = event, .cpu = -1};
	size_t first = 0;
	bool cut = n >= TRACE_FRAMES_MAX && t->head.version < 6, was_cut = false;
	int r = 0;

	t->frames.len = 0;
	for (size_t i = 0; i < n && !r; i++) {
		uint64_t addr = 0;
		uint32_t frame;

		memcpy(&addr, bytes + i * size, size);
		r = trace_frame(t, addr, i > 0, &frame);
		if (!r)
			r = vec_push(&t->frames, frame);
	}
	while (!r && first + 1 < n && trace_frame_is_poll(t, t->frames.v[first]))
		first++;
	if (t->options->max_stack && n - first > t->options->max_stack) {
		n = first + t->options->max_stack;
		cut = true;
	}
	if (!r)
		r = profile_stack_of(t->profile, t->frames.v + first, n - first, cut, &sample.stack,
				     &was_cut);
	if (!r && g->outside)
		r = profile_mark(t->profile, sample.stack, IMPORT_TRACE_OUTSIDE, FRAME_NATIVE,
				 &sample.stack);
	if (r)
		return r;
	t->result->cut_stacks += was_cut ? g->samples : 0;
	t->result->frames += (uint64_t)(n - first) * g->samples;
	for (size_t i = first; i < n; i++)
		if (profile_frame_of(t->profile, t->frames.v[i])->status != FRAME_IS_NAMED)
			t->result->nameless += g->samples;
	struct profile_thread thread = {.pid = (int32_t)t->head.pid, .tid = (int32_t)g->thread};

	r = profile_text(t->profile, t->has_program ? intern_text(&t->texts, t->program) : ".NET",
			 t->has_program ? intern_len(&t->texts, t->program) : 4, &thread.comm);
	if (!r)
		r = profile_thread(t->profile, &thread, &sample.thread);
	/* Each has an equal part of the weight; the first one has the rest, too. */
	sample.weight = g->weight / g->samples + g->weight % g->samples;
	for (uint32_t i = 0; i < g->samples && !r; i++) {
		r = profile_sample(t->profile, &sample);
		sample.weight = g->weight / g->samples;
	}
	return r;
}

static int trace_put_groups(struct trace_import *t)
{
	struct profile_event event = {.has_period = t->field != NULL};
	const char *name = t->options->event ? t->options->event : IMPORT_TRACE_SAMPLES;
	uint32_t id;
	int r = 0;

	if (t->methods.len)
		qsort(t->methods.v, t->methods.len, sizeof(*t->methods.v), trace_order);
	if (t->groups.len)
		r = profile_text(t->profile, name, strlen(name), &event.name);
	if (t->groups.len && !r)
		r = profile_event(t->profile, &event, &id);
	for (size_t i = 0; i < t->groups.len && !r; i++)
		r = trace_put_group(t, &t->groups.v[i], id);
	return r;
}

static int trace_more_first(const void *a, const void *b)
{
	const struct trace_other *x = a, *y = b;

	if (x->events != y->events)
		return x->events < y->events ? 1 : -1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The most frequent events that could be chosen. */
static void trace_name_others(struct trace_import *t)
{
	char *text = t->result->others;
	size_t len = 0;

	if (t->others.len)
		qsort(t->others.v, t->others.len, sizeof(*t->others.v), trace_more_first);
	for (size_t i = 0;
	     i < t->others.len && t->others.v[i].events && len < sizeof(t->result->others); i++)
		len += (size_t)snprintf(text + len, sizeof(t->result->others) - len, "%s%s (%llu)",
					i ? ", " : "", intern_text(&t->names, t->others.v[i].name),
					(unsigned long long)t->others.v[i].events);
}

static int trace_read(struct trace_import *t, int fd, struct parse_error *err)
{
	const struct nettrace_listener listener = {
		.trace = trace_take_head, .event = trace_take_event, .ctx = t};
	AUTO_FREE char *block = malloc(TRACE_BLOCK_BYTES);
	struct nettrace *n = NULL;
	int r = block ? nettrace_new(&listener, &n) : -ENOMEM;

	while (!r && !nettrace_ended(n)) {
		ssize_t got = read(fd, block, TRACE_BLOCK_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			r = got ? -errno : 0;
			break;
		}
		r = nettrace_feed(n, block, (size_t)got, err);
	}
	if (n) {
		t->result->events = nettrace_stats(n).events;
		t->result->lost = nettrace_stats(n).lost;
		t->result->unknown = nettrace_stats(n).unknown;
		t->result->is_cut = !nettrace_ended(n);
	}
	nettrace_free(n);
	return r;
}

int post_import_trace(int fd, const struct import_trace_options *options, struct profile *profile,
		      struct import_trace_result *ret_result, struct parse_error *err)
{
	struct trace_import t = {.options = options, .profile = profile, .result = ret_result};
	const struct rundown_listener listener = {.method = trace_take_name, .ctx = &t};

	*ret_result = (struct import_trace_result){0};
	t.wanted = options->event ? strdup(options->event) : NULL;
	int r = options->event && !t.wanted ? -ENOMEM : rundown_new(NULL, 0, &listener, &t.rundown);

	t.field = t.wanted ? strchr(t.wanted, ':') : NULL;
	if (t.field)
		*t.field++ = 0;
	if (!r)
		r = trace_read(&t, fd, err);
	/* Events before the damage are as good as in a trace that was cut there. */
	if (!r || r == -EBADMSG || r == -E2BIG) {
		int put = trace_put_groups(&t);

		r = put ? put : r;
	}
	trace_name_others(&t);
	rundown_free(t.rundown);
	intern_free(&t.names);
	intern_free(&t.stacks);
	intern_free(&t.texts);
	vec_free(&t.groups);
	vec_free(&t.kinds);
	vec_free(&t.methods);
	arena_free(&t.payloads);
	vec_free(&t.others);
	hashmap_free(&t.group_by_key);
	hashmap_free(&t.frame_of);
	vec_free(&t.frames);
	free(t.wanted);
	return r;
}
