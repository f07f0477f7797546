#include "unwind/cfi_rules.h"

#include "unwind/expression.h"

#include <errno.h>

static bool fits(int64_t add)
{
	return add >= INT32_MIN && add <= INT32_MAX;
}

/* Whether registers change that a short rule does not cover. */
static bool saves_others(const struct cfi_state *s)
{
	for (int i = 0; i < ARCH_REGS; i++)
		if (s->reg[i].how != CFI_SAME && i != ARCH_FP && i != ARCH_SP && i != ARCH_IP)
			return true;
	return false;
}

/* The CFA part of a short rule; kind UNWIND_FULL: there is no short rule. */
static struct unwind_rule cfa_rule(const struct cfi_state *s)
{
	if (s->cfa.how == CFI_VALUE && s->cfa_reg < ARCH_REGS && fits(s->cfa_add))
		return (struct unwind_rule){.kind = UNWIND_PLAIN,
					    .cfa_reg = (uint8_t)s->cfa_reg,
					    .cfa_add = (int32_t)s->cfa_add};
	if (s->cfa.how == CFI_VAL_EXPRESSION && s->cfa.len == sizeof(ARCH_PLT_CFA) - 1 &&
	    !memcmp(s->cfa.ops, ARCH_PLT_CFA, sizeof(ARCH_PLT_CFA) - 1))
		return (struct unwind_rule){
			.kind = UNWIND_PLT, .cfa_reg = ARCH_SP, .cfa_add = ARCH_PLT_CFA_ADD};
	return (struct unwind_rule){.kind = UNWIND_FULL};
}

struct unwind_rule cfi_rules_short_rule(const struct cfi_state *s, bool signal)
{
	const struct cfi_register_rule *fp = &s->reg[ARCH_FP], *sp = &s->reg[ARCH_SP],
				       *ip = &s->reg[ARCH_IP];
	struct unwind_rule rule = cfa_rule(s),
			   full = {.kind = UNWIND_FULL, .fp = UNWIND_FP_LOST, .saves = true};

	if (ip->how == CFI_UNDEFINED)
		return (struct unwind_rule){.kind = UNWIND_END};
	if (signal || rule.kind == UNWIND_FULL || ip->how != CFI_AT || ip->add != ARCH_RETURN_OFF ||
	    sp->how != CFI_VALUE || sp->add)
		return full;
	if (fp->how == CFI_AT && fits(fp->add)) {
		rule.fp = UNWIND_FP_AT;
		rule.fp_at = (int32_t)fp->add;
	} else if (fp->how == CFI_SAME) {
		rule.fp = UNWIND_FP_SAME;
	} else if (fp->how == CFI_UNDEFINED) {
		rule.fp = UNWIND_FP_LOST;
	} else {
		return full;
	}
	rule.saves = saves_others(s);
	return rule;
}

static int register_value(const struct unwind_regs *regs, uint64_t reg, uint64_t *ret_value)
{
	if (reg >= ARCH_REGS)
		return -ENOTSUP;
	if (!(regs->known >> reg & 1))
		return -ENXIO;
	*ret_value = regs->v[reg];
	return 0;
}

static int memory_value(const struct unwind_memory *memory, uint64_t addr, uint64_t *ret_value)
{
	return unwind_memory_word(memory, addr, ret_value) ? 0 : -ENODATA;
}

static int cfa_value(const struct cfi_state *s, const struct unwind_memory *memory,
		     const struct unwind_regs *regs, uint64_t *ret_cfa)
{
	uint64_t value;

	if (s->cfa.how == CFI_VAL_EXPRESSION)
		return expression_evaluate(s->cfa.ops, s->cfa.len, regs, memory, NULL, ret_cfa);
	if (s->cfa.how != CFI_VALUE)
		return -EBADMSG;
	int r = register_value(regs, s->cfa_reg, &value);

	if (!r)
		*ret_cfa = value + (uint64_t)s->cfa_add;
	return r;
}

/* A register of the caller. -ENOENT: undefined. */
static int caller_value(const struct cfi_register_rule *c, uint64_t reg, uint64_t cfa,
			const struct unwind_memory *memory, const struct unwind_regs *regs,
			uint64_t *ret_value)
{
	uint64_t addr;
	int r;

	switch ((enum cfi_how)c->how) {
	case CFI_SAME:
		return register_value(regs, reg, ret_value);
	case CFI_AT:
		return unwind_saved(memory, regs, (unsigned)reg, cfa + (uint64_t)c->add, ret_value)
			       ? 0
			       : -ENODATA;
	case CFI_VALUE:
		*ret_value = cfa + (uint64_t)c->add;
		return 0;
	case CFI_REGISTER:
		return register_value(regs, c->reg, ret_value);
	case CFI_EXPRESSION:
		r = expression_evaluate(c->ops, c->len, regs, memory, &cfa, &addr);
		return r ? r : memory_value(memory, addr, ret_value);
	case CFI_VAL_EXPRESSION:
		return expression_evaluate(c->ops, c->len, regs, memory, &cfa, ret_value);
	case CFI_UNDEFINED:
		break;
	}
	return -ENOENT;
}

int cfi_rules_apply(const struct cfi_state *s, const struct unwind_memory *memory,
		    struct unwind_regs *regs)
{
	struct unwind_regs caller = {.known = 0};
	uint64_t cfa;

	if (s->reg[ARCH_IP].how == CFI_UNDEFINED) {
		regs->known = 0;
		return 0;
	}
	/* A return address that equals the frame's ip would loop forever. */
	int r = s->reg[ARCH_IP].how == CFI_SAME ? -EBADMSG : cfa_value(s, memory, regs, &cfa);

	if (r)
		return r;
	for (uint64_t i = 0; i < ARCH_REGS; i++) {
		r = caller_value(&s->reg[i], i, cfa, memory, regs, &caller.v[i]);
		if (!r)
			caller.known |= UINT32_C(1) << i;
		else if (i == ARCH_IP)
			return r;
	}
	*regs = caller;
	return 0;
}

int cfi_rules_apply_short_rule(const struct unwind_rule *rule, const struct unwind_memory *memory,
			       struct unwind_regs *regs)
{
	uint64_t cfa, ip, fp = 0;

	if (rule->kind == UNWIND_END) {
		regs->known = 0;
		return 0;
	}
	int r = register_value(regs, rule->cfa_reg, &cfa);

	if (r)
		return r;
	cfa += (uint64_t)rule->cfa_add;
	if (rule->kind == UNWIND_PLT)
		r = expression_evaluate(ARCH_PLT_CFA, sizeof(ARCH_PLT_CFA) - 1, regs, memory, NULL,
					&cfa);
	if (!r)
		r = memory_value(memory, cfa + (uint64_t)ARCH_RETURN_OFF, &ip);
	if (r)
		return r;
	if (rule->fp == UNWIND_FP_AT &&
	    unwind_saved(memory, regs, ARCH_FP, cfa + (uint64_t)rule->fp_at, &fp)) {
		regs->v[ARCH_FP] = fp;
		regs->known |= UINT32_C(1) << ARCH_FP;
	} else if (rule->fp != UNWIND_FP_SAME) {
		regs->known &= ~(UINT32_C(1) << ARCH_FP);
	}
	regs->v[ARCH_SP] = cfa;
	regs->v[ARCH_IP] = ip;
	regs->known |= UINT32_C(1) << ARCH_SP | UINT32_C(1) << ARCH_IP;
	return 0;
}
