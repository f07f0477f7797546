#include "unwind/walk.h"

#include "base/vec.h"
#include "unwind/walk_last.h"

#include <errno.h>

/* What one stack needs on the way. */
struct walker {
	struct walk *w;
	const struct walk_source *source;
	const struct unwind_memory *memory;
	struct unwind_regs regs;
	bool full; /* every step follows all registers */
	bool exact; /* of the frame that regs are of */
	uint64_t edge_at; /* WALK_EDGE: where its return address is, behind the copy; 0: not known */
	unsigned scanned, jumps;
};

/* What a step says besides 0 and -ENOMEM. */
#define STEP_END(end) (1 + (int)(end))
#define STEP_AGAIN (-1000) /* a register is needed that only full steps know */

const char *walk_end_text(enum walk_end end)
{
	static const char *const texts[WALK_ENDS] = {
		[WALK_START] = "start",	    [WALK_EDGE] = "copy-end",	[WALK_NO_RULE] = "no-rule",   [WALK_NOT_CODE] = "not-code",
		[WALK_STUCK] = "no-progress", [WALK_LIMIT] = "frame-limit", [WALK_DAMAGED] = "damaged", [WALK_LATER] = "code-unknown",
	};

	return end < WALK_ENDS ? texts[end] : "?";
}

void walk_free(struct walk *w)
{
	free(w->frames);
	walk_last_free(w);
	*w = (struct walk){0};
}

static int put_frame(struct walk *w, const struct walk_frame *frame)
{
	if (w->n == w->cap && vec_grow((void **)&w->frames, &w->cap, sizeof(*w->frames), w->n + 1))
		return -ENOMEM;
	w->frames[w->n++] = *frame;
	return 0;
}

static inline uint64_t lookup_addr(const struct walker *k)
{
	/* A call may be the last instruction of its function. */
	return k->regs.v[ARCH_IP] - !k->exact;
}

static inline bool is_known(const struct unwind_regs *regs, unsigned reg)
{
	return regs->known >> reg & 1;
}

static void set_reg(struct unwind_regs *regs, unsigned reg, uint64_t value)
{
	regs->v[reg] = value;
	regs->known |= 1u << reg;
}

static int step_plain(struct walker *k, const struct unwind_rule *rule, struct walk_frame *caller)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t cfa, ip, fp = regs->v[ARCH_FP];
	bool has_fp = is_known(regs, ARCH_FP);

	if (rule->cfa_reg >= ARCH_REGS || !is_known(regs, rule->cfa_reg))
		return k->full ? STEP_END(WALK_DAMAGED) : STEP_AGAIN;
	cfa = regs->v[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_add;
	if (rule->kind == UNWIND_PLT && (regs->v[ARCH_IP] & 15) >= 11)
		cfa += 8;
	if (cfa <= regs->v[ARCH_SP])
		return STEP_END(WALK_STUCK);
	caller->at = cfa + (uint64_t)(int64_t)ARCH_RETURN_AT;
	if (!unwind_memory_word(k->memory, caller->at, &ip)) {
		k->edge_at = caller->at;
		return STEP_END(WALK_EDGE);
	}
	caller->plain = rule->cfa_reg == ARCH_SP || rule->cfa_reg == ARCH_FP;
	if (rule->fp == UNWIND_FP_AT) {
		caller->fp_at = cfa + (uint64_t)(int64_t)rule->fp_at;
		has_fp = unwind_saved(k->memory, regs, ARCH_FP, caller->fp_at, &fp);
		caller->plain &= has_fp && caller->fp_at >= regs->v[ARCH_SP];
	} else if (rule->fp == UNWIND_FP_LOST) {
		has_fp = false;
	}
	caller->lost = rule->saves;
	walk_keep_regs(regs, caller->lost);
	set_reg(regs, ARCH_SP, cfa);
	set_reg(regs, ARCH_IP, ip);
	if (has_fp)
		set_reg(regs, ARCH_FP, fp);
	k->exact = false;
	return 0;
}

