#include "symbols/callchains.h"

#include "base/hash.h"
#include "symbols/frames.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define CALLCHAINS_GENERATIONS_MAX (1u << 27)

void callchains_free(struct callchains *c)
{
	free(c->cache);
	vec_free(&c->frame_flags);
	free(c->recent);
	hashmap_free(&c->kernel_ids);
	vec_free(&c->kernels);
	vec_free(&c->kernel_words);
	vec_free(&c->kernel_frames);
	vec_free(&c->runs);
	hashmap_free(&c->run_ids);
	hashmap_free(&c->under_ids);
	hashmap_free(&c->odd_ids);
	vec_free(&c->odd);
	*c = (struct callchains){0};
}

/* One state of one address space and one way to ask, as a number; 0: there are too many of them, ask each time. */
static uint32_t callchains_space(const struct callchains *c, const struct callchain_place *place)
{
	bool kernel = place->mode == CALLCHAIN_KERNEL;
	uint32_t generation = kernel ? c->kernel_generation : processes_generation(c->processes, place->thread);
	uint32_t idle = !kernel && !place->thread->tid; /* not one process: it is answered for in its own way */

	if (generation >= CALLCHAINS_GENERATIONS_MAX)
		return 0;
	return generation << 5 | idle << 4 | (uint32_t)place->mode << 2 | (uint32_t)place->exact << 1 | 1;
}

/* The run of a frame and what is inlined there; one that was met before has its place. */
static int callchains_run(struct callchains *c, const struct callchain_frame *frame, uint32_t *ret_what)
{
	size_t n = frame->ninlined + (size_t)1;
	uint64_t key = hash_mix(frame->frame, n);
	const uint32_t *known;

	for (size_t i = 0; i + 1 < n; i++)
		key = hash_mix(key, frame->inlined[i]);
	for (; (known = hashmap_get(&c->run_ids, key)); key++) {
		const uint32_t *run = c->runs.v + *known;

		if (run[0] == n && run[1] == frame->frame &&
		    !memcmp(run + 2, frame->inlined, frame->ninlined * sizeof(*run))) {
			*ret_what = CALLCHAINS_RUN | *known;
			return 0;
		}
	}
	if (vec_reserve(&c->runs, n + 1))
		return -ENOMEM;
	uint32_t at = (uint32_t)c->runs.len;

	if (c->runs.len + n >= CALLCHAINS_RUN)
		return -E2BIG;
	c->runs.v[c->runs.len++] = (uint32_t)n;
	c->runs.v[c->runs.len++] = frame->frame;
	memcpy(c->runs.v + c->runs.len, frame->inlined, frame->ninlined * sizeof(*frame->inlined));
	c->runs.len += frame->ninlined;
	*ret_what = CALLCHAINS_RUN | at;
	return hashmap_put(&c->run_ids, key, at);
}

static int callchains_hang_run(struct callchains *c, uint32_t what, uint32_t *stack)
{
	size_t at = what & ~CALLCHAINS_RUN, n = c->runs.v[at];
	int r = 0;

	for (size_t i = 1; i <= n && !r; i++)
		r = profile_stack(c->profile, *stack, c->runs.v[at + i], stack);
	return r;
}

/* Hangs what an address became under (called by) a stack. */
static inline int callchains_hang_one(struct callchains *c, uint32_t what, uint32_t *stack)
{
	if (__builtin_expect(what & CALLCHAINS_RUN, 0))
		return callchains_hang_run(c, what, stack);
	return profile_stack(c->profile, *stack, what, stack);
}

/* The frame of the function whose code an address is. */
static inline uint32_t callchains_function(const struct callchains *c, uint32_t what)
{
	return what & CALLCHAINS_RUN ? c->runs.v[(what & ~CALLCHAINS_RUN) + 1] : what;
}

static int callchains_ask(struct callchains *c, const struct callchain_place *place, uint32_t space,
			  struct callchain_slot *ret_slot)
{
	struct callchain_frame frame;

	frame.flags = 0;
	frame.timed = false;
	frame.ninlined = 0;
	int r = c->frame(c->ctx, place, &frame);
	uint32_t what;

	while (!r && c->frame_flags.len <= frame.frame)
		if (vec_push(&c->frame_flags, 0))
			r = -ENOMEM;
	if (r)
		return r;
	c->frame_flags.v[frame.frame] = frame.flags;
	c->timed |= frame.timed;
	what = frame.frame;
	if (frame.ninlined)
		r = callchains_run(c, &frame, &what);
	/* Being told that an address is not mapped does not change the generation: what is kept still holds. */
	*ret_slot = (struct callchain_slot){place->ip, frame.timed || r ? 0 : space, what};
	return r;
}

