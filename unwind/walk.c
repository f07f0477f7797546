#include "unwind/walk.h"

#include "base/vec.h"
#include "unwind/walk_previous.h"

#include <errno.h>

/* The state of one walk. */
struct walker {
	struct walk *w;
	const struct walk_source *source;
	const struct unwind_memory *memory;
	struct unwind_regs regs;
	bool full;  /* every step follows all registers */
	bool exact; /* walk_frame.exact of the frame of regs */
	/* With WALK_COPY_END: stack address of the return address, beyond the copy; 0: not known.
	 */
	uint64_t edge_at;
	unsigned scanned, jumps;
};

/* Results of a step besides 0 and -ENOMEM. */
#define STEP_END(end) (1 + (int)(end))
#define STEP_AGAIN (-1000) /* needs a register that only full steps follow */

const char *walk_end_text(enum walk_end end)
{
	static const char *const texts[WALK_ENDS] = {
		[WALK_START] = "start",
		[WALK_COPY_END] = "copy-end",
		[WALK_NO_RULE] = "no-rule",
		[WALK_NOT_CODE] = "not-code",
		[WALK_NO_PROGRESS] = "no-progress",
		[WALK_FRAME_LIMIT] = "frame-limit",
		[WALK_DAMAGED] = "damaged",
		[WALK_CODE_UNKNOWN] = "code-unknown",
	};

	return end < WALK_ENDS ? texts[end] : "?";
}