static int step_full(struct walker *k, uint64_t addr, const struct unwind_rule *rule, uint64_t *ret_at)
{
	struct unwind_regs before = k->regs;
	bool signal = false;
	int r = k->source->step(k->source->ctx, addr, &k->regs, k->memory, &signal);

	k->w->steps_full++;
	if (r) {
		k->regs = before;
		if (r == -ENODATA && rule->kind == UNWIND_PLAIN && is_known(&before, rule->cfa_reg))
			k->edge_at = before.v[rule->cfa_reg] + (uint64_t)(int64_t)(rule->cfa_add + ARCH_RETURN_AT);
		return STEP_END(r == -ENODATA ? WALK_EDGE : r == -EAGAIN ? WALK_LATER : WALK_DAMAGED);
	}
	if (!is_known(&k->regs, ARCH_SP) || !is_known(&k->regs, ARCH_IP))
		return STEP_END(WALK_DAMAGED);
	/* vfork keeps its return address in a register, and nothing on the stack. */
	if (k->regs.v[ARCH_SP] == before.v[ARCH_SP] && k->w->n == 1)
		k->jumps++;
	else if (k->regs.v[ARCH_SP] <= before.v[ARCH_SP] && (!signal || ++k->jumps > WALK_JUMPS_MAX))
		return STEP_END(WALK_STUCK);
	*ret_at = signal ? 0 : k->regs.v[ARCH_SP] + (uint64_t)(int64_t)ARCH_RETURN_AT;
	k->exact = signal;
	/* Handlers return to the first instruction of what ends a signal, where no call was. */
	k->w->frames[k->w->n - 1].exact |= signal;
	return 0;
}

/* Whether a word that was found where a return address would be can be one. */
static bool is_code(const struct walker *k, uint64_t addr)
{
	struct unwind_rule rule;

	return addr && k->source->rule(k->source->ctx, addr - 1, &rule) != -ENOENT;
}

/* Code without rules that keeps a frame pointer. */
static int step_frame_pointer(struct walker *k, uint64_t *ret_at)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t fp = regs->v[ARCH_FP], ip, outer;

	if (!is_known(regs, ARCH_FP) || fp < regs->v[ARCH_SP] || fp & 7 || !unwind_memory_word(k->memory, fp, &outer) ||
	    !unwind_memory_word(k->memory, fp + 8, &ip) || !is_code(k, ip) || !k->source->is_return(k->source->ctx, ip))
		return -ENOENT;
	*ret_at = fp + 8;
	regs->known = 0;
	set_reg(regs, ARCH_SP, fp + 16);
	set_reg(regs, ARCH_FP, outer);
	set_reg(regs, ARCH_IP, ip);
	k->exact = false;
	return 0;
}

static int step_scan(struct walker *k, uint64_t *ret_at)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t at = (regs->v[ARCH_SP] + 7) & ~UINT64_C(7), ip;

	for (; k->scanned < WALK_SCAN_WORDS; k->scanned++, at += 8) {
		if (!unwind_memory_word(k->memory, at, &ip))
			return STEP_END(WALK_EDGE);
		if (!is_code(k, ip) || k->source->is_return(k->source->ctx, ip) <= 0)
			continue;
		*ret_at = at;
		regs->known &= 1u << ARCH_FP;
		set_reg(regs, ARCH_SP, at + 8);
		set_reg(regs, ARCH_IP, ip);
		k->exact = false;
		return 0;
	}
	return STEP_END(WALK_NO_RULE);
}

static int step_without_rule(struct walker *k, struct walk_frame *caller)
{
	/* The ABI: the outermost frame has a frame pointer of 0. */
	if (k->w->n > 1 && is_known(&k->regs, ARCH_FP) && !k->regs.v[ARCH_FP])
		return STEP_END(WALK_START);
	caller->how = WALK_FRAME_POINTER;
	if (!step_frame_pointer(k, &caller->at))
		return 0;
	caller->how = WALK_GUESS;
	return step_scan(k, &caller->at);
}

