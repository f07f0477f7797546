#include "profcpu/post/wakeups.h"

#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

struct waker {
	uint64_t file_off;
	uint32_t thread, stack;
	/*
	 * The last node, from the leaf, of the waker's own stack: the frames after it are of the
	 * interrupted thread. PROFILE_STACK_EMPTY: all frames are its own.
	 */
	uint32_t last;
	bool has_last;    /* last is set */
	bool interrupted; /* the waker is an interrupt */
};

struct wait {
	uint64_t begin_ns, end_ns, woken_ns, blocked_ns;
	uint64_t file_off, waker_off;
	uint32_t thread, stack;
	int32_t tid, waker_tid;
	uint8_t flags; /* enum offcpu_idx_flags */
};

struct wakeups {
	struct profile *profile;
	const struct offcpu_idx *idx;
	VEC(struct waker) wakers; /* post_wakeups_finish sorts them by file_off */
	VEC(struct wait) waits;   /* blocked waits; post_wakeups_finish sorts them by tid and end */
	uint32_t max_nodes;       /* limit on added nodes of stacks */
	uint32_t begun_nodes;     /* nodes before post_wakeups_finish */
	struct hashmap above;     /* stack and waker to the stack with the waker above it */
	bool full;                /* the profile takes no further event */
	uint32_t event;
	uint32_t delimiter, interrupt; /* frames */
	struct wakeups_summary summary;
};

int post_wakeups_new(struct profile *profile, const struct offcpu_idx *idx, uint32_t max_nodes,
		     struct wakeups **ret_wakeups)
{
	struct wakeups *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->profile = profile;
	w->idx = idx;
	w->max_nodes = max_nodes;
	*ret_wakeups = w;
	return 0;
}

void post_wakeups_free(struct wakeups *w)
{
	if (!w)
		return;
	vec_free(&w->wakers);
	vec_free(&w->waits);
	hashmap_free(&w->above);
	free(w);
}

int post_wakeups_waker(struct wakeups *w, uint64_t file_off, uint32_t thread, uint32_t stack)
{
	return vec_push(&w->wakers,
			((struct waker){.file_off = file_off, .thread = thread, .stack = stack}));
}

int post_wakeups_wait(struct wakeups *w, uint64_t file_off, const struct profile_sample *s)
{
	const struct offcpu_idx_wait *row = offcpu_idx_find(w->idx, file_off);
	uint64_t end_ns = row && row->end_ns ? row->end_ns : s->time_ns;

	if (!row || row->flags & OFFCPU_IDX_PREEMPTED || row->runnable_ns >= s->weight)
		return 0;
	return vec_push(
		&w->waits,
		((struct wait){.begin_ns = end_ns - (s->weight < end_ns ? s->weight : end_ns),
			       .end_ns = end_ns,
			       .woken_ns = row->woken_ns,
			       .blocked_ns = s->weight - row->runnable_ns,
			       .file_off = file_off,
			       .waker_off = row->waker_off,
			       .thread = s->thread,
			       .stack = s->stack,
			       .tid = profile_thread_of(w->profile, s->thread)->tid,
			       .waker_tid = row->waker,
			       .flags = row->flags}));
}

static int wakeups_by_offset(const void *a, const void *b)
{
	const struct waker *x = a, *y = b;

	return x->file_off < y->file_off ? -1 : x->file_off > y->file_off;
}

static int wakeups_by_thread_and_end(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->file_off < y->file_off ? -1 : x->file_off > y->file_off;
}

static struct waker *wakeups_waker_of(const struct wakeups *w, const struct wait *wait)
{
	const struct waker key = {.file_off = wait->waker_off};

	return wait->waker_off && w->wakers.len
		       ? bsearch(&key, w->wakers.v, w->wakers.len, sizeof(key), wakeups_by_offset)
		       : NULL;
}

/* The last wait of a thread that ended until time_ns; NULL: none. */
static const struct wait *wakeups_wait_before(const struct wakeups *w, int32_t tid,
					      uint64_t time_ns)
{
	size_t low = 0, high = w->waits.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct wait *wait = &w->waits.v[mid];

		if (wait->tid < tid || (wait->tid == tid && wait->end_ns <= time_ns))
			low = mid + 1;
		else
			high = mid;
	}
	return low && w->waits.v[low - 1].tid == tid ? &w->waits.v[low - 1] : NULL;
}

