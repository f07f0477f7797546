#include "profcpu/post/import_trace.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/vec.h"
#include "container/memory_left.h"
#include "dotnet/eventpipe/event_payload.h"
#include "dotnet/eventpipe/nettrace_read.h"
#include "dotnet/eventpipe/session.h"
#include "profcpu/compare/claims.h"
#include "profcpu/post/trace_methods.h"
#include "symbols/core/symbol.h"
#include "symbols/names/managed_name.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRACE_FRAMES_MAX 100            /* of a stack: runtimes leave out further callers */
#define TRACE_STACK_MAX ((size_t)10000) /* frames that are shown */
#define TRACE_METHODS_BYTES_MAX ((size_t)512 << 20) /* payloads of events that list methods */
#define TRACE_PROVIDER_INFO "Microsoft-DotNETCore-EventPipe"

/* A stack of a thread, and its samples. */
struct trace_group {
	uint64_t thread; /* id */
	uint64_t weight;
	uint32_t stack; /* id in stacks */
	uint32_t samples;
	bool outside;
};

/* The use of events of one kind. */
struct trace_kind {
	bool known;
	bool is_chosen, is_sample, is_info, lists_methods;
	uint32_t name; /* id in names */
};

/* A stack, once it is in the profile. */
struct trace_stack {
	bool done, cut;
	uint32_t stack;
	uint32_t frames, nameless;
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
	struct trace_methods *methods;
	struct nettrace_trace head;
	uint64_t pid, memory_max;
	bool has_pid, several;
	char *wanted, *field; /* of options->event */
	struct intern stacks; /* addresses as they are in the trace */
	struct intern texts;
	struct intern names;          /* of events */
	VEC(struct trace_kind) kinds; /* by their number */
	VEC(struct trace_group) groups;
	struct hashmap group_by_key;
	VEC(struct trace_other) others; /* by id in names; without those that were chosen */
	VEC(struct trace_stack) known;  /* by id in stacks */
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

/* Whether one more stack or group exceeds the memory for them. */
static bool trace_is_full(const struct trace_import *t, size_t more)
{
	return t->stacks.text.total_bytes + t->stacks.cap * sizeof(*t->stacks.entries) +
		       vec_bytes(&t->groups) + hashmap_bytes(&t->group_by_key) + more >
	       t->memory_max;
}

static int trace_add(struct trace_import *t, const struct nettrace_event *event, uint64_t weight,
		     bool outside)
{
	/* One more than are shown, which tells that it is cut. */
	size_t most = (TRACE_STACK_MAX + 1) * t->head.pointer_bytes;
	size_t bytes = event->stack_bytes < most ? event->stack_bytes : most;
	bool full = trace_is_full(t, bytes);
	struct trace_group group = {.thread = full ? 0 : event->thread, .outside = outside};
	uint32_t *index;
	int is_new, r = intern_put(&t->stacks, full ? "" : (const char *)event->stack,
				   full ? 0 : bytes, &group.stack);

	/* Addresses mean nothing without their process. */
	t->several |= t->has_pid && t->pid != event->pid;
	t->has_pid = true;
	t->pid = event->pid;
	if (t->several)
		return -ENOTSUP;
	t->result->cut_stacks += full;
	if (!r)
		r = hashmap_entry(&t->group_by_key,
				  hash_mix(hash_mix(group.thread, group.stack), outside),
				  (uint32_t)t->groups.len, &index, &is_new);
	if (!r && is_new)
		r = vec_push(&t->groups, group);
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
	*ret_kind = (struct trace_kind){.known = true,
					.is_sample = !strcmp(kind->provider, PROVIDER_SAMPLER),
					.is_info = !strcmp(kind->provider, TRACE_PROVIDER_INFO),
					.lists_methods = trace_methods_wants(kind)};
	ret_kind->is_chosen = t->wanted ? nettrace_kind_is(kind, t->wanted) : ret_kind->is_sample;
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
	return trace_add(t, event, weight, kind->is_sample && type.number == CLAIMS_EXTERNAL);
}

static int trace_take_event(void *ctx, const struct nettrace_event *event)
{
	struct trace_import *t = ctx;
	const struct trace_kind *kind;
	int r = trace_kind_of(t, event->kind, &kind);

	if (!r && kind->lists_methods)
		r = trace_methods_take(t->methods, event);
	else if (!r && kind->is_info)
		r = trace_take_program(t, event);
	if (r || !event->stack)
		return r;
	return kind->is_chosen ? trace_take_chosen(t, event, kind) : trace_count_other(t, kind);
}

static int trace_name_frame(struct trace_import *t, const struct trace_method_name *m,
			    struct profile_frame *frame)
{
	struct outbuf full = outbuf_to(-1);

	if (t->options->functions_only)
		frame->addr = m->start;
	frame->sym_off = frame->addr - m->start;
	frame->has_sym_off = true;
	frame->kind = FRAME_MANAGED;
	frame->status = FRAME_IS_NAMED;
	frame->source = SYMBOL_RUNDOWN;
	int r = profile_text(t->profile, m->name, m->len, &frame->perf_name);

