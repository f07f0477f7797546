#include "profile/profile.h"

#include "base/cleanup.h"
#include "base/fair_share.h"
#include "base/hash.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/printable.h"
#include "base/vec.h"
#include "profile/groups.h"
#include "profile/samples.h"
#include "profile/stack_room.h"

#include <assert.h>
#include <errno.h>

_Static_assert(sizeof(struct profile_frame) == 40,
	       "frames are compared as bytes: no hidden padding");
_Static_assert(sizeof(struct profile_thread) == 20,
	       "threads are compared as bytes: no hidden padding");

#define PROFILE_IDS_MAX STACK_ROOM_MAX

/*
 * Frames with an address, texts with their forms in outputs, and threads: each may take this part
 * of the memory that is left. Texts and threads have three such parts together, and the first
 * process may take half of these.
 */
#define PROFILE_PART 8
#define PROFILE_NAMES_PARTS 3
/* Memory of each here and in tables, while they grow; a thread has a group of samples. */
#define PROFILE_FRAME_BYTES 160
#define PROFILE_TEXT_BYTES 96 /* without the text */
#define PROFILE_THREAD_BYTES 256

struct profile_stack_node {
	uint32_t parent, frame;
	uint32_t recent; /* the last child that profile_stack returned; 0: none */
};

struct profile {
	struct intern texts;
	struct profile_text_changes text_changes;
	uint32_t longest_text;
	VEC(struct profile_event) events;
	VEC(struct profile_thread) threads;
	VEC(struct profile_frame) frames;
	VEC(struct profile_stack_node) stacks;
	struct hashmap thread_ids; /* maps a hash of the thread to its id; see profile_thread */
	uint32_t *frame_slots;     /* id + 1 */
	size_t nframe_slots;
	size_t frames_max;       /* frames with their address */
	int32_t taker;           /* the process that new texts and threads count for */
	struct fair_share names; /* bytes of texts and threads */
	uint64_t left_out;
	/* Maps parent and frame to the id, for stacks that profile_stack_is_next does not find. */
	struct hashmap stack_ids;
	struct stack_room room;
	struct samples samples;
	struct groups groups;
	struct profile_span span;
	uint64_t nsamples;
	bool only_groups;
};

int profile_new(struct profile **ret_profile)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	samples_init(&p->samples);
	stack_room_init(&p->room, NULL);
	p->frames_max = PROFILE_IDS_MAX;
	p->text_changes.max = PROFILE_TEXT_MAX;
	if (vec_push(&p->stacks, ((struct profile_stack_node){.frame = PROFILE_NONE}))) {
		profile_free(p);
		return -ENOMEM;
	}
	*ret_profile = p;
	return 0;
}

void profile_only_groups(struct profile *p)
{
	p->only_groups = true;
}

static size_t profile_fit(uint64_t n)
{
	return n < PROFILE_IDS_MAX ? (size_t)n : PROFILE_IDS_MAX;
}

void profile_limit_memory(struct profile *p, uint64_t (*memory_left)(void))
{
	uint64_t left = memory_left() / PROFILE_PART;

	p->names.limit = PROFILE_NAMES_PARTS * left + 1;
	p->frames_max = profile_fit(left / PROFILE_FRAME_BYTES);
	stack_room_init(&p->room, memory_left);
}

void profile_taker(struct profile *p, int32_t taker)
{
	p->taker = taker;
}

size_t profile_cut_stacks(struct profile *p, unsigned level)
{
	return stack_room_level(&p->room, level);
}

void profile_free(struct profile *p)
{
	if (!p)
		return;
	intern_free(&p->texts);
	vec_free(&p->events);
	vec_free(&p->threads);
	vec_free(&p->frames);
	vec_free(&p->stacks);
	hashmap_free(&p->thread_ids);
	free(p->frame_slots);
	fair_share_free(&p->names);
	hashmap_free(&p->stack_ids);
	samples_free(&p->samples);
	groups_free(&p->groups);
	free(p);
}

static int profile_put_text(struct profile *p, const char *text, size_t len, uint32_t *ret_text)
{
	uint64_t bytes = len + PROFILE_TEXT_BYTES;

	if (!intern_find(&p->texts, text, len, ret_text))
		return 0;
	if (bytes > fair_share_room(&p->names, p->taker)) {
		p->left_out++;
		return intern_str(&p->texts, PROFILE_LEFT_OUT, ret_text);
	}
	fair_share_take(&p->names, p->taker, bytes);
	if (len > p->longest_text)
		p->longest_text = (uint32_t)len;
	return intern_put(&p->texts, text, len, ret_text);
}