/*
 * Whether a frame is the kernel's entry of an interrupt. Source: Linux arch/x86/entry/entry_64.S
 * and arch/x86/include/asm/idtentry.h; arch/arm64/kernel/entry.S and entry-common.c. Kernels
 * before 5.8 have apic_timer_interrupt and the like.
 */
static bool wakeups_is_interrupt_entry(const struct profile *profile, uint32_t frame)
{
	static const char *const begins[] = {"asm_sysvec_",   "asm_common_interrupt",
					     "asm_exc_nmi",   "common_interrupt",
					     "ret_from_intr", "el1_interrupt",
					     "el0_interrupt", "el1h_64_irq",
					     "el0t_64_irq",   "el1_irq",
					     "el0_irq"};
	const struct profile_frame *f = profile_frame_of(profile, frame);
	const char *name;

	if (f->kind != FRAME_KERNEL || f->perf_name == PROFILE_NONE)
		return false;
	name = profile_text_of(profile, f->perf_name, NULL);
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	/* Compare whole names: hrtimer_interrupt, for example, is a handler and no entry. */
	return !strcmp(name, "apic_timer_interrupt") || !strcmp(name, "reschedule_interrupt") ||
	       !strncmp(name, "call_function_", 14);
}

/*
 * Finds the waker's own part of its stack: after the entry of an interrupt follows the interrupted
 * thread. If a soft interrupt ran right after a hardware interrupt, that interrupt is the waker.
 * Otherwise the thread that raised it is.
 */
static void wakeups_cut_interrupt(const struct wakeups *w, const struct wait *wait,
				  struct waker *waker)
{
	bool is_sure = wait->flags & OFFCPU_IDX_INTERRUPT,
	     may_be = is_sure || wait->flags & OFFCPU_IDX_SOFTIRQ;

	if (waker->has_last)
		return;
	waker->has_last = true;
	waker->interrupted = is_sure;
	for (uint32_t s = waker->stack; may_be && s != PROFILE_STACK_EMPTY;
	     s = profile_stack_parent(w->profile, s)) {
		if (!wakeups_is_interrupt_entry(w->profile, profile_stack_frame(w->profile, s))) {
			if (waker->last != PROFILE_STACK_EMPTY)
				return;
			continue;
		}
		waker->interrupted = true;
		waker->last = s;
	}
}

static int wakeups_name_frame(struct wakeups *w, const char *name, size_t len, uint32_t *ret_frame)
{
	return profile_label_frame(w->profile, name, len, FRAME_WAKEUP, ret_frame);
}

static int wakeups_name_thread(struct wakeups *w, uint32_t thread, uint32_t *ret_frame)
{
	uint32_t len;
	const char *comm =
		profile_text_of(w->profile, profile_thread_of(w->profile, thread)->comm, &len);

	return wakeups_name_frame(w, comm, len, ret_frame);
}

/* Adds a frame, up to max_nodes: each sleeping stack gets its own copy of its wakers' frames. */
static int wakeups_put_frame(struct wakeups *w, uint32_t frame, uint32_t *stack)
{
	if (profile_nstacks(w->profile) - w->begun_nodes >= w->max_nodes)
		return -E2BIG;
	return profile_stack(w->profile, *stack, frame, stack);
}

static int wakeups_put_waker(struct wakeups *w, const struct waker *waker, uint32_t *stack)
{
	uint32_t name = w->interrupt, s = waker->stack;
	int r = wakeups_put_frame(w, w->delimiter, stack);

	while (!r && s != PROFILE_STACK_EMPTY) {
		r = wakeups_put_frame(w, profile_stack_frame(w->profile, s), stack);
		s = s == waker->last ? PROFILE_STACK_EMPTY : profile_stack_parent(w->profile, s);
	}
	if (!r && !waker->interrupted)
		r = wakeups_name_thread(w, waker->thread, &name);
	return r ? r : wakeups_put_frame(w, name, stack);
}

/* Replaces *stack by the same stack with the waker above it. 0 or -errno. */
static int wakeups_put_above(struct wakeups *w, const struct waker *waker, uint32_t *stack)
{
	uint64_t key = (uint64_t)*stack << 32 | (uint32_t)(waker - w->wakers.v);
	const uint32_t *known = hashmap_get(&w->above, key);

	if (known) {
		*stack = *known;
		return 0;
	}
	int r = wakeups_put_waker(w, waker, stack);

	return r ? r : hashmap_put(&w->above, key, *stack);
}

