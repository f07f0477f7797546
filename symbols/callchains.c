#include "symbols/callchains.h"

#include "base/bigmem.h"
#include "base/hash.h"
#include "symbols/callchains_impl.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>

#define CALLCHAINS_GENERATIONS_MAX (1u << 25)
#define CALLCHAINS_AHEAD 64 /* frames whose cache slots are prefetched */

void callchains_free(struct callchains *c)
{
	free(c->cache);
	vec_free(&c->frame_flags);
	for (size_t i = 0; c->recent && i < CALLCHAINS_RECENT; i++)
		vec_free(&c->recent[i].frames);
	free(c->recent);
	hashmap_free(&c->kernel_ids);
	vec_free(&c->kernels);
	vec_free(&c->kernel_words);
	vec_free(&c->kernel_frames);
	vec_free(&c->runs);
	hashmap_free(&c->run_ids);
	hashmap_free(&c->under_ids);
	vec_free(&c->refs);
	*c = (struct callchains){0};
}

/*
 * Numbers one state of one address space and one kind of lookup. 0: too many states to number; look
 * up each time.
 */
static uint32_t callchains_space(const struct callchains *c, const struct callchain_key *place)
{
	bool kernel = place->mode == CALLCHAIN_KERNEL;
	uint32_t generation =
		kernel ? c->kernel_generation : processes_generation(c->processes, place->thread);
	/* the idle task is not a single process; it has lookups of its own */
	uint32_t idle = !kernel && !place->thread->tid;

	if (generation >= CALLCHAINS_GENERATIONS_MAX)
		return 0;
	return generation << 7 | (uint32_t)place->grade << 5 | idle << 4 |
	       (uint32_t)place->mode << 2 | (uint32_t)place->exact << 1 | 1;
}

/* Gets the run of a frame and the frames inlined there; an equal run is reused. */
static int callchains_intern_run(struct callchains *c, const struct callchain_frame *frame,
				 uint32_t *ret_ref)
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
			*ret_ref = CALLCHAINS_RUN | *known;
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
	*ret_ref = CALLCHAINS_RUN | at;
	return hashmap_put(&c->run_ids, key, at);
}

static int callchains_append_run(struct callchains *c, uint32_t ref, uint32_t *stack)
{
	size_t at = ref & ~CALLCHAINS_RUN, n = c->runs.v[at];
	int r = 0;

	for (size_t i = 1; i <= n && !r; i++)
		r = profile_stack(c->profile, *stack, c->runs.v[at + i], stack);
	return r;
}

/* Appends the frame or run of an address to a stack, as called by it. */
static inline int callchains_append_ref(struct callchains *c, uint32_t ref, uint32_t *stack)
{
	if (__builtin_expect(ref & CALLCHAINS_RUN, 0))
		return callchains_append_run(c, ref, stack);
	return profile_stack(c->profile, *stack, ref, stack);
}

/* The frame of the function that contains the address. */
static inline uint32_t callchains_function(const struct callchains *c, uint32_t ref)
{
	return ref & CALLCHAINS_RUN ? c->runs.v[(ref & ~CALLCHAINS_RUN) + 1] : ref;
}

static int callchains_lookup(struct callchains *c, const struct callchain_key *place,
			     uint32_t space, struct callchain_slot *ret_slot)
{
	struct callchain_frame frame;

	frame.flags = 0;
	frame.timed = false;
	frame.ninlined = 0;
	int r = c->frame(c->ctx, place, &frame);
	uint32_t ref;

	while (!r && c->frame_flags.len <= frame.frame)
		if (vec_push(&c->frame_flags, 0))
			r = -ENOMEM;
	if (r)
		return r;
	c->frame_flags.v[frame.frame] = frame.flags;
	c->timed |= frame.timed;
	ref = frame.frame;
	if (frame.ninlined)
		r = callchains_intern_run(c, &frame, &ref);
	/*
	 * Learning that an address is not mapped does not change the generation: kept frames still
	 * hold.
	 */
	*ret_slot = (struct callchain_slot){place->ip, frame.timed || r ? 0 : space, ref};
	return r;
}