/* Code of which only what it does next is known. Where it does not come back from a call, what comes then is not its own. */
static int step_ahead(struct walker *k, const struct unwind_rule *rule, struct walk_frame *caller)
{
	struct unwind_regs before = k->regs;
	uint64_t ip;

	if (k->exact && !step_plain(k, rule, caller)) {
		ip = k->regs.v[ARCH_IP];
		if (is_code(k, ip) && k->source->is_return(k->source->ctx, ip))
			return 0;
		k->exact = true;
	}
	k->regs = before;
	k->edge_at = 0;
	*caller = (struct walk_frame){.how = WALK_RULE};
	return step_without_rule(k, caller);
}

/* To the caller of a method whose return address was hijacked. All registers are that caller's; only where it goes on may not be known:
 * then it is missing, and its own caller is found by its frame pointer. */
static int step_hijack(struct walker *k, const struct unwind_rule *rule, struct walk_frame *caller)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t cfa = regs->v[ARCH_SP] + (uint64_t)(int64_t)rule->cfa_add, ip;

	caller->at = cfa + (uint64_t)(int64_t)ARCH_RETURN_AT;
	if (++k->jumps > WALK_JUMPS_MAX)
		return STEP_END(WALK_STUCK);
	if (!rule->cfa_add || !unwind_memory_word(k->memory, caller->at, &ip) || !is_code(k, ip)) {
		caller->how = WALK_GUESS;
		if (!k->source->hijacked || k->source->hijacked(k->source->ctx, caller->at, k->memory, &ip))
			return step_frame_pointer(k, &caller->at) ? step_scan(k, &caller->at) : 0;
	}
	set_reg(regs, ARCH_SP, cfa);
	set_reg(regs, ARCH_IP, ip);
	k->exact = false;
	return 0;
}

/* What was taken for the caller is the stub that is to take its place. Where the caller cannot be known the stub stands for it. */
static int step_hijacked(struct walker *k, struct walk_frame *caller)
{
	static const struct unwind_rule rule = {.kind = UNWIND_HIJACK, .cfa_reg = ARCH_SP};
	struct walk_frame *stub = &k->w->frames[k->w->n - 1];
	int r = step_hijack(k, &rule, caller);

	stub->how = WALK_GUESS;
	stub->exact = true;
	k->w->n -= !r && caller->at == stub->at;
	return r;
}

/* A word that may be a frame pointer: it leads up the stack, and a return address lies behind it. */
static bool is_link(const struct walker *k, uint64_t at, uint64_t *ret_outer)
{
	uint64_t ip;

	return unwind_memory_word(k->memory, at, ret_outer) && unwind_memory_word(k->memory, at + 8, &ip) && *ret_outer > at &&
	       !(*ret_outer & 7) && is_code(k, ip) && k->source->is_return(k->source->ctx, ip);
}

/* Or one of a function that the first one of a thread calls, which has no use for frame pointers. */
static bool is_last_link(const struct walker *k, uint64_t at)
{
	struct unwind_rule rule;
	uint64_t ip;

	if (!unwind_memory_word(k->memory, at + 8, &ip) || !is_code(k, ip) || k->source->is_return(k->source->ctx, ip) <= 0 ||
	    k->source->rule(k->source->ctx, ip - 1, &rule) || rule.kind != UNWIND_PLAIN || rule.cfa_reg != ARCH_SP)
		return false;
	return unwind_memory_word(k->memory, at + 16 + (uint64_t)(int64_t)(rule.cfa_add + ARCH_RETURN_AT), &ip) && ip &&
	       !k->source->rule(k->source->ctx, ip - 1, &rule) && rule.kind == UNWIND_END;
}

/* Of a thread that was looked at from outside the frame pointer is not known until a frame has saved it: it is the first of the stack that
 * leads to another one. */