int profile_lines(struct profile *p, const char *text, size_t len, uint32_t *ret_text)
{
	return profile_put_text(p, text, len, ret_text);
}

static int profile_text_changed(struct profile *p, const char *text, size_t len, bool escaped,
				uint32_t *ret_text)
{
	char shown[PROFILE_TEXT_MAX];
	bool cut;
	size_t had = p->texts.len;
	size_t n = printable_copy_distinct(text, len, PROFILE_TEXT_MAX, shown, &cut);
	int r = profile_put_text(p, shown, n, ret_text);

	if (!r && p->texts.len > had) {
		p->text_changes.escaped += escaped;
		p->text_changes.cut += cut;
	}
	return r;
}

int profile_text(struct profile *p, const char *text, size_t len, uint32_t *ret_text)
{
	bool escaped = !printable_is(text, len);

	if (escaped || len > PROFILE_TEXT_MAX)
		return profile_text_changed(p, text, len, escaped, ret_text);
	return profile_put_text(p, text, len, ret_text);
}

uint32_t profile_longest_text(const struct profile *p)
{
	return p->longest_text;
}

void profile_cut_texts(struct profile *p, uint32_t max)
{
	char shown[PROFILE_TEXT_MAX];
	bool cut;

	/* Texts that were cut before are cut again. */
	p->text_changes.cut = 0;
	p->text_changes.max = max;
	for (uint32_t id = 0; id < p->texts.len; id++) {
		uint32_t len = intern_len(&p->texts, id);

		if (len <= max)
			continue;
		size_t n =
			printable_copy_distinct(intern_text(&p->texts, id), len, max, shown, &cut);

		intern_shorten(&p->texts, id, shown, n);
		p->text_changes.cut++;
	}
}

struct profile_text_changes profile_text_changes(const struct profile *p)
{
	return p->text_changes;
}

const char *profile_text_of(const struct profile *p, uint32_t text, uint32_t *ret_len)
{
	if (ret_len)
		*ret_len = intern_len(&p->texts, text);
	return intern_text(&p->texts, text);
}

int profile_event(struct profile *p, const struct profile_event *event, uint32_t *ret_event)
{
	for (size_t i = 0; i < p->events.len; i++) {
		if (p->events.v[i].name == event->name &&
		    p->events.v[i].has_period == event->has_period &&
		    p->events.v[i].has_fields == event->has_fields &&
		    p->events.v[i].timeless == event->timeless &&
		    p->events.v[i].stackless == event->stackless &&
		    p->events.v[i].off_cpu == event->off_cpu &&
		    p->events.v[i].wakeup == event->wakeup) {
			*ret_event = (uint32_t)i;
			return 0;
		}
	}
	if (p->events.len >= PROFILE_EVENTS_MAX)
		return -E2BIG;
	if (vec_push(&p->events, *event))
		return -ENOMEM;
	*ret_event = (uint32_t)p->events.len - 1;
	return 0;
}

bool profile_has_stacks(const struct profile *p)
{
	for (size_t i = 0; i < p->events.len; i++)
		if (!p->events.v[i].stackless)
			return true;
	return false;
}

/* If different threads have equal hashes, tries the next key. *ret_key: of the thread or free. */
static bool profile_find_thread(const struct profile *p, const struct profile_thread *thread,
				uint64_t *ret_key, uint32_t *ret_thread)
{
	uint64_t key = hash_bytes(thread, sizeof(*thread));
	const uint32_t *place;

	for (; (place = hashmap_get(&p->thread_ids, key)); key++) {
		*ret_thread = *place;
		if (!memcmp(&p->threads.v[*place], thread, sizeof(*thread)))
			return true;
	}
	*ret_key = key;
	return false;
}

int profile_thread(struct profile *p, const struct profile_thread *thread, uint32_t *ret_thread)
{
	struct profile_thread common = {.pid = -1, .tid = -1};
	uint64_t key;
	int r;

	if (profile_find_thread(p, thread, &key, ret_thread))
		return 0;
	if (PROFILE_THREAD_BYTES > fair_share_room(&p->names, p->taker)) {
		p->left_out++;
		r = intern_str(&p->texts, PROFILE_LEFT_OUT, &common.comm);
		if (r)
			return r;
		thread = &common;
		if (profile_find_thread(p, thread, &key, ret_thread))
			return 0;
	}
	if (p->threads.len >= PROFILE_IDS_MAX)
		return -E2BIG;
	if (vec_reserve(&p->threads, 1) ||
	    hashmap_put(&p->thread_ids, key, (uint32_t)p->threads.len))
		return -ENOMEM;
	fair_share_take(&p->names, p->taker, PROFILE_THREAD_BYTES);
	*ret_thread = (uint32_t)p->threads.len;
	p->threads.v[p->threads.len++] = *thread;
	return 0;
}