void walk_free(struct walk *w)
{
	free(w->frames);
	walk_previous_free(w);
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
	/* A call may be the last instruction of its function, so look up the byte before. */
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
		return STEP_END(WALK_NO_PROGRESS);
	caller->at = cfa + (uint64_t)(int64_t)ARCH_RETURN_OFF;
	if (!unwind_memory_word(k->memory, caller->at, &ip)) {
		k->edge_at = caller->at;
		return STEP_END(WALK_COPY_END);
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

static int step_full(struct walker *k, uint64_t addr, const struct unwind_rule *rule,
		     uint64_t *ret_at)
{
	struct unwind_regs before = k->regs;
	bool signal = false;
	int r = k->source->step(k->source->ctx, addr, &k->regs, k->memory, &signal);

	k->w->steps_full++;
	if (r) {
		k->regs = before;
		if (r == -ENODATA && rule->kind == UNWIND_PLAIN && is_known(&before, rule->cfa_reg))
			k->edge_at = before.v[rule->cfa_reg] +
				     (uint64_t)(int64_t)(rule->cfa_add + ARCH_RETURN_OFF);
		return STEP_END(r == -ENODATA  ? WALK_COPY_END
				: r == -EAGAIN ? WALK_CODE_UNKNOWN
					       : WALK_DAMAGED);
	}
	if (!is_known(&k->regs, ARCH_SP) || !is_known(&k->regs, ARCH_IP))
		return STEP_END(WALK_DAMAGED);
	/* vfork keeps its return address in a register, so its frame has no stack. */
	if (k->regs.v[ARCH_SP] == before.v[ARCH_SP] && k->w->n == 1)
		k->jumps++;
	else if (k->regs.v[ARCH_SP] <= before.v[ARCH_SP] &&
		 (!signal || ++k->jumps > WALK_JUMPS_MAX))
		return STEP_END(WALK_NO_PROGRESS);
	*ret_at = signal ? 0 : k->regs.v[ARCH_SP] + (uint64_t)(int64_t)ARCH_RETURN_OFF;
	k->exact = signal;
	/* Signal handlers return to the first instruction of the restorer, without a call. */
	k->w->frames[k->w->n - 1].exact |= signal;
	return 0;
}

/* Whether a word in the place of a return address can be one. */
static bool is_code(const struct walker *k, uint64_t addr)
{
	struct unwind_rule rule;

	return addr && k->source->rule(k->source->ctx, addr - 1, &rule) != -ENOENT;
}

/* Steps out of code without rules that keeps a frame pointer. */
static int step_frame_pointer(struct walker *k, uint64_t *ret_at)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t fp = regs->v[ARCH_FP], ip, outer;

	if (!is_known(regs, ARCH_FP) || fp < regs->v[ARCH_SP] || fp & 7 ||
	    !unwind_memory_word(k->memory, fp, &outer) ||
	    !unwind_memory_word(k->memory, fp + 8, &ip) || !is_code(k, ip) ||
	    !k->source->is_return(k->source->ctx, ip))
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
			return STEP_END(WALK_COPY_END);
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

/*
 * Steps by a rule of kind UNWIND_AHEAD. The rule is wrong if a call in the code never returns: the
 * instructions after it belong to another function.
 */
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

/*
 * Steps to the caller of a method whose return address was hijacked. The registers already are the
 * caller's. If the caller's return address is unknown, skip the caller and find the next frame by
 * the frame pointer.
 */
static int step_hijack(struct walker *k, const struct unwind_rule *rule, struct walk_frame *caller)
{
	struct unwind_regs *regs = &k->regs;
	uint64_t cfa = regs->v[ARCH_SP] + (uint64_t)(int64_t)rule->cfa_add, ip;

	caller->at = cfa + (uint64_t)(int64_t)ARCH_RETURN_OFF;
	if (++k->jumps > WALK_JUMPS_MAX)
		return STEP_END(WALK_NO_PROGRESS);
	if (!rule->cfa_add || !unwind_memory_word(k->memory, caller->at, &ip) || !is_code(k, ip)) {
		caller->how = WALK_GUESS;
		if (!k->source->hijacked ||
		    k->source->hijacked(k->source->ctx, caller->at, k->memory, &ip))
			return step_frame_pointer(k, &caller->at) ? step_scan(k, &caller->at) : 0;
	}
	set_reg(regs, ARCH_SP, cfa);
	set_reg(regs, ARCH_IP, ip);
	k->exact = false;
	return 0;
}

/*
 * Replaces the last frame, which is the hijacking stub, with the real caller. If the caller is
 * unknown, the stub stays.
 */
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

/* Whether the word may be a saved frame pointer: it leads up the stack, above a return address. */
static bool is_link(const struct walker *k, uint64_t at, uint64_t *ret_outer)
{
	uint64_t ip;

	return unwind_memory_word(k->memory, at, ret_outer) &&
	       unwind_memory_word(k->memory, at + 8, &ip) && *ret_outer > at && !(*ret_outer & 7) &&
	       is_code(k, ip) && k->source->is_return(k->source->ctx, ip);
}

/*
 * Whether the word may be the last saved frame pointer: the frame's caller is the thread's first
 * function, which keeps none.
 */
static bool is_last_link(const struct walker *k, uint64_t at)
{
	struct unwind_rule rule;
	uint64_t ip;

	if (!unwind_memory_word(k->memory, at + 8, &ip) || !is_code(k, ip) ||
	    k->source->is_return(k->source->ctx, ip) <= 0 ||
	    k->source->rule(k->source->ctx, ip - 1, &rule) || rule.kind != UNWIND_PLAIN ||
	    rule.cfa_reg != ARCH_SP)
		return false;
	return unwind_memory_word(k->memory,
				  at + 16 + (uint64_t)(int64_t)(rule.cfa_add + ARCH_RETURN_OFF),
				  &ip) &&
	       ip && !k->source->rule(k->source->ctx, ip - 1, &rule) && rule.kind == UNWIND_END;
}

/*
 * Guesses the frame pointer of a thread whose registers were read from outside. It is not known
 * until a frame has saved it. The first word that links to another saved frame pointer is taken, or
 * that is the last one itself.
 */
static void guess_frame_pointer(struct walker *k, struct walk_frame *caller)
{
	uint64_t at = (k->regs.v[ARCH_SP] + 7) & ~UINT64_C(7), outer, next;

	for (; k->scanned < WALK_SCAN_WORDS; k->scanned++, at += 8) {
		bool links = is_link(k, at, &outer) &&
			     (is_link(k, outer, &next) || is_last_link(k, outer));

		if (!links && !is_last_link(k, at))
			continue;
		set_reg(&k->regs, ARCH_FP, at);
		caller->how = WALK_GUESS;
		return;
	}
}

/* Whether neither CFI nor UNWIND_INFO describes the code. */
static bool has_no_description(const struct unwind_rule *rule)
{
	return rule->kind == UNWIND_NONE || rule->kind == UNWIND_AHEAD;
}

/* Steps to the caller. 0: *caller and k->regs describe it; STEP_*; -ENOMEM. */
static int step(struct walker *k, struct walk_frame *caller)
{
	uint64_t addr = lookup_addr(k);
	struct unwind_rule rule, before;
	int r = k->source->rule(k->source->ctx, addr, &rule);

	/*
	 * A system call may be the last instruction of its function, for example the one by which
	 * signal handlers return.
	 */
	if (!r && has_no_description(&rule) && k->w->n == 1 && k->w->in_kernel &&
	    !k->source->rule(k->source->ctx, addr - 1, &before) && !has_no_description(&before)) {
		rule = before;
		addr--;
	}
	*caller = (struct walk_frame){.how = WALK_RULE};
	if (r == -EAGAIN)
		return STEP_END(WALK_CODE_UNKNOWN);
	if (r == -ENOENT) {
		/* A call to an address without code: the return address is on top of the stack. */
		rule = (struct unwind_rule){.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = 8};
		r = k->w->n > 1 ? STEP_END(WALK_NOT_CODE) : step_plain(k, &rule, caller);
		return !r && !k->regs.v[ARCH_IP] ? STEP_END(WALK_NOT_CODE) : r;
	}
	if (r)
		rule.kind = UNWIND_NONE;
	if (k->full && rule.kind == UNWIND_PLAIN && rule.cfa_reg == ARCH_FP &&
	    !is_known(&k->regs, ARCH_FP))
		guess_frame_pointer(k, caller);
	switch (rule.kind) {
	case UNWIND_END:
		return STEP_END(WALK_START);
	case UNWIND_PLAIN:
	case UNWIND_PLT:
		return k->full && (rule.saves || rule.kind == UNWIND_PLAIN)
			       ? step_full(k, addr, &rule, &caller->at)
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

/* Walks as far as the rules and the copy lead. */
static int walk_rules(struct walker *k, const struct unwind_regs *regs)
{
	struct walk *w = k->w;
	struct walk_frame frame = {
		.ip = regs->v[ARCH_IP], .sp = regs->v[ARCH_SP], .how = WALK_RULE, .exact = true};
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
		if (put_frame(w, &frame) || (w->nbefore && !k->exact && !k->full &&
					     walk_previous_follow(w, &k->regs, k->memory)))
			return -ENOMEM;
		if (w->n >= w->max) {
			w->end = WALK_FRAME_LIMIT;
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
		/* A thread start without CFI has a return address of 0. */
		if (!frame.ip) {
			w->end = WALK_START;
			return 0;
		}
	}
}

/*
 * Finds the entry of the kernel's chain at which to continue the walk. The kernel follows frame
 * pointers from the sampled one. Its entry i + 1 is the return address beside the i-th frame
 * pointer. The copy contains the first of these frame pointers. If the last frame of the walk keeps
 * its return address next to one of them, the kernel has read it too. Returns the entry's index, or
 * 0.
 */
static size_t chain_entry(const struct walker *k, const struct unwind_regs *sampled,
			  const uint64_t *chain, size_t n)
{
	uint64_t fp = sampled->v[ARCH_FP], target = k->edge_at - 8, ip;

	if (k->w->end == WALK_NO_RULE)
		target = is_known(&k->regs, ARCH_FP) ? k->regs.v[ARCH_FP] : 0;
	if (!is_known(sampled, ARCH_FP) || target < k->regs.v[ARCH_SP] ||
	    (k->w->end == WALK_COPY_END && !k->edge_at))
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (fp == target)
			return i;
		/* The kernel did not follow a frame pointer with another return address. */
		if (!unwind_memory_word(k->memory, fp + 8, &ip) || ip != chain[i] ||
		    !unwind_memory_word(k->memory, fp, &fp))
			return 0;
	}
	return 0;
}

/*
 * True if this function has no frame pointer of its own. Its caller is then missing from the
 * kernel's chain.
 */
static bool breaks_chain(const struct unwind_rule *rule)
{
	return (rule->kind == UNWIND_PLAIN && (rule->cfa_reg != ARCH_FP || rule->cfa_add != 16)) ||
	       rule->kind == UNWIND_PLT;
}

static int splice(struct walker *k, const struct unwind_regs *sampled, const uint64_t *chain,
		  size_t n)
{
	struct walk *w = k->w;
	size_t i = chain_entry(k, sampled, chain, n);
	struct unwind_rule rule;
	bool missing = false;

	if (!i)
		return 0;
	w->edge = w->end;
	for (; i < n; i++) {
		struct walk_frame frame = {.ip = chain[i],
					   .how = missing ? WALK_GUESS : WALK_SPLICE};
		int r = chain[i] ? k->source->rule(k->source->ctx, chain[i] - 1, &rule) : -ENOENT;

		if (r == -ENOENT)
			return 0;
		if (w->n >= w->max) {
			w->end = WALK_FRAME_LIMIT;
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
	w->temporary_rules = false;
	walk_previous_begin(w);
	r = walk_rules(&k, regs);
	if (r == STEP_AGAIN) {
		k.full = true;
		r = walk_rules(&k, regs);
	}
	w->full = k.full;
	if (!r && (w->end == WALK_COPY_END || w->end == WALK_NO_RULE))
		r = splice(&k, regs, chain, nchain);
	w->walked.thread = w->thread;
	w->walked.space = r || w->temporary_rules ? 0 : w->space;
	return r;
}
