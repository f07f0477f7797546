#include "unwind/x86_64_code.h"

#include "base/cleanup.h"
#include "unwind/x86_64_insn.h"

#include <errno.h>
#include <stdlib.h>

/* Numbers of registers in instructions. */
#define SP_NO 4
#define BP_NO 5
#define EPILOGUE_MAX 24     /* instructions */
#define DEPTH_MAX (1 << 30) /* bytes of a frame */

/* The release of a frame; places are offsets from the present value of rsp, or rbp if from_bp. */
struct release {
	bool from_bp, has_fp;
	int64_t at; /* of the stack pointer after the instructions so far */
	int64_t fp; /* of the caller's frame pointer */
};

static void finish(const struct release *g, struct unwind_rule *ret_rule)
{
	*ret_rule = (struct unwind_rule){
		.kind = UNWIND_PLAIN,
		.cfa_reg = g->from_bp ? ARCH_FP : ARCH_SP,
		.cfa_add = (int32_t)(g->at - ARCH_RETURN_OFF),
		.fp = g->has_fp ? UNWIND_FP_AT : UNWIND_FP_SAME,
		.fp_at = g->has_fp ? (int32_t)(g->fp - g->at + ARCH_RETURN_OFF) : 0,
	};
}

/* Applies an instruction that releases stack. False: it does something else. */
static bool apply_release(struct release *g, const struct x86_64_insn *i)
{
	switch (i->effect) {
	case X86_64_LEAVE:
		if (g->has_fp)
			return false;
		*g = (struct release){true, true, 8, 0};
		return true;
	case X86_64_SP_FROM_BP:
		if (g->has_fp)
			return false;
		g->from_bp = true;
		g->at = i->value;
		return true;
	case X86_64_SP_ADD:
		g->at += i->value;
		break;
	case X86_64_POP:
		if (i->reg == SP_NO || (i->reg == BP_NO && g->has_fp))
			return false;
		if (i->reg == BP_NO) {
			g->has_fp = true;
			g->fp = g->at;
		}
		g->at += 8;
		break;
	default:
		return false;
	}
	return g->at > -DEPTH_MAX && g->at < DEPTH_MAX;
}

static bool leaves(const struct x86_64_insn *i, uint64_t behind_it, uint64_t before,
		   uint64_t behind)
{
	int64_t to = (int64_t)behind_it + i->value;

	if (i->effect == X86_64_RET)
		return true;
	if (i->effect == X86_64_JUMP_FAR)
		return i->tail;
	/* No loop jumps back to the prologue. */
	return i->effect == X86_64_JUMP &&
	       (to < 0 ? (uint64_t)-to >= before : (uint64_t)to >= behind || (!to && !before));
}

bool x86_64_epilogue(const unsigned char *code, size_t len, uint64_t before, uint64_t behind,
		     struct unwind_rule *ret_rule, unsigned int *ret_decoded)
{
	struct release g = {0};
	struct x86_64_insn i;
	size_t at = 0;

	*ret_decoded = 0;
	while (*ret_decoded < EPILOGUE_MAX && x86_64_insn(code + at, len - at, &i)) {
		++*ret_decoded;
		at += i.len;
		if (leaves(&i, at, before, behind)) {
			finish(&g, ret_rule);
			return true;
		}
		if (!i.is_vzeroupper && !i.is_nop && !apply_release(&g, &i))
			return false;
	}
	return false;
}

/* The known facts at an instruction. Depths are distances from a register up to the CFA. */
struct state {
	int32_t sp, bp;
	int32_t fp_at; /* offset from the CFA */
	bool sp_known;
	bool bp_frame; /* rbp is bp below the CFA */
	bool bp_same;  /* rbp has the caller's value */
	bool fp_saved; /* the caller's rbp is at fp_at */
};

enum mark {
	UNSEEN,
	SEEN,
	QUEUED,
};

struct follow {
	const unsigned char *code;
	size_t len;
	struct state *states; /* by the offset of an instruction */
	uint8_t *marks;
	uint32_t *queue;
	size_t nqueue;
};

static struct unwind_rule rule_of(const struct state *s)
{
	struct unwind_rule rule = {.kind = UNWIND_NONE};

	if (!s->sp_known && !s->bp_frame)
		return rule;
	rule.kind = UNWIND_PLAIN;
	rule.cfa_reg = s->sp_known ? ARCH_SP : ARCH_FP;
	rule.cfa_add = s->sp_known ? s->sp : s->bp;
	rule.fp = s->fp_saved ? UNWIND_FP_AT : s->bp_same ? UNWIND_FP_SAME : UNWIND_FP_LOST;
	rule.fp_at = rule.fp == UNWIND_FP_AT ? s->fp_at : 0;
	rule.saves = true;
	return rule;
}