static inline struct callchain_slot *callchains_slot(const struct callchains *c, uint64_t ip, uint32_t space)
{
	return &c->cache[hash_mix(ip, space) & (CALLCHAINS_CACHE - 1)];
}

/* space: callchains_space of the place, which is the same for all of a callchain's that are asked for in the same way. */
static inline int callchains_frame(struct callchains *c, const struct callchain_place *place, uint32_t space,
				   uint32_t *ret_what)
{
	struct callchain_slot *slot = callchains_slot(c, place->ip, space);

	if (slot->ip != place->ip || slot->space != space || !space) {
		int r = callchains_ask(c, place, space, slot);

		if (r)
			return r;
	}
	*ret_what = slot->what;
	return 0;
}

/* The stack of the user part words[0 .. n): as far as it has the callers of the thread's last one, those have stacks. */
static int callchains_user(struct callchains *c, const struct process_thread *t, const uint64_t *words, size_t n,
			   uint64_t time_ns, uint32_t *ret_stack)
{
	struct callchain_recent *recent = &c->recent[(uint32_t)t->tid % CALLCHAINS_RECENT];
	struct callchain_place place = {.thread = t, .mode = CALLCHAIN_USER, .time_ns = time_ns};
	uint32_t stack = PROFILE_STACK_EMPTY, space = callchains_space(c, &place), what;
	size_t had = space && recent->space == space ? recent->n : 0, shared = 0;

	/* The leaf is exact: it is no caller, and equal only where all is. */
	while (shared + 1 < n && shared + 1 < had && recent->words[shared] == words[n - 1 - shared])
		shared++;
	if (shared + 1 == n && n == had && recent->leaf && recent->words[shared] == words[0])
		shared++;
	if (shared)
		stack = recent->stacks[shared - 1];
	recent->space = space;
	recent->n = (uint32_t)shared;
	recent->leaf = false;
	c->timed = false;
	for (size_t i = shared; i + 1 < n; i++)
		__builtin_prefetch(callchains_slot(c, words[n - 1 - i], space));
	for (size_t i = shared; i < n; i++) {
		place.ip = words[n - 1 - i];
		if (i + 1 == n) {
			place.exact = true;
			space = callchains_space(c, &place);
		}
		int r = callchains_frame(c, &place, space, &what);

		if (!r)
			r = callchains_hang_one(c, what, &stack);
		if (r)
			return r;
		recent->words[i] = place.ip;
		recent->stacks[i] = stack;
	}
	if (!c->timed) {
		recent->n = (uint32_t)n;
		recent->leaf = true;
	}
	*ret_stack = stack;
	return 0;
}

/* Makes the frames of a kernel part. */
static int callchains_make_kernel(struct callchains *c, struct callchain_kernel *kernel, uint64_t time_ns)
{
	struct callchain_place place = {.mode = CALLCHAIN_KERNEL, .exact = true, .time_ns = time_ns};
	uint32_t what, frame;

	c->timed = kernel->idle = false;
	for (uint32_t i = 0; i < kernel->n; i++) {
		place.ip = c->kernel_words.v[kernel->first + i];
		int r = callchains_frame(c, &place, callchains_space(c, &place), &what);

		if (r)
			return r;
		frame = callchains_function(c, what);
		place.exact = c->frame_flags.v[frame] & FRAMES_INTERRUPTED;
		kernel->idle |= !!(c->frame_flags.v[frame] & FRAMES_IDLE);
		c->kernel_frames.v[kernel->first + kernel->n - 1 - i] = frame;
	}
	kernel->made = true;
	kernel->timed = c->timed;
	return 0;
}

static void callchains_forget_kernels(struct callchains *c)
{
	hashmap_free(&c->kernel_ids);
	hashmap_free(&c->under_ids);
	c->kernels.len = c->kernel_words.len = c->kernel_frames.len = 0;
}