static int profile_grow_frame_slots(struct profile *p)
{
	size_t n = p->nframe_slots ? p->nframe_slots * 2 : 1024;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t id = 0; id < p->frames.len; id++) {
		size_t i = hash_bytes(&p->frames.v[id], sizeof(p->frames.v[id])) & (n - 1);

		while (slots[i])
			i = (i + 1) & (n - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(p->frame_slots);
	p->frame_slots = slots;
	p->nframe_slots = n;
	return 0;
}

int profile_frame(struct profile *p, const struct profile_frame *frame, uint32_t *ret_frame)
{
	if (p->frames.len * 2 >= p->nframe_slots && profile_grow_frame_slots(p))
		return -ENOMEM;
	size_t mask = p->nframe_slots - 1, i = hash_bytes(frame, sizeof(*frame)) & mask;

	for (; p->frame_slots[i]; i = (i + 1) & mask) {
		uint32_t id = p->frame_slots[i] - 1;

		if (!memcmp(&p->frames.v[id], frame, sizeof(*frame))) {
			*ret_frame = id;
			return 0;
		}
	}
	if (p->frames.len >= p->frames_max && (frame->addr || frame->sym_off)) {
		struct profile_frame shared = *frame;

		shared.addr = shared.sym_off = 0;
		shared.addr_is_text = false;
		p->left_out++;
		return profile_frame(p, &shared, ret_frame);
	}
	if (p->frames.len >= PROFILE_IDS_MAX)
		return -E2BIG;
	if (vec_push(&p->frames, *frame))
		return -ENOMEM;
	p->frame_slots[i] = (uint32_t)p->frames.len;
	*ret_frame = (uint32_t)p->frames.len - 1;
	return 0;
}

uint64_t profile_left_out(const struct profile *p)
{
	return p->left_out;
}

/*
 * A new stack usually continues the newest one, because its callers were added just before. So a
 * node's first child is usually the next node. Only the other children are in the table, which has
 * one entry for each branch instead of each node.
 */
static bool profile_stack_is_next(const struct profile *p, uint32_t parent, uint32_t frame)
{
	size_t next = (size_t)parent + 1;

	return next < p->stacks.len && p->stacks.v[next].parent == parent &&
	       p->stacks.v[next].frame == frame;
}

/* Whether one more stack fits. An entry of the table counts as a node. */
static bool profile_has_room(struct profile *p)
{
	size_t used = p->stacks.len + p->stack_ids.len;

	return stack_room_has(&p->room, used) || stack_room_grow(&p->room, used);
}

/* Finds or makes a child other than `recent`. */
static int profile_stack_find(struct profile *p, uint32_t parent, uint32_t frame,
			      uint32_t *ret_stack)
{
	bool follows = (size_t)parent + 1 == p->stacks.len;
	uint32_t *place;
	int fresh = 1;

	*ret_stack = parent + 1;
	if (profile_stack_is_next(p, parent, frame))
		return 0;
	if (!profile_has_room(p)) {
		place = hashmap_get(&p->stack_ids, (uint64_t)parent << 32 | frame);
		if (place)
			*ret_stack = *place;
		return place ? 0 : -E2BIG;
	}
	/* Reserve room first, so that the table never refers to a missing stack. */
	if (vec_reserve(&p->stacks, 1))
		return -ENOMEM;
	if (!follows) {
		if (hashmap_entry(&p->stack_ids, (uint64_t)parent << 32 | frame,
				  (uint32_t)p->stacks.len, &place, &fresh))
			return -ENOMEM;
		*ret_stack = *place;
	}
	if (fresh)
		p->stacks.v[p->stacks.len++] = (struct profile_stack_node){parent, frame, 0};
	return 0;
}

int profile_stack(struct profile *p, uint32_t parent, uint32_t frame, uint32_t *ret_stack)
{
	uint32_t stack = p->stacks.v[parent].recent;
	int r;

	if (!stack || p->stacks.v[stack].frame != frame) {
		r = profile_stack_find(p, parent, frame, &stack);
		if (r)
			return r;
		p->stacks.v[parent].recent = stack;
	}
	*ret_stack = stack;
	return 0;
}

const char *profile_grade_mark(uint8_t grade)
{
	return grade == FRAME_SPLICED ? "_[s]" : grade == FRAME_GUESSED ? "_[g]" : "";
}

const struct profile_event *profile_event_of(const struct profile *p, uint32_t event)
{
	return &p->events.v[event];
}

const struct profile_thread *profile_thread_of(const struct profile *p, uint32_t thread)
{
	return &p->threads.v[thread];
}

const struct profile_frame *profile_frame_of(const struct profile *p, uint32_t frame)
{
	return &p->frames.v[frame];
}

uint32_t profile_stack_parent(const struct profile *p, uint32_t stack)
{
	return p->stacks.v[stack].parent;
}

uint32_t profile_stack_frame(const struct profile *p, uint32_t stack)
{
	return p->stacks.v[stack].frame;
}

uint32_t profile_nevents(const struct profile *p)
{
	return (uint32_t)p->events.len;
}

uint32_t profile_nthreads(const struct profile *p)
{
	return (uint32_t)p->threads.len;
}

uint32_t profile_nframes(const struct profile *p)
{
	return (uint32_t)p->frames.len;
}

uint32_t profile_nstacks(const struct profile *p)
{
	return (uint32_t)p->stacks.len;
}

uint64_t profile_nsamples(const struct profile *p)
{
	return p->nsamples;
}

struct profile_span profile_span(const struct profile *p)
{
	return p->span;
}

int profile_each_sample(struct profile *p,
			int (*fn)(void *ctx, const struct profile_sample *sample), void *ctx)
{
	assert(!p->only_groups);
	return samples_each(&p->samples, fn, ctx);
}

int profile_sample(struct profile *p, const struct profile_sample *sample)
{
	struct profile_span *span = &p->span;
	int r = groups_add(&p->groups, sample);

	if (!r && !p->only_groups)
		r = samples_add(&p->samples, sample);
	if (r)
		return r;
	if (!span->first_ns || sample->time_ns < span->first_ns)
		span->first_ns = sample->time_ns;
	if (sample->time_ns > span->last_ns)
		span->last_ns = sample->time_ns;
	p->nsamples++;
	return 0;
}

const struct profile_group *profile_groups(struct profile *p, size_t *ret_n)
{
	groups_end(&p->groups);
	*ret_n = p->groups.all.len;
	return p->groups.all.v;
}

int profile_label_frame(struct profile *p, const char *name, size_t len, uint8_t kind,
			uint32_t *ret_frame)
{
	struct profile_frame frame = {
		.srcline = PROFILE_NONE, .kind = kind, .status = FRAME_IS_NAMED};
	int r = profile_text(p, name, len, &frame.name);

	frame.perf_name = frame.module = frame.name;
	return r ? r : profile_frame(p, &frame, ret_frame);
}

/* Adds a stack of one more frame, also when memory is short: a sample needs at most one. */
static int profile_label_stack(struct profile *p, uint32_t parent, uint32_t frame,
			       uint32_t *ret_stack)
{
	size_t max = p->room.max;

	p->room.max = PROFILE_IDS_MAX;
	int r = profile_stack(p, parent, frame, ret_stack);

	p->room.max = max;
	return r;
}

int profile_label(struct profile *p, const char *name, uint8_t kind, uint32_t *ret_stack)
{
	uint32_t frame;
	int r = profile_label_frame(p, name, strlen(name), kind, &frame);

	return r ? r : profile_label_stack(p, PROFILE_STACK_EMPTY, frame, ret_stack);
}

int profile_mark(struct profile *p, uint32_t parent, const char *name, uint8_t kind,
		 uint32_t *ret_stack)
{
	struct profile_frame mark = {.perf_name = PROFILE_NONE,
				     .module = PROFILE_NONE,
				     .srcline = PROFILE_NONE,
				     .kind = kind,
				     .is_mark = true};
	uint32_t frame;
	int r = profile_text(p, name, strlen(name), &mark.name);

	if (!r)
		r = profile_frame(p, &mark, &frame);
	return r ? r : profile_label_stack(p, parent, frame, ret_stack);
}

static uint32_t profile_wait_event(const struct profile *p, bool wakeup)
{
	for (uint32_t i = 0; i < profile_nevents(p); i++)
		if (profile_event_of(p, i)->off_cpu && profile_event_of(p, i)->wakeup == wakeup)
			return i;
	return PROFILE_NONE;
}

uint32_t profile_off_cpu_event(const struct profile *p)
{
	return profile_wait_event(p, false);
}

uint32_t profile_wakeup_event(const struct profile *p)
{
	return profile_wait_event(p, true);
}
