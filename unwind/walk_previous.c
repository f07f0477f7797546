#include "unwind/walk_previous.h"

#include "base/vec.h"

#include <errno.h>

struct walk_previous {
	uint32_t thread, space; /* space 0: free */
	struct walk_frame *frames;
	size_t n, cap;
};

static struct walk_previous *slot_of(const struct walk *w, uint32_t thread)
{
	return &w->last[thread & (WALK_LAST_THREADS - 1)];
}

/* Shrinks the memory of a deep stack before it is kept. False: the stack cannot be kept. */
static bool fits(struct walk *w)
{
	struct walk_frame *frames;

	if (w->n > WALK_LAST_FRAMES_MAX)
		return false;
	if (w->cap <= WALK_LAST_FRAMES_MAX)
		return true;
	frames = reallocarray(w->frames, WALK_LAST_FRAMES_MAX, sizeof(*frames));
	if (!frames)
		return false;
	w->frames = frames;
	w->cap = WALK_LAST_FRAMES_MAX;
	return true;
}

static void keep(struct walk *w)
{
	struct walk_previous *slot = slot_of(w, w->walked.thread), before = *slot;

	if (!fits(w))
		return;
	*slot = (struct walk_previous){w->walked.thread, w->walked.space, w->frames, w->n, w->cap};
	w->frames = before.frames;
	w->cap = before.cap;
}

void walk_previous_begin(struct walk *w)
{
	const struct walk_previous *slot;

	w->before = NULL;
	w->nbefore = w->at_before = 0;
	if (!w->last && !(w->last = calloc(WALK_LAST_THREADS, sizeof(*w->last))))
		return;
	if (w->walked.space)
		keep(w);
	w->walked.space = 0;
	slot = slot_of(w, w->thread);
	if (!w->space || slot->thread != w->thread || slot->space != w->space)
		return;
	w->before = slot->frames;
	w->nbefore = slot->n;
}

static bool is_same(const struct walk_frame *a, const struct walk_frame *b)
{
	return a->sp == b->sp && a->ip == b->ip && !a->exact && !b->exact &&
	       a->has_fp == b->has_fp && (!a->has_fp || a->fp == b->fp);
}

/* Whether the words that led to the frame are in the copy, unchanged. */
static bool leads_to(const struct walk_frame *f, const struct unwind_memory *memory)
{
	uint64_t word;

	return f->plain && unwind_memory_word(memory, f->at, &word) && word == f->ip &&
	       (!f->fp_at || (unwind_memory_word(memory, f->fp_at, &word) && word == f->fp));
}

int walk_previous_follow(struct walk *w, struct unwind_regs *regs,
			 const struct unwind_memory *memory)
{
	const struct walk_frame *now = &w->frames[w->n - 1], *end = w->before + w->nbefore,
				*f = w->before + w->at_before;

	while (f < end && f->sp < now->sp)
		f++;
	w->at_before = (size_t)(f - w->before);
	if (f == end || !is_same(f, now))
		return 0;
	for (now = f++; f < end && w->n < w->max && leads_to(f, memory); now = f++) {
		walk_keep_regs(regs, f->lost);
		if (w->n == w->cap &&
		    vec_grow((void **)&w->frames, &w->cap, sizeof(*w->frames), w->n + 1))
			return -ENOMEM;
		w->frames[w->n] = *f;
		w->frames[w->n].how = WALK_RULE;
		w->frames[w->n++].exact = false;
	}
	w->at_before = (size_t)(now - w->before);
	regs->v[ARCH_IP] = now->ip;
	regs->v[ARCH_SP] = now->sp;
	regs->v[ARCH_FP] = now->fp;
	regs->known = (regs->known & ~(1u << ARCH_FP)) | 1u << ARCH_IP | 1u << ARCH_SP |
		      (now->has_fp ? 1u << ARCH_FP : 0);
	return 0;
}

void walk_previous_free(struct walk *w)
{
	for (size_t i = 0; w->last && i < WALK_LAST_THREADS; i++)
		free(w->last[i].frames);
	free(w->last);
}