/* The kernel part words[0 .. n) as an index into kernels. */
static int callchains_kernel(struct callchains *c, const uint64_t *words, size_t n, uint32_t *ret_index)
{
	uint64_t key = hash_words(words, n, c->kernel_generation);
	const uint32_t *known = hashmap_get(&c->kernel_ids, key);
	struct callchain_kernel kernel = {.n = (uint32_t)n};

	if (known) {
		*ret_index = *known;
		return 0;
	}
	if (callchains_full(c) && !c->begun)
		callchains_forget_kernels(c);
	kernel.first = (uint32_t)c->kernel_words.len;
	if (c->kernel_words.len + n > INT32_MAX)
		return -E2BIG;
	if (vec_reserve(&c->kernel_words, n) || vec_reserve(&c->kernel_frames, n) || vec_reserve(&c->kernels, 1))
		return -ENOMEM;
	memcpy(c->kernel_words.v + kernel.first, words, n * sizeof(*words));
	c->kernel_words.len += n;
	c->kernel_frames.len += n;
	*ret_index = (uint32_t)c->kernels.len;
	c->kernels.v[c->kernels.len++] = kernel;
	return hashmap_put(&c->kernel_ids, key, *ret_index);
}

/* Hangs a kernel part under (called by) a stack. */
static int callchains_under(struct callchains *c, uint32_t stack, uint32_t index, uint32_t *ret_stack)
{
	const struct callchain_kernel *kernel = &c->kernels.v[index];
	uint64_t key = (uint64_t)stack << 32 | index;
	const uint32_t *known = hashmap_get(&c->under_ids, key);

	if (known) {
		*ret_stack = *known;
		return 0;
	}
	for (uint32_t i = 0; i < kernel->n; i++) {
		int r = profile_stack(c->profile, stack, c->kernel_frames.v[kernel->first + i], &stack);

		if (r)
			return r;
	}
	*ret_stack = stack;
	if (kernel->timed)
		return 0;
	if (c->under_ids.len >= callchains_kept_max(c))
		hashmap_free(&c->under_ids);
	return hashmap_put(&c->under_ids, key, stack);
}

/* What nearly all callchains are: a kernel part, a user part, or both. */
struct callchain_parts {
	const uint64_t *kernel, *user;
	size_t nkernel, nuser;
};

/* False where a callchain is something else, or too long. */
static bool callchains_split(const uint64_t *words, size_t n, struct callchain_parts *ret_parts)
{
	struct callchain_parts p = {0};
	bool marks = false;
	size_t i = 0;

	if (n && words[0] == PERF_CONTEXT_KERNEL) {
		p.kernel = words + 1;
		for (i = 1; i < n && words[i] < PERF_CONTEXT_MAX; i++)
			p.nkernel++;
	}
	if (i < n) {
		if (words[i] != PERF_CONTEXT_USER)
			return false;
		p.user = words + i + 1;
		p.nuser = n - i - 1;
	}
	for (size_t k = 0; k < p.nuser; k++)
		marks |= p.user[k] >= PERF_CONTEXT_MAX;
	*ret_parts = p;
	return !marks && p.nkernel + p.nuser <= CALLCHAINS_FRAMES_MAX;
}

static int callchains_begin_parts(struct callchains *c, const struct process_thread *t,
				  const struct callchain_parts *p, uint64_t time_ns, struct callchain_half *ret_half)
{
	struct callchain_half half = {.stack = PROFILE_STACK_EMPTY, .kernel = CALLCHAINS_NO_KERNEL, .user = p->nuser};
	int r = 0;

	if (p->nkernel)
		r = callchains_kernel(c, p->kernel, p->nkernel, &half.kernel);
	if (!r && p->nuser)
		r = callchains_user(c, t, p->user, p->nuser, time_ns, &half.stack);
	if (r)
		return r;
	c->begun += half.kernel != CALLCHAINS_NO_KERNEL;
	*ret_half = half;
	return 0;
}

int callchains_end(struct callchains *c, const struct callchain_half *half, uint64_t time_ns,
		   struct callchain_stack *ret_stack)
{
	struct callchain_stack stack = {half->stack, half->user, half->idle};
	int r = 0;

	if (half->kernel != CALLCHAINS_NO_KERNEL) {
		struct callchain_kernel *kernel = &c->kernels.v[half->kernel];

		c->begun--;
		if (!kernel->made || kernel->timed)
			r = callchains_make_kernel(c, kernel, time_ns);
		stack.idle = kernel->idle;
		if (!r)
			r = callchains_under(c, half->stack, half->kernel, &stack.stack);
	}
	if (!r)
		*ret_stack = stack;
	return r;
}

/* Any callchain while it is turned into frames, leaf first. */
struct callchain_walk {
	struct callchain_place place;
	size_t n;
	bool user; /* one of the frames is not the kernel's */
	uint32_t whats[CALLCHAINS_FRAMES_MAX];
};