static void move_sp(struct state *s, int64_t by)
{
	int64_t sp = (int64_t)s->sp - by;

	if (sp < -ARCH_RETURN_OFF || sp > DEPTH_MAX) /* released more than it had, or too deep */
		s->sp_known = false;
	s->sp = s->sp_known ? (int32_t)sp : 0;
	if (s->sp_known && s->fp_saved && -s->fp_at > s->sp) { /* its place was released */
		s->fp_saved = false;
		s->fp_at = 0;
	}
}

static void lose_bp(struct state *s)
{
	s->bp_frame = s->bp_same = false;
	s->bp = 0;
}

static void sp_from_bp(struct state *s, int32_t value)
{
	s->sp_known = s->bp_frame;
	s->sp = s->bp_frame ? s->bp : 0;
	move_sp(s, value);
}

static void pop(struct state *s, uint8_t reg)
{
	if (reg == BP_NO && s->sp_known && s->fp_saved && s->fp_at == -s->sp) {
		lose_bp(s);
		s->bp_same = true;
	} else if (reg == BP_NO) {
		lose_bp(s);
	}
	move_sp(s, 8);
	if (reg == SP_NO)
		s->sp_known = false;
}

static void push(struct state *s, uint8_t reg)
{
	move_sp(s, -8);
	if (reg != BP_NO || !s->bp_same || !s->sp_known)
		return;
	s->fp_saved = true;
	s->fp_at = -s->sp;
}

static void apply(struct state *s, const struct x86_64_insn *i)
{
	switch (i->effect) {
	case X86_64_PUSH:
		push(s, i->reg);
		break;
	case X86_64_POP:
		pop(s, i->reg);
		break;
	case X86_64_SP_ADD:
		move_sp(s, i->value);
		break;
	case X86_64_LEAVE:
		sp_from_bp(s, 0);
		pop(s, BP_NO);
		break;
	case X86_64_SP_FROM_BP:
		sp_from_bp(s, i->value);
		break;
	case X86_64_BP_FROM_SP:
		lose_bp(s);
		s->bp_frame = s->sp_known;
		s->bp = s->sp_known && i->value > -DEPTH_MAX && i->value < DEPTH_MAX
				? s->sp - i->value
				: 0;
		break;
	case X86_64_SP_LOST:
		s->sp_known = false;
		s->sp = 0;
		break;
	case X86_64_BP_LOST:
		lose_bp(s);
		break;
	default:
		break;
	}
}

/* Keeps the facts that both paths share. True: *s has lost some. */
static bool join(struct state *s, const struct state *other)
{
	struct state was = *s;

	if (s->sp_known && (!other->sp_known || other->sp != s->sp)) {
		s->sp_known = false;
		s->sp = 0;
	}
	if (s->bp_frame && (!other->bp_frame || other->bp != s->bp)) {
		s->bp_frame = false;
		s->bp = 0;
	}
	s->bp_same &= other->bp_same;
	if (s->fp_saved && (!other->fp_saved || other->fp_at != s->fp_at)) {
		s->fp_saved = false;
		s->fp_at = 0;
	}
	return was.sp_known != s->sp_known || was.bp_frame != s->bp_frame ||
	       was.bp_same != s->bp_same || was.fp_saved != s->fp_saved;
}

static void reach(struct follow *f, int64_t at, const struct state *s)
{
	if (at < 0 || (uint64_t)at >= f->len)
		return;
	if (f->marks[at] == UNSEEN)
		f->states[at] = *s;
	else if (!join(&f->states[at], s))
		return;
	if (f->marks[at] != QUEUED)
		f->queue[f->nqueue++] = (uint32_t)at; /* it has room: each offset is in it once */
	f->marks[at] = QUEUED;
}

static void follow_from(struct follow *f, size_t entry)
{
	const struct state begin = {.sp = -ARCH_RETURN_OFF, .sp_known = true, .bp_same = true};
	struct x86_64_insn i;

	reach(f, (int64_t)entry, &begin);
	while (f->nqueue) {
		size_t at = f->queue[--f->nqueue];
		struct state s = f->states[at];

		f->marks[at] = SEEN;
		if (!x86_64_insn(f->code + at, f->len - at, &i))
			continue;
		int64_t next = (int64_t)(at + i.len);

		/* Code calls the next instruction to get its own address. */
		if (i.effect == X86_64_CALL && !i.value && f->code[at] == 0xe8)
			push(&s, X86_64_NO_REG);
		apply(&s, &i);
		if (i.effect == X86_64_JUMP || i.effect == X86_64_BRANCH)
			reach(f, next + i.value, &s);
		if (i.effect != X86_64_JUMP && i.effect != X86_64_JUMP_FAR &&
		    i.effect != X86_64_RET && i.effect != X86_64_STOP)
			reach(f, next, &s);
	}
}