static inline struct callchain_slot *callchains_slot(const struct callchains *c, uint64_t ip,
						     uint32_t space)
{
	return &c->cache[hash_mix(ip, space) & (CALLCHAINS_CACHE - 1)];
}

/*
 * space: callchains_space of the place. It is the same for all places of one callchain that are
 * looked up in the same way.
 */
static inline int callchains_frame(struct callchains *c, const struct callchain_key *place,
				   uint32_t space, uint32_t *ret_ref)
{
	struct callchain_slot *slot = callchains_slot(c, place->ip, space);

	if (slot->ip != place->ip || slot->space != space || !space) {
		int r = callchains_lookup(c, place, space, slot);

		if (r)
			return r;
	}
	*ret_ref = slot->ref;
	return 0;
}

/* The number of the n user frames that are at or beyond first, at the root. */
static uint32_t callchains_count_graded(uint32_t first, size_t n)
{
	return first < n ? (uint32_t)n - first : 0;
}

/* Whether the kept frames of a thread's callchain may be frames of this one. */
static bool callchains_is_kept(const struct callchain_recent *recent, const struct callchain *user,
			       uint32_t space)
{
	return space && recent->space == space && recent->truncated == user->truncated &&
	       recent->spliced == callchains_count_graded(user->first_spliced, user->n) &&
	       recent->guessed == callchains_count_graded(user->first_guess, user->n);
}

/*
 * Counts the frames, from the root, that equal the kept ones. The leaf is exact and no caller: it
 * is equal only if all frames are.
 */
static size_t callchains_shared(const struct callchain_recent *recent, const struct callchain *user)
{
	size_t had = recent->frames.len, n = user->n, shared = 0;

	while (shared + 1 < n && shared + 1 < had &&
	       recent->frames.v[shared].word == user->words[n - 1 - shared])
		shared++;
	if (shared + 1 == n && n == had && recent->leaf &&
	    recent->frames.v[shared].word == user->words[0])
		shared++;
	return shared;
}

/* Sets the lookup of the i-th frame from the root on. */
static void callchains_user_place(const struct callchain *user, size_t i,
				  struct callchain_key *place)
{
	size_t from_leaf = user->n - 1 - i;

	place->ip = user->words[from_leaf];
	place->exact = user->at_call_sites || !from_leaf;
	place->grade = from_leaf >= user->first_spliced ? FRAME_SPLICED
		       : from_leaf >= user->first_guess ? FRAME_GUESSED
							: FRAME_FOUND;
}

/*
 * Makes the stack of a user part, which has no marks. Callers shared with the thread's last user
 * part already have stacks. Looks up all frames, also if the stack does not fit, so that the
 * recording gets their names.
 */