static void guess_frame_pointer(struct walker *k, struct walk_frame *caller)
{
	uint64_t at = (k->regs.v[ARCH_SP] + 7) & ~UINT64_C(7), outer, next;

	for (; k->scanned < WALK_SCAN_WORDS; k->scanned++, at += 8) {
		if (!(is_link(k, at, &outer) && is_link(k, outer, &next)) && !is_last_link(k, at))
			continue;
		set_reg(&k->regs, ARCH_FP, at);
		caller->how = WALK_GUESS;
		return;
	}
}

/* Nobody describes the code. */
static bool is_bare(const struct unwind_rule *rule)
{
	return rule->kind == UNWIND_NONE || rule->kind == UNWIND_AHEAD;
}

/* To the caller. 0: caller and k->regs are its; STEP_*; -ENOMEM. */
static int step(struct walker *k, struct walk_frame *caller)
{
	uint64_t addr = lookup_addr(k);
	struct unwind_rule rule, before;
	int r = k->source->rule(k->source->ctx, addr, &rule);

	/* The system call may be the last instruction of its function, as that by which a signal's handler returns is. */
	if (!r && is_bare(&rule) && k->w->n == 1 && k->w->in_kernel &&
	    !k->source->rule(k->source->ctx, addr - 1, &before) && !is_bare(&before)) {
		rule = before;
		addr--;
	}
	*caller = (struct walk_frame){.how = WALK_RULE};
	if (r == -EAGAIN)
		return STEP_END(WALK_LATER);
	if (r == -ENOENT) {
		/* A call to where there is no code: what is on top of the stack is where it came from. */
		rule = (struct unwind_rule){.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = 8};
		r = k->w->n > 1 ? STEP_END(WALK_NOT_CODE) : step_plain(k, &rule, caller);
		return !r && !k->regs.v[ARCH_IP] ? STEP_END(WALK_NOT_CODE) : r;
	}
	if (r)
		rule.kind = UNWIND_NONE;
	if (k->full && rule.kind == UNWIND_PLAIN && rule.cfa_reg == ARCH_FP && !is_known(&k->regs, ARCH_FP))
		guess_frame_pointer(k, caller);
	switch (rule.kind) {
	case UNWIND_END:
		return STEP_END(WALK_START);
	case UNWIND_PLAIN:
	case UNWIND_PLT:
		return k->full && (rule.saves || rule.kind == UNWIND_PLAIN) ? step_full(k, addr, &rule, &caller->at)
									    : step_plain(k, &rule, caller);
	case UNWIND_AHEAD:
		return step_ahead(k, &rule, caller);
	case UNWIND_HIJACK:
		return step_hijack(k, &rule, caller);
	case UNWIND_HIJACK_NEXT:
		return k->exact ? step_full(k, addr, &rule, &caller->at) : step_hijacked(k, caller);
	case UNWIND_FULL:
		return step_full(k, addr, &rule, &caller->at);
	default:
		return step_without_rule(k, caller);
	}
}

/* As far as rules and the copy lead. */
static int walk_rules(struct walker *k, const struct unwind_regs *regs)
{
	struct walk *w = k->w;
	struct walk_frame frame = {.ip = regs->v[ARCH_IP], .sp = regs->v[ARCH_SP], .how = WALK_RULE, .exact = true};
	int r;

	k->regs = *regs;
	k->exact = true;
	k->scanned = k->jumps = 0;
	k->edge_at = 0;
	w->n = w->at_before = 0;
	if (!is_known(regs, ARCH_IP) || !is_known(regs, ARCH_SP)) {
		w->end = WALK_DAMAGED;
		return 0;
	}
	for (;;) {
		if (put_frame(w, &frame) || (w->nbefore && !k->exact && !k->full && walk_last_follow(w, &k->regs, k->memory)))
			return -ENOMEM;
		if (w->n >= w->max) {
			w->end = WALK_LIMIT;
			return 0;
		}
		r = step(k, &frame);
		if (r == STEP_AGAIN || r == -ENOMEM)
			return r;
		if (r) {
			w->end = (uint8_t)(r - 1);
			w->n -= w->end == WALK_NOT_CODE;
			return 0;
		}
		frame.ip = k->regs.v[ARCH_IP];
		frame.sp = k->regs.v[ARCH_SP];
		frame.fp = k->regs.v[ARCH_FP];
		frame.has_fp = is_known(&k->regs, ARCH_FP);
		frame.exact = k->exact;
		/* Where threads begin without CFI there is nothing to return to. */
		if (!frame.ip) {
			w->end = WALK_START;
			return 0;
		}
	}
}