/* A PERF_CONTEXT_* mark. false: perf gives such callchains up. */
static bool callchains_mark(struct callchain_place *place, uint64_t mark)
{
	place->exact = true;
	if (mark == PERF_CONTEXT_KERNEL)
		place->mode = CALLCHAIN_KERNEL;
	else if (mark == PERF_CONTEXT_USER)
		place->mode = CALLCHAIN_USER;
	else if (mark == PERF_CONTEXT_HV)
		place->mode = CALLCHAIN_NEITHER;
	else
		return false;
	return true;
}

static int callchains_walk(struct callchains *c, const uint64_t *words, size_t n, struct callchain_walk *w)
{
	int r = 0;

	for (size_t i = 0; i < n && w->n < CALLCHAINS_FRAMES_MAX && !r; i++) {
		if (words[i] >= PERF_CONTEXT_MAX) {
			if (!callchains_mark(&w->place, words[i])) {
				w->n = 0;
				w->user = false;
				return 0;
			}
			continue;
		}
		w->place.ip = words[i];
		r = callchains_frame(c, &w->place, callchains_space(c, &w->place), &w->whats[w->n]);
		if (r)
			break;
		w->place.exact = c->frame_flags.v[callchains_function(c, w->whats[w->n++])] & FRAMES_INTERRUPTED;
		w->user |= w->place.mode != CALLCHAIN_KERNEL;
	}
	return r;
}

/* Hangs the frames into the profile's stacks, from the root on. */
static int callchains_hang(struct callchains *c, const struct callchain_walk *w, struct callchain_stack *stack)
{
	int r = 0;

	*stack = (struct callchain_stack){.stack = PROFILE_STACK_EMPTY, .user = w->user};
	for (size_t i = w->n; i > 0 && !r; i--) {
		r = callchains_hang_one(c, w->whats[i - 1], &stack->stack);
		stack->idle |= !!(c->frame_flags.v[callchains_function(c, w->whats[i - 1])] & FRAMES_IDLE);
	}
	return r;
}

/* Other callchains are remembered whole. */
static int callchains_odd(struct callchains *c, const struct process_thread *t, enum callchain_mode mode,
			  const uint64_t *words, size_t n, uint64_t time_ns, struct callchain_stack *ret_stack)
{
	struct callchain_walk w = {.place = {.thread = t, .mode = mode, .exact = true, .time_ns = time_ns}};
	uint64_t space = (uint64_t)processes_generation(c->processes, t) << 8 | (uint64_t)!t->tid << 4 | (uint64_t)mode;
	uint64_t key = hash_words(words, n, hash_mix(space, c->kernel_generation));
	const uint32_t *known = hashmap_get(&c->odd_ids, key);
	int r;

	if (known) {
		*ret_stack = c->odd.v[*known];
		return 0;
	}
	c->timed = false;
	r = callchains_walk(c, words, n, &w);
	if (!r)
		r = callchains_hang(c, &w, ret_stack);
	if (r || c->timed)
		return r;
	if (c->odd.len >= callchains_kept_max(c)) {
		hashmap_free(&c->odd_ids);
		c->odd.len = 0;
	}
	if (vec_push(&c->odd, *ret_stack))
		return -ENOMEM;
	return hashmap_put(&c->odd_ids, key, (uint32_t)c->odd.len - 1);
}

int callchains_begin(struct callchains *c, const struct process_thread *thread, enum callchain_mode mode,
		     const uint64_t *words, size_t n, uint64_t time_ns, struct callchain_half *ret_half)
{
	struct callchain_parts parts;
	struct callchain_stack stack;
	int r;

	if (!c->recent || !c->cache) {
		free(c->recent);
		free(c->cache);
		c->recent = calloc(CALLCHAINS_RECENT, sizeof(*c->recent));
		c->cache = calloc(CALLCHAINS_CACHE, sizeof(*c->cache));
		if (!c->recent || !c->cache)
			return -ENOMEM;
	}
	if (n && callchains_split(words, n, &parts))
		return callchains_begin_parts(c, thread, &parts, time_ns, ret_half);
	r = callchains_odd(c, thread, mode, words, n, time_ns, &stack);
	if (!r)
		*ret_half = (struct callchain_half){stack.stack, CALLCHAINS_NO_KERNEL, stack.user, stack.idle};
	return r;
}