static int callchains_user(struct callchains *c, const struct process_thread *t,
			   const struct callchain *user, uint64_t time_ns, uint32_t *stack)
{
	struct callchain_recent *recent = &c->recent[(uint32_t)t->tid % CALLCHAINS_RECENT];
	struct callchain_key place = {.thread = t,
				      .mode = CALLCHAIN_USER,
				      .exact = user->at_call_sites,
				      .time_ns = time_ns};
	uint32_t space = callchains_space(c, &place), ref;
	uint8_t grade = FRAME_FOUND;
	bool fits = true;
	size_t n = user->n, shared = callchains_is_kept(recent, user, space)
					     ? callchains_shared(recent, user)
					     : 0;

	if (shared)
		*stack = recent->frames.v[shared - 1].stack;
	recent->space = space;
	recent->truncated = user->truncated;
	recent->spliced = callchains_count_graded(user->first_spliced, n);
	recent->guessed = callchains_count_graded(user->first_guess, n);
	recent->frames.len = shared;
	recent->leaf = false;
	if (vec_reserve(&recent->frames, n - shared))
		return -ENOMEM;
	c->timed = false;
	for (size_t i = shared; i + 1 < n && i < shared + CALLCHAINS_AHEAD; i++)
		__builtin_prefetch(callchains_slot(c, user->words[n - 1 - i], space));
	for (size_t i = shared; i < n; i++) {
		callchains_user_place(user, i, &place);
		if (place.grade != grade || i + 1 == n) {
			grade = place.grade;
			space = callchains_space(c, &place);
		}
		int r = callchains_frame(c, &place, space, &ref);

		if (!r && fits) {
			r = callchains_append_ref(c, ref, stack);
			fits = r != -E2BIG;
			r = fits ? r : 0;
		}
		if (r) {
			recent->frames.len = shared;
			return r;
		}
		recent->frames.v[recent->frames.len++] =
			(struct callchain_recent_frame){place.ip, *stack};
	}
	if (c->timed || !fits)
		recent->frames.len = shared;
	recent->leaf = !c->timed && fits;
	return fits ? 0 : -E2BIG;
}

