#include "profcpu/managed/profiles_impl.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "profcpu/managed/framework.h"
#include "profcpu/managed/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Name of the runtime's threads that write traces; the kernel keeps 15 characters of it. */
#define PROFILES_WRITER ".NET EventPipe"

/* The pool adds a thread half a second after work items began to wait; later on a busy machine. */
#define PROFILES_STARVED_NS (750 * NS_PER_MS)

/* Bit of a stack's number: it stands for the thread that holds the lock, to get its name. */
#define PROFILES_OWNER (UINT64_C(1) << 63)

/* Adds what an event of one thread tells. 0; -ENOMEM. */
static int add_of_thread(struct managed_profiles *m, enum evidence_kind kind, uint32_t tid,
			 struct evidence_interval interval)
{
	interval.tid = trace_place_tid(&m->place, tid);
	/* A thread of another PID namespace may be unknown. */
	return interval.tid ? evidence_add(&m->evidence, kind, &interval) : 0;
}

/* Adds what an event tells of the causes of waits, and of the runtime's work. */
static int add_evidence(struct managed_profiles *m, size_t i)
{
	const struct managed_event *e = &m->events.v.v[i];
	struct evidence_interval interval = {.end_ns = e->time_ns, .event = (uint32_t)i};
	uint64_t took = e->kind == MANAGED_CAUSES ? PROFILES_STARVED_NS : e->weight;
	int r;

	interval.begin_ns = e->time_ns > took ? e->time_ns - took : 0;
	switch ((enum managed_kind)e->kind) {
	case MANAGED_CONTENTION:
		return add_of_thread(m, EVIDENCE_LOCK, e->tid, interval);
	case MANAGED_JIT:
		return add_of_thread(m, EVIDENCE_JIT, e->tid, interval);
	case MANAGED_GC:
		r = add_of_thread(m, EVIDENCE_COLLECTOR, e->collector, interval);
		return r ? r : evidence_add(&m->evidence, EVIDENCE_PAUSE, &interval);
	case MANAGED_CAUSES:
		return evidence_add(&m->evidence, EVIDENCE_STARVATION, &interval);
	case MANAGED_RUNTIME:
		interval.event = e->label;
		return e->label == MANAGED_PHASE_BACKGROUND_MARK ||
				       e->label == MANAGED_PHASE_BACKGROUND_SWEEP
			       ? add_of_thread(m, EVIDENCE_PHASE, e->tid, interval)
			       : evidence_add(&m->evidence, EVIDENCE_PHASE, &interval);
	default:
		return 0;
	}
}

static int prepare(struct managed_profiles *m, const struct managed_options *options)
{
	const struct profiles_named blank = {PROFILE_NONE, PROFILE_NONE, PROFILE_NONE};
	int r = trace_place_find(&options->place, &m->events.head, &m->place);

	if (!r && options->wanted & 1u << MANAGED_CAUSES)
		r = causes_new(&m->evidence, &m->causes);
	if (!r && options->wanted & 1u << MANAGED_RUNTIME)
		r = work_new(&m->evidence, &m->work);
	for (size_t i = 0; i < m->events.v.len && !r; i++) {
		m->events.v.v[i].time_ns = trace_place_ns(&m->place, m->events.v.v[i].time_ns);
		r = vec_push(&m->named, blank);
		if (!r && (m->causes || m->work))
			r = add_evidence(m, i);
	}
	evidence_sort(&m->evidence);
	for (unsigned k = 0; k < MANAGED_KINDS; k++) {
		m->kinds[k].wanted = options->wanted & 1u << k;
		m->kinds[k].event = PROFILE_NONE;
		m->kinds[k].unpaired = m->events.unpaired[k];
	}
	m->totals = (struct managed_totals){.seen = m->events.seen,
					    .cpu_event = PROFILE_NONE,
					    .unlisted = options->unlisted,
					    .lost = m->events.lost,
					    .left_out = m->events.left_out,
					    .exact_samples = m->events.exact_samples,
					    .is_cut = m->events.is_cut};
	return r;
}

int managed_profiles_new(struct profile *profile, const struct managed_options *options,
			 struct managed_profiles **ret_profiles, struct parse_error *err)
{
	struct managed_profiles *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->profile = profile;
	m->raw_names = options->raw_names;
	int r = managed_events_read(options->trace_fd, options->wanted, options->max_bytes,
				    &m->events, err);