/*
 * The kernel followed the frame pointers from the sample's on: entry i + 1 of its chain was read behind the i-th of them. The copy tells
 * those that lie in it. Where the frame that the walk has come to keeps its return address behind one of these, the kernel read it. The
 * index of that entry, or 0.
 */
static size_t chain_entry(const struct walker *k, const struct unwind_regs *sampled, const uint64_t *chain, size_t n)
{
	uint64_t fp = sampled->v[ARCH_FP], target = k->edge_at - 8, ip;

	if (k->w->end == WALK_NO_RULE)
		target = is_known(&k->regs, ARCH_FP) ? k->regs.v[ARCH_FP] : 0;
	if (!is_known(sampled, ARCH_FP) || target < k->regs.v[ARCH_SP] || (k->w->end == WALK_EDGE && !k->edge_at))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (fp == target)
			return i;
		/* What is not as the kernel read it is not what it followed. */
		if (!unwind_memory_word(k->memory, fp + 8, &ip) || ip != chain[i] || !unwind_memory_word(k->memory, fp, &fp))
			return 0;
	}
	return 0;
}

/* Code that keeps something else in the frame pointer's register than where its own frame is: who called it is not on the chain. */
static bool breaks_chain(const struct unwind_rule *rule)
{
	return (rule->kind == UNWIND_PLAIN && (rule->cfa_reg != ARCH_FP || rule->cfa_add != 16)) || rule->kind == UNWIND_PLT;
}

static int splice(struct walker *k, const struct unwind_regs *sampled, const uint64_t *chain, size_t n)
{
	struct walk *w = k->w;
	size_t i = chain_entry(k, sampled, chain, n);
	struct unwind_rule rule;
	bool missing = false;

	if (!i)
		return 0;
	w->edge = w->end;
	for (; i < n; i++) {
		struct walk_frame frame = {.ip = chain[i], .how = missing ? WALK_GUESS : WALK_SPLICE};
		int r = chain[i] ? k->source->rule(k->source->ctx, chain[i] - 1, &rule) : -ENOENT;

		if (r == -ENOENT)
			return 0;
		if (w->n >= w->max) {
			w->end = WALK_LIMIT;
			return 0;
		}
		if (!r && rule.kind == UNWIND_HIJACK_NEXT) {
			frame.how = WALK_GUESS;
			frame.exact = true;
		}
		if (put_frame(w, &frame))
			return -ENOMEM;
		if (!r && rule.kind == UNWIND_END) {
			w->end = WALK_START;
			return 0;
		}
		missing = !r && breaks_chain(&rule);
	}
	return 0;
}

int walk_stack(struct walk *w, const struct walk_source *source, const struct unwind_regs *regs,
	       const struct unwind_memory *memory, const uint64_t *chain, size_t nchain)
{
	struct walker k = {.w = w, .source = source, .memory = memory};
	int r;

	if (!w->max)
		w->max = WALK_FRAMES_MAX;
	w->edge = WALK_START;
	w->steps_full = 0;
	w->passing = false;
	walk_last_begin(w);
	r = walk_rules(&k, regs);
	if (r == STEP_AGAIN) {
		k.full = true;
		r = walk_rules(&k, regs);
	}
	w->full = k.full;
	if (!r && (w->end == WALK_EDGE || w->end == WALK_NO_RULE))
		r = splice(&k, regs, chain, nchain);
	w->walked.thread = w->thread;
	w->walked.space = r || w->passing ? 0 : w->space;
	return r;
}