/* Makes the frames of a kernel part. */
static int callchains_make_kernel(struct callchains *c, struct callchain_kernel *kernel,
				  uint64_t time_ns)
{
	struct callchain_key place = {.mode = CALLCHAIN_KERNEL, .exact = true, .time_ns = time_ns};
	uint32_t ref, frame;

	c->timed = kernel->idle = false;
	for (uint32_t i = 0; i < kernel->n; i++) {
		place.ip = c->kernel_words.v[kernel->first + i];
		int r = callchains_frame(c, &place, callchains_space(c, &place), &ref);

		if (r)
			return r;
		frame = callchains_function(c, ref);
		place.exact = c->frame_flags.v[frame] & CALLCHAIN_FRAME_INTERRUPTED;
		kernel->idle |= !!(c->frame_flags.v[frame] & CALLCHAIN_FRAME_IDLE);
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
static int callchains_kernel(struct callchains *c, const uint64_t *words, size_t n,
			     uint32_t *ret_index)
{
	uint64_t hash = hash_words(words, n, c->kernel_generation), key = hash;
	struct callchain_kernel kernel = {.n = (uint32_t)n, .generation = c->kernel_generation};
	const uint32_t *known;

	for (; (known = hashmap_get(&c->kernel_ids, key)); key++) {
		const struct callchain_kernel *k = &c->kernels.v[*known];

		if (k->n == n && k->generation == c->kernel_generation &&
		    !memcmp(c->kernel_words.v + k->first, words, n * sizeof(*words))) {
			*ret_index = *known;
			return 0;
		}
	}
	if (callchains_full(c) && !c->begun) {
		callchains_forget_kernels(c);
		key = hash;
	}
	kernel.first = (uint32_t)c->kernel_words.len;
	if (c->kernel_words.len + n > INT32_MAX)
		return -E2BIG;
	if (vec_reserve(&c->kernel_words, n) || vec_reserve(&c->kernel_frames, n) ||
	    vec_reserve(&c->kernels, 1))
		return -ENOMEM;
	memcpy(c->kernel_words.v + kernel.first, words, n * sizeof(*words));
	c->kernel_words.len += n;
	c->kernel_frames.len += n;
	*ret_index = (uint32_t)c->kernels.len;
	c->kernels.v[c->kernels.len++] = kernel;
	return hashmap_put(&c->kernel_ids, key, *ret_index);
}

int callchains_append_kernel(struct callchains *c, uint32_t stack, uint32_t index,
			     uint32_t *ret_stack)
{
	const struct callchain_kernel *kernel = &c->kernels.v[index];
	uint64_t key = (uint64_t)stack << 32 | index;
	const uint32_t *known = hashmap_get(&c->under_ids, key);

	if (known) {
		*ret_stack = *known;
		return 0;
	}
	for (uint32_t i = 0; i < kernel->n; i++) {
		int r = profile_stack(c->profile, stack, c->kernel_frames.v[kernel->first + i],
				      &stack);

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

static size_t callchains_frames_max(const struct callchains *c)
{
	size_t max = c->frames_max ? c->frames_max : CALLCHAINS_FRAMES_MAX;

	return c->cut_max && c->cut_max < max ? c->cut_max : max;
}

int callchains_root(struct callchains *c, bool truncated, uint32_t *ret_stack)
{
	int r = 0;

	if (truncated && c->truncated_root == PROFILE_STACK_EMPTY)
		r = profile_mark(c->profile, PROFILE_STACK_EMPTY, PROFILE_TRUNCATED, FRAME_UNKNOWN,
				 &c->truncated_root);
	if (!r)
		*ret_stack = truncated ? c->truncated_root : PROFILE_STACK_EMPTY;
	return r;
}

/* The parts of almost all callchains: a kernel part, a user part, or both. */
struct callchain_parts {
	const uint64_t *kernel;
	size_t nkernel;
	struct callchain user;
};

/* Splits a callchain into its parts. False: it has another form. */
static bool callchains_split(const struct callchains *c, const struct callchain *chain,
			     struct callchain_parts *ret_parts)
{
	const uint64_t *words = chain->words;
	size_t n = chain->n, max = callchains_frames_max(c), i = 0;
	struct callchain_parts p = {.user = *chain};
	bool marks = false;

	p.user.n = 0;
	enum callchain_mode mode = chain->mode;

	if (words[0] == PERF_CONTEXT_KERNEL) {
		mode = CALLCHAIN_KERNEL;
		i++;
	}
	if (mode == CALLCHAIN_KERNEL) {
		p.kernel = words + i;
		for (; i < n && words[i] < PERF_CONTEXT_MAX; i++)
			p.nkernel++;
	}
	if (i < n) {
		if (words[i] == PERF_CONTEXT_USER)
			i++;
		else if (mode != CALLCHAIN_USER)
			return false;
		p.user.words = words + i;
		p.user.n = n - i;
	}
	for (size_t k = 0; k < p.user.n; k++)
		marks |= p.user.words[k] >= PERF_CONTEXT_MAX;
	if (p.nkernel + p.user.n > max) {
		p.user.truncated = true;
		p.nkernel = p.nkernel < max ? p.nkernel : max;
		p.user.n = max - p.nkernel;
	}
	*ret_parts = p;
	return !marks;
}

static int callchains_begin_parts(struct callchains *c, const struct process_thread *t,
				  const struct callchain_parts *p, uint64_t time_ns,
				  struct callchain_half *ret_half)
{
	struct callchain_half half = {.kernel = CALLCHAINS_NO_KERNEL, .user = p->user.n};
	int r = callchains_root(c, p->user.truncated && p->nkernel + p->user.n, &half.stack);

	if (!r && p->nkernel)
		r = callchains_kernel(c, p->kernel, p->nkernel, &half.kernel);
	if (!r && p->user.n)
		r = callchains_user(c, t, &p->user, time_ns, &half.stack);
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
	bool cut = half->cut;
	int r = 0;

	if (half->kernel != CALLCHAINS_NO_KERNEL) {
		struct callchain_kernel *kernel = &c->kernels.v[half->kernel];

		c->begun--;
		if (!kernel->made || kernel->timed)
			r = callchains_make_kernel(c, kernel, time_ns);
		stack.idle = kernel->idle;
		if (!r)
			r = callchains_end_kernel(c, half, &stack.stack, &cut);
	}
	c->cut += cut;
	if (!r)
		*ret_stack = stack;
	return r;
}

/* Any callchain while it is turned into frames. */
struct callchain_walk {
	struct callchain_key place;
	bool user; /* one of the frames is outside of the kernel */
	bool cut;  /* it has more frames than allowed */
};

/* Applies a PERF_CONTEXT_* mark. False: perf gives up such callchains. */
static bool callchains_mark(struct callchain_key *place, uint64_t mark)
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

static int callchains_walk(struct callchains *c, const uint64_t *words, size_t n,
			   struct callchain_walk *w)
{
	c->refs.len = 0;
	for (size_t i = 0; i < n; i++) {
		if (words[i] >= PERF_CONTEXT_MAX) {
			if (!callchains_mark(&w->place, words[i])) {
				c->refs.len = 0;
				w->user = false;
				return 0;
			}
			continue;
		}
		if (c->refs.len == callchains_frames_max(c)) {
			w->cut = true;
			return 0;
		}
		w->place.ip = words[i];
		if (vec_reserve(&c->refs, 1))
			return -ENOMEM;
		uint32_t *ref = &c->refs.v[c->refs.len];
		int r = callchains_frame(c, &w->place, callchains_space(c, &w->place), ref);

		if (r)
			return r;
		c->refs.len++;
		w->place.exact = c->frame_flags.v[callchains_function(c, *ref)] &
				 CALLCHAIN_FRAME_INTERRUPTED;
		w->user |= w->place.mode != CALLCHAIN_KERNEL;
	}
	return 0;
}

/* Builds the profile's stack from the frames, from the root on. */
static int callchains_build_stack(struct callchains *c, const struct callchain_walk *w,
				  bool truncated, struct callchain_stack *stack)
{
	int r;

	*stack = (struct callchain_stack){.user = w->user};
	r = callchains_root(c, c->refs.len && (truncated || w->cut), &stack->stack);
	for (size_t i = c->refs.len; i > 0 && !r; i--) {
		r = callchains_append_ref(c, c->refs.v[i - 1], &stack->stack);
		stack->idle |= !!(c->frame_flags.v[callchains_function(c, c->refs.v[i - 1])] &
				  CALLCHAIN_FRAME_IDLE);
	}
	return r;
}

/*
 * Makes the stack of any other callchain. They are rare, so only their frames are cached. No
 * unwinder makes such callchains, so they have no grades.
 */
static int callchains_odd(struct callchains *c, const struct process_thread *t,
			  const struct callchain *chain, uint64_t time_ns,
			  struct callchain_stack *ret_stack)
{
	struct callchain_walk w = {
		.place = {.thread = t, .mode = chain->mode, .exact = true, .time_ns = time_ns}};
	int r = callchains_walk(c, chain->words, chain->n, &w);

	return r ? r : callchains_build_stack(c, &w, chain->truncated, ret_stack);
}

int callchains_begin_stack(struct callchains *c, const struct process_thread *thread,
			   const struct callchain *chain, uint64_t time_ns,
			   struct callchain_half *ret_half)
{
	struct callchain_parts parts;
	struct callchain_stack stack;
	int r;

	if (chain->n && callchains_split(c, chain, &parts))
		return callchains_begin_parts(c, thread, &parts, time_ns, ret_half);
	r = callchains_odd(c, thread, chain, time_ns, &stack);
	if (!r)
		*ret_half = (struct callchain_half){stack.stack, CALLCHAINS_NO_KERNEL, stack.user,
						    stack.idle, false};
	return r;
}

int callchains_begin(struct callchains *c, const struct process_thread *thread,
		     const struct callchain *chain, uint64_t time_ns,
		     struct callchain_half *ret_half)
{
	if (!c->recent || !c->cache) {
		free(c->recent);
		free(c->cache);
		c->recent = calloc(CALLCHAINS_RECENT, sizeof(*c->recent));
		c->cache = bigmem_zeroed(CALLCHAINS_CACHE, sizeof(*c->cache));
		if (!c->recent || !c->cache)
			return -ENOMEM;
	}
	int r = callchains_begin_stack(c, thread, chain, time_ns, ret_half);

	return r == -E2BIG ? callchains_begin_cut(c, thread, chain, time_ns, ret_half) : r;
}