	/* The events before the damage are used. */
	if ((r == -EBADMSG || r == -E2BIG) && m->events.seen)
		r = 0;
	if (!r)
		r = prepare(m, options);
	if (r)
		managed_profiles_free(m);
	else
		*ret_profiles = m;
	return r;
}

void managed_profiles_free(struct managed_profiles *m)
{
	if (!m)
		return;
	managed_events_free(&m->events);
	trace_place_free(&m->place);
	vec_free(&m->named);
	unnamed_free(&m->callchain);
	for (unsigned k = 0; k < MANAGED_KINDS; k++) {
		vec_free(&m->kinds[k].v);
		vec_free(&m->kinds[k].weights);
		vec_free(&m->kinds[k].labels.list);
		vec_free(&m->kinds[k].places.list);
	}
	causes_free(m->causes);
	work_free(m->work);
	evidence_free(&m->evidence);
	hashmap_free(&m->groups);
	hashmap_free(&m->sums);
	hashmap_free(&m->label_frames);
	free(m);
}

/* The owner of the lock of the last event. False: it is not known. */
static bool next_owner(struct managed_profiles *m, struct unnamed_stack *ret_stack)
{
	const struct managed_event *e = &m->events.v.v[m->next - 1];
	int32_t tid = e->label ? trace_place_tid(&m->place, e->label) : 0;

	m->owner_is_next = false;
	if (!tid || unnamed_make(&m->callchain, 0, "", 0, m->events.head.pointer_bytes))
		return false;
	*ret_stack = (struct unnamed_stack){.number = (m->next - 1) | PROFILES_OWNER,
					    .tid = tid,
					    .time_ns = e->time_ns,
					    .callchain = m->callchain.words.v,
					    .ncallchain = m->callchain.words.len};
	return true;
}

/* Whether a profile has the event. */
static bool is_shown(const struct managed_profiles *m, const struct managed_event *e)
{
	return m->kinds[e->kind].wanted && e->kind != MANAGED_CAUSES && e->kind != MANAGED_RUNTIME;
}

static bool next_of(void *ctx, uint64_t before_ns, struct unnamed_stack *ret_stack)
{
	struct managed_profiles *m = ctx;

	if (m->owner_is_next && next_owner(m, ret_stack))
		return true;
	while (m->next < m->events.v.len && m->events.v.v[m->next].time_ns < before_ns) {
		const struct managed_event *e = &m->events.v.v[m->next++];

		m->owner_is_next = e->kind == MANAGED_CONTENTION;
		/* Events that only explain waits need no stack. */
		if (!is_shown(m, e)) {
			if (m->owner_is_next && next_owner(m, ret_stack))
				return true;
			continue;
		}
		/* Without memory for its stack, it has none. */
		if (unnamed_make(&m->callchain, e->addr, intern_text(&m->events.stacks, e->stack),
				 intern_len(&m->events.stacks, e->stack),
				 m->events.head.pointer_bytes))
			continue;
		*ret_stack = (struct unnamed_stack){.number = m->next - 1,
						    .tid = trace_place_tid(&m->place, e->tid),
						    .time_ns = e->time_ns,
						    .callchain = m->callchain.words.v,
						    .ncallchain = m->callchain.words.len};
		return true;
	}
	return false;
}

static void name_of(void *ctx, uint64_t number, uint32_t thread, uint32_t stack)
{
	struct managed_profiles *m = ctx;

	struct profiles_named *named = &m->named.v[number & ~PROFILES_OWNER];

	if (number & PROFILES_OWNER) {
		named->owner = thread;
		return;
	}
	named->thread = thread;
	named->stack = stack;
}

struct unnamed_source managed_profiles_source(struct managed_profiles *m)
{
	return (struct unnamed_source){
		.pid = m->place.pid, .next = next_of, .name = name_of, .ctx = m};
}

const struct profile_frame *managed_frame_at(const struct managed_profiles *m, uint32_t stack)
{
	return profile_frame_of(m->profile, profile_stack_frame(m->profile, stack));
}

int managed_text_frame(struct managed_profiles *m, struct outbuf *text, uint32_t *ret_frame)
{
	int r = text->error ? text->error
			    : profile_label_frame(m->profile, text->len ? text->data : "",
						  text->len, FRAME_SUBJECT, ret_frame);

	outbuf_close(text);
	return r;
}