/*
 * The wait of the waker that ended during this wait, and so delayed its end. NULL: the waker did
 * not wait meanwhile, or is not known.
 */
static const struct wait *wakeups_cause_of(const struct wakeups *w, const struct wait *wait)
{
	const struct wait *before = NULL;

	/* Estimates are not single waits, so they have no cause. */
	if (wait->waker_tid > 0 && wait->woken_ns &&
	    !(wait->flags & (OFFCPU_IDX_ESTIMATED | OFFCPU_IDX_INTERRUPT)))
		before = wakeups_wait_before(w, wait->waker_tid, wait->woken_ns);
	return before && before->end_ns > wait->begin_ns && !(before->flags & OFFCPU_IDX_ESTIMATED)
		       ? before
		       : NULL;
}

static int wakeups_put_chain(struct wakeups *w, const struct wait *sleeper)
{
	int32_t tids[WAKEUPS_HOPS_MAX + 1] = {sleeper->tid};
	uint32_t stack = sleeper->stack;
	size_t n = 1;

	for (const struct wait *wait = sleeper; wait && n <= WAKEUPS_HOPS_MAX;
	     wait = wakeups_cause_of(w, wait)) {
		struct waker *waker = wakeups_waker_of(w, wait);

		/* Stop at a circle. A thread may wake itself, so the first waker is allowed. */
		for (size_t i = 0; n > 1 && i < n; i++)
			if (wait->waker_tid && wait->waker_tid == tids[i])
				waker = NULL;
		if (!waker)
			break;
		wakeups_cut_interrupt(w, wait, waker);
		if (n == 1) {
			w->summary.known_ns += sleeper->blocked_ns;
			w->summary.interrupt_ns += waker->interrupted ? sleeper->blocked_ns : 0;
		}
		int r = w->full ? -E2BIG : wakeups_put_above(w, waker, &stack);

		if (r == -E2BIG) {
			w->summary.left_out++;
			w->summary.left_out_ns += sleeper->blocked_ns;
			return 0;
		}
		if (r)
			return r;
		if (waker->interrupted)
			break;
		tids[n++] = wait->waker_tid;
	}
	if (stack == sleeper->stack)
		return 0;
	w->summary.samples++;
	return profile_sample(w->profile, &(struct profile_sample){.time_ns = sleeper->end_ns,
								   .weight = sleeper->blocked_ns,
								   .event = w->event,
								   .thread = sleeper->thread,
								   .stack = stack,
								   .cpu = -1});
}

static int wakeups_add_event(struct wakeups *w)
{
	struct profile_event event = {.has_period = true, .off_cpu = true, .wakeup = true};
	int r = profile_text(w->profile, WAKEUPS_EVENT, strlen(WAKEUPS_EVENT), &event.name);

	if (!r)
		r = profile_event(w->profile, &event, &w->event);
	if (!r)
		r = wakeups_name_frame(w, WAKEUPS_DELIMITER, strlen(WAKEUPS_DELIMITER),
				       &w->delimiter);
	return r ? r
		 : wakeups_name_frame(w, WAKEUPS_INTERRUPT, strlen(WAKEUPS_INTERRUPT),
				      &w->interrupt);
}

int post_wakeups_finish(struct wakeups *w, struct wakeups_summary *ret_summary)
{
	int r = 0;

	w->begun_nodes = profile_nstacks(w->profile);
	/* A recording without wakers gets no event. */
	if (w->wakers.len)
		r = wakeups_add_event(w);
	w->full = r == -E2BIG;
	r = w->full ? 0 : r;
	if (w->wakers.len && w->waits.len) {
		qsort(w->wakers.v, w->wakers.len, sizeof(*w->wakers.v), wakeups_by_offset);
		qsort(w->waits.v, w->waits.len, sizeof(*w->waits.v), wakeups_by_thread_and_end);
	}
	for (size_t i = 0; i < w->waits.len && w->wakers.len && !r; i++) {
		const struct wait *wait = &w->waits.v[i];
		/*
		 * A wait cut at the end goes on, unless its thread was woken and waited for a CPU.
		 */
		bool goes_on =
			wait->flags & OFFCPU_IDX_CUT_END && !wait->woken_ns && !wait->waker_off;

		w->summary.blocked_ns += wait->blocked_ns;
		w->summary.ended_ns += goes_on ? 0 : wait->blocked_ns;
		r = wakeups_put_chain(w, wait);
	}
	if (!r)
		*ret_summary = w->summary;
	return r;
}