	if (t->options->raw_names)
		outbuf_put(&full, m->name, m->len);
	else
		managed_name_full(m->name, m->len, &full, NULL, NULL);
	if (!r)
		r = full.error ? full.error
			       : profile_text(t->profile, full.data, full.len, &frame->name);
	outbuf_close(&full);
	if (!r && *m->assembly)
		r = profile_text(t->profile, m->assembly, strlen(m->assembly), &frame->module);
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
	struct trace_method_name method;

	r = trace_methods_find(t->methods, addr - is_caller, &method);
	if (!r) {
		r = trace_name_frame(t, &method, &frame);
	} else if (r == -ENOENT) {
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

	return name != PROFILE_NONE && claims_is_poll(profile_text_of(t->profile, name, NULL));
}

/* Adds a stack to the profile. */
static int trace_put_stack(struct trace_import *t, uint32_t id, struct trace_stack *ret_stack)
{
	const unsigned char *bytes = (const unsigned char *)intern_text(&t->stacks, id);
	size_t size = t->head.pointer_bytes, n = intern_len(&t->stacks, id) / size, first = 0;
	bool cut = n > TRACE_STACK_MAX || (n >= TRACE_FRAMES_MAX && t->head.version < 6);
	struct trace_stack stack = {.done = true};
	int r = 0;

	n = n > TRACE_STACK_MAX ? TRACE_STACK_MAX : n;
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
	if (!r && !n)
		r = profile_label(t->profile, PROFILE_NO_STACK, FRAME_LABEL, &stack.stack);
	else if (!r)
		r = profile_stack_of(t->profile, t->frames.v + first, n - first, cut, &stack.stack,
				     &stack.cut);
	stack.frames = (uint32_t)(n - first);
	for (size_t i = first; i < n && !r; i++)
		stack.nameless +=
			profile_frame_of(t->profile, t->frames.v[i])->status != FRAME_IS_NAMED;
	*ret_stack = stack;
	return r;
}

static int trace_put_thread(struct trace_import *t, const struct trace_group *g,
			    uint32_t *ret_thread)
{
	struct profile_thread thread = {.pid = (int32_t)t->pid, .tid = (int32_t)g->thread};
	int r = profile_text(t->profile,
			     t->has_program ? intern_text(&t->texts, t->program) : ".NET",
			     t->has_program ? intern_len(&t->texts, t->program) : 4, &thread.comm);

	return r ? r : profile_thread(t->profile, &thread, ret_thread);
}

static int trace_put_group(struct trace_import *t, const struct trace_group *g, uint32_t event)
{
	struct profile_sample sample = {.event = event, .cpu = -1};
	struct trace_stack *stack = &t->known.v[g->stack];
	int r = stack->done ? 0 : trace_put_stack(t, g->stack, stack);

	sample.stack = stack->stack;
	if (!r && g->outside)
		r = profile_mark(t->profile, sample.stack, PROFILE_OUTSIDE, FRAME_SUBJECT,
				 &sample.stack);
	if (!r)
		r = trace_put_thread(t, g, &sample.thread);
	t->result->cut_stacks += stack->cut ? g->samples : 0;
	t->result->frames += (uint64_t)stack->frames * g->samples;
	t->result->nameless += (uint64_t)stack->nameless * g->samples;
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

	for (size_t i = 0; i < t->stacks.len && !r; i++)
		r = vec_push(&t->known, (struct trace_stack){0});
	if (t->groups.len && !r)
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
	struct nettrace_stats stats;
	int r = nettrace_read(fd, &listener, &stats, &t->result->is_cut, err);

	t->result->events = stats.events;
	t->result->lost = stats.lost;
	t->result->unknown = stats.unknown;
	return r;
}

int post_import_trace(int fd, const struct import_trace_options *options, struct profile *profile,
		      struct import_trace_result *ret_result, struct parse_error *err)
{
	uint64_t left = memory_left() / 4;
	struct trace_import t = {
		.options = options, .profile = profile, .result = ret_result, .memory_max = left};

	*ret_result = (struct import_trace_result){0};
	t.wanted = options->event ? strdup(options->event) : NULL;
	int r = options->event && !t.wanted ? -ENOMEM
					    : trace_methods_new(left / 2 < TRACE_METHODS_BYTES_MAX
									? (size_t)left / 2
									: TRACE_METHODS_BYTES_MAX,
								&t.methods);

	t.field = t.wanted ? strchr(t.wanted, ':') : NULL;
	if (t.field)
		*t.field++ = 0;
	if (!r)
		r = trace_read(&t, fd, err);
	if (t.several)
		parse_fail(err, r, "it has samples of several processes, which share addresses", 0);
	/* Events before the damage are as good as in a trace that was cut there. */
	if (!r || r == -EBADMSG || r == -E2BIG) {
		int put = trace_put_groups(&t);

		r = put ? put : r;
	}
	trace_name_others(&t);
	ret_result->methods_left_out = t.methods ? trace_methods_left_out(t.methods) : 0;
	trace_methods_free(t.methods);
	intern_free(&t.names);
	intern_free(&t.stacks);
	intern_free(&t.texts);
	vec_free(&t.groups);
	vec_free(&t.kinds);
	vec_free(&t.known);
	vec_free(&t.others);
	hashmap_free(&t.group_by_key);
	hashmap_free(&t.frame_of);
	vec_free(&t.frames);
	free(t.wanted);
	return r;
}