int x86_64_follow(const unsigned char *code, size_t len, bool many,
		  int (*fn)(void *ctx, size_t offset, const struct unwind_rule *rule), void *ctx)
{
	AUTO_FREE struct state *states = NULL;
	AUTO_FREE uint32_t *queue = NULL;
	AUTO_FREE uint8_t *marks = NULL;
	struct x86_64_insn i;
	int r = 0;

	if (len > X86_64_CODE_BYTES_MAX)
		return -E2BIG;
	states = calloc(len + 1, sizeof(*states));
	queue = calloc(len + 1, sizeof(*queue));
	marks = calloc(len + 1, 1);
	if (!states || !queue || !marks)
		return -ENOMEM;
	struct follow f = {
		.code = code, .len = len, .states = states, .marks = marks, .queue = queue};

	follow_from(&f, 0);
	for (size_t at = 0; many && at < len;) {
		bool known = x86_64_insn(code + at, len - at, &i);

		if (marks[at] == UNSEEN && known && i.effect != X86_64_STOP && !i.is_nop)
			follow_from(&f, at);
		at += known ? i.len : 1;
	}
	for (size_t at = 0; !r && at < len; at++) {
		struct unwind_rule rule = rule_of(&states[at]);

		if (marks[at] != UNSEEN)
			r = fn(ctx, at, &rule);
	}
	return r;
}

/* A path ahead that is not followed yet. */
struct path {
	size_t at;
	struct release release;
};

#define PATHS_MAX 16

/* Applies an instruction on the path to a return. False: its effect is unknown. */
static bool apply_ahead(struct release *g, const struct x86_64_insn *i)
{
	switch (i->effect) {
	case X86_64_PUSH:
		if (i->reg == BP_NO)
			return false;
		g->at -= 8;
		return true;
	case X86_64_NONE:
	case X86_64_BRANCH:
		return true;
	case X86_64_CALL:
		return i->value || !g->from_bp;
	default:
		return apply_release(g, i);
	}
}

/*
 * Follows one path to its return and adds branches to paths. 1: it has a return; 0: it stops, or
 * goes on in other paths; -1: unknown.
 */
static int follow_path(const unsigned char *code, size_t len, struct path *w, struct path *paths,
		       size_t *npaths, int *steps)
{
	struct x86_64_insn i;

	while (--*steps > 0 && w->at < len && x86_64_insn(code + w->at, len - w->at, &i)) {
		size_t next = w->at + i.len;
		int64_t to = (int64_t)next + i.value;

		if (i.effect == X86_64_RET)
			return 1;
		if (i.effect == X86_64_STOP)
			return 0;
		if (i.effect == X86_64_JUMP || i.effect == X86_64_BRANCH) {
			if (to >= 0 && (uint64_t)to > w->at && *npaths < PATHS_MAX) {
				paths[*npaths] = *w;
				paths[(*npaths)++].at = (size_t)to;
			} else if (i.effect == X86_64_JUMP && to >= 0 && (uint64_t)to >= len) {
				return -1;
			}
			if (i.effect == X86_64_JUMP)
				return 0;
		}
		if (i.effect == X86_64_JUMP_FAR || !apply_ahead(&w->release, &i))
			return -1;
		w->at = next;
	}
	return -1;
}

bool x86_64_ahead(const unsigned char *code, size_t len, struct unwind_rule *ret_rule)
{
	struct path paths[PATHS_MAX] = {{0}};
	struct unwind_rule rule;
	size_t npaths = 1;
	int steps = X86_64_AHEAD_MAX;
	bool found = false;

	while (npaths) {
		struct path w = paths[--npaths];
		int r = follow_path(code, len, &w, paths, &npaths, &steps);

		if (r < 0)
			return false;
		if (!r)
			continue;
		finish(&w.release, &rule);
		rule.saves = true;
		if (found && memcmp(&rule, ret_rule, sizeof(rule)) != 0)
			return false;
		*ret_rule = rule;
		found = true;
	}
	return found;
}