/* The frame of what an event is about. */
static int put_label(struct managed_profiles *m, size_t i, uint32_t *ret_frame)
{
	const struct managed_event *e = &m->events.v.v[i];
	/* An owner of locks is a thread with a name, which may change. */
	uint64_t key = e->kind == MANAGED_CONTENTION ? hash_mix(m->named.v[i].owner, MANAGED_KINDS)
						     : hash_mix(e->label, e->kind);
	const uint32_t *known = hashmap_get(&m->label_frames, key);
	struct outbuf text = outbuf_to(-1);

	if (known) {
		*ret_frame = *known;
		return 0;
	}
	if (e->kind == MANAGED_CONTENTION)
		managed_label_owner(m->profile, m->named.v[i].owner, &text);
	else
		managed_label(&m->events.texts, e, m->raw_names, &text);
	int r = managed_text_frame(m, &text, ret_frame);

	return r ? r : hashmap_put(&m->label_frames, key, *ret_frame);
}

int managed_put_above(struct managed_profiles *m, uint32_t callers, uint32_t frame,
		      uint32_t *ret_stack)
{
	int r = profile_stack(m->profile, callers, frame, ret_stack);

	return r == -E2BIG ? profile_label(m->profile, PROFILE_LEFT_OUT, FRAME_LABEL, ret_stack)
			   : r;
}

/* Finds the stack of an event, which ends with the frame that says what it is about. */
static int put_stack(struct managed_profiles *m, size_t i, uint32_t *ret_stack,
		     uint32_t *ret_callers)
{
	const struct managed_event *e = &m->events.v.v[i];
	uint32_t bare = m->named.v[i].stack;
	bool has_leaf = e->kind == MANAGED_JIT && e->addr && bare != PROFILE_STACK_EMPTY;
	uint32_t frame;

	*ret_callers = has_leaf ? profile_stack_parent(m->profile, bare) : bare;
	*ret_stack = bare;
	/* A compiled method has the name that samples of it have. */
	if (has_leaf && managed_frame_at(m, bare)->status == FRAME_IS_NAMED)
		return 0;
	int r = put_label(m, i, &frame);

	return r ? r : managed_put_above(m, *ret_callers, frame, ret_stack);
}

uint64_t managed_add(uint64_t a, uint64_t b)
{
	return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

int managed_add_group(struct managed_profiles *m, struct managed_profile *p, uint32_t thread,
		      uint32_t stack, uint64_t weight, uint64_t events)
{
	const struct profile_group group = {.event = p->event, .thread = thread, .stack = stack};
	uint64_t key = hash_mix((uint64_t)thread << 32 | stack, p->event);
	uint32_t *index;
	int fresh, r = hashmap_entry(&m->groups, key, (uint32_t)p->v.len, &index, &fresh);

	if (!r && fresh)
		r = vec_push(&p->v, group);
	if (r)
		return r;
	struct profile_group *g = &p->v.v[*index];

	g->samples = g->samples + events < UINT32_MAX ? g->samples + (uint32_t)events : UINT32_MAX;
	g->weight = managed_add(g->weight, weight);
	return 0;
}

int managed_add_sum(struct managed_profiles *m, struct managed_sums *sums, uint64_t list,
		    uint32_t name, uint64_t weight, uint64_t events)
{
	const struct managed_sum blank = {.name = name};
	uint32_t *index;
	int fresh, r = hashmap_entry(&m->sums, hash_mix(name, list), (uint32_t)sums->list.len,
				     &index, &fresh);

	if (!r && fresh)
		r = vec_push(&sums->list, blank);
	if (r)
		return r;
	sums->list.v[*index].weight = managed_add(sums->list.v[*index].weight, weight);
	sums->list.v[*index].events += events;
	return 0;
}

uint32_t managed_place_of(const struct managed_profiles *m, uint32_t stack)
{
	uint32_t any = PROFILE_NONE;

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(m->profile, stack)) {
		const struct profile_frame *f = managed_frame_at(m, stack);

		if (f->kind != FRAME_MANAGED)
			continue;
		if (!managed_is_framework(profile_text_of(m->profile, f->name, NULL)))
			return f->name;
		any = any == PROFILE_NONE ? f->name : any;
	}
	return any;
}

int managed_begin_kind(struct managed_profiles *m, enum managed_kind kind)
{
	const struct managed_kind_info *info = managed_kind_info(kind);
	struct profile_event event = {.has_period = true};
	int r = m->kinds[kind].event != PROFILE_NONE
			? 0
			: profile_text(m->profile, info->name, strlen(info->name), &event.name);

	return r || m->kinds[kind].event != PROFILE_NONE
		       ? r
		       : profile_event(m->profile, &event, &m->kinds[kind].event);
}

static int add_event(struct managed_profiles *m, size_t i)
{
	const struct managed_event *e = &m->events.v.v[i];
	struct managed_profile *p = &m->kinds[e->kind];
	uint32_t stack, callers, place;
	int r = managed_begin_kind(m, e->kind);

	if (!r)
		r = put_stack(m, i, &stack, &callers);
	if (!r)
		r = managed_add_group(m, p, m->named.v[i].thread, stack, e->weight, 1);
	if (!r)
		r = managed_add_sum(m, &p->labels, e->kind, managed_frame_at(m, stack)->name,
				    e->weight, 1);
	if (r)
		return r;
	place = managed_place_of(m, callers);
	if (place != PROFILE_NONE)
		r = managed_add_sum(m, &p->places, MANAGED_KINDS + e->kind, place, e->weight, 1);
	p->events++;
	p->weight = managed_add(p->weight, e->weight);
	if (!r && !managed_kind_info(e->kind)->countname)
		r = vec_push(&p->weights, e->weight);
	return r;
}

static int by_weight(const void *a, const void *b, void *profile)
{
	const struct managed_sum *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(profile_text_of(profile, x->name, NULL),
		      profile_text_of(profile, y->name, NULL));
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void sort_sums(const struct managed_profiles *m, struct managed_sums *sums)
{
	if (sums->list.len)
		qsort_r(sums->list.v, sums->list.len, sizeof(*sums->list.v), by_weight, m->profile);
}

/* The CPU samples of the process, and of the threads that write the trace. */
static void sum_writer(struct managed_profiles *m)
{
	size_t n;
	const struct profile_group *groups = profile_groups(m->profile, &n);
	uint32_t event = PROFILE_NONE;

	for (size_t i = 0; i < n; i++) {
		const struct profile_thread *t = profile_thread_of(m->profile, groups[i].thread);

		if (profile_event_of(m->profile, groups[i].event)->off_cpu)
			continue;
		if (event == PROFILE_NONE)
			event = groups[i].event;
		if (groups[i].event != event || t->pid != m->place.pid)
			continue;
		m->totals.cpu_weight = managed_add(m->totals.cpu_weight, groups[i].weight);
		if (!strncmp(profile_text_of(m->profile, t->comm, NULL), PROFILES_WRITER,
			     strlen(PROFILES_WRITER)))
			m->totals.writer_weight =
				managed_add(m->totals.writer_weight, groups[i].weight);
	}
}

static void sum_window(struct managed_profiles *m)
{
	uint64_t last = m->events.seen ? trace_place_ns(&m->place, m->events.last_ns) : 0,
		 sampled = profile_span(m->profile).last_ns;

	last = last < sampled ? sampled : last;
	m->totals.window_ns = last > m->place.begin_ns ? last - m->place.begin_ns : 0;
}

int managed_profiles_finish(struct managed_profiles *m)
{
	int r = 0;

	for (size_t i = 0; i < m->events.v.len && !r; i++) {
		if (!is_shown(m, &m->events.v.v[i]))
			continue;
		if (m->named.v[i].stack == PROFILE_NONE)
			m->totals.left_out++;
		else
			r = add_event(m, i);
	}
	if (!r && m->causes)
		r = managed_finish_causes(m);
	if (!r && m->work)
		r = managed_finish_work(m);
	if (r)
		return r;
	for (unsigned k = 0; k < MANAGED_KINDS; k++) {
		struct managed_profile *p = &m->kinds[k];

		sort_sums(m, &p->labels);
		sort_sums(m, &p->places);
		if (p->weights.len)
			qsort(p->weights.v, p->weights.len, sizeof(*p->weights.v), by_number);
	}
	sum_writer(m);
	sum_window(m);
	return 0;
}

pid_t managed_profiles_pid(const struct managed_profiles *m)
{
	return m->place.pid;
}

const struct managed_profile *managed_profile_of(const struct managed_profiles *m,
						 enum managed_kind kind)
{
	return &m->kinds[kind];
}

const struct managed_totals *managed_totals(const struct managed_profiles *m)
{
	return &m->totals;
}

const char *managed_unit(const struct managed_profiles *m, enum managed_kind kind)
{
	const char *countname = managed_kind_info(kind)->countname;

	if (kind != MANAGED_RUNTIME || m->totals.cpu_event == PROFILE_NONE)
		return countname ? countname : "ns";
	const struct profile_event *event = profile_event_of(m->profile, m->totals.cpu_event);
	const char *name = profile_text_of(m->profile, event->name, NULL);

	if (!event->has_period)
		return "samples";
	return profile_counts_time(name) ? "ns" : name;
}
