#include "unwind/code_rules.h"

#include "base/vec.h"
#include "unwind/x86_64_code.h"
#include "unwind/x86_64_insn.h"

#include <errno.h>

struct builder {
	VEC(struct code_row) rows;
	bool is_stub;
};

static bool same(const struct unwind_rule *a, const struct unwind_rule *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static int add_row(void *ctx, size_t offset, const struct unwind_rule *rule)
{
	struct builder *m = ctx;
	struct code_row row = {(uint32_t)offset, *rule};

	row.rule.saves &= !m->is_stub;
	if (m->rows.len && same(&m->rows.v[m->rows.len - 1].rule, &row.rule))
		return 0;
	return m->rows.len == CODE_RULES_ROWS_MAX ? -E2BIG : vec_push(&m->rows, row);
}

/*
 * The preserved registers that an instruction changes, a bit for each DWARF number. The caller
 * removes those that the prologue saves.
 */
static uint16_t changed_by(const struct x86_64_insn *i)
{
	uint16_t changes = 0;

	for (unsigned int reg = 0; i->writes >> reg; reg++)
		if (i->writes >> reg & 1)
			changes |= (uint16_t)(1u << x86_64_dwarf_reg[reg]);
	return changes & ARCH_CALLEE_SAVED & ~(1u << ARCH_FP);
}

/* Moves the rows to *ret_rules and frees spare memory. */
static int take_rows(struct builder *m, int error, struct code_rules *ret_rules)
{
	struct code_row *fit =
		error || !m->rows.len ? NULL : realloc(m->rows.v, m->rows.len * sizeof(*m->rows.v));

	if (error) {
		vec_free(&m->rows);
		return error;
	}
	ret_rules->rows = fit ? fit : m->rows.v;
	ret_rules->nrows = (uint32_t)m->rows.len;
	return 0;
}

/*
 * Fills *ret_rule if the instruction at an offset, or behind the nops there, is in an epilogue.
 * *ret_behind: the end of the nops; *decoded: increased.
 */
static bool epilogue_at(const unsigned char *code, size_t len, size_t at, size_t *ret_behind,
			struct unwind_rule *ret_rule, unsigned int *decoded)
{
	unsigned int n = 0;
	struct x86_64_insn i;

	for (; at < len && x86_64_insn(code + at, len - at, &i) && i.is_nop; ++*decoded)
		at += i.len;
	*ret_behind = at;
	bool found = x86_64_epilogue(code + at, len - at, at, len - at, ret_rule, &n);

	*decoded += n;
	return found;
}

int code_rules_make(const struct unwind_info *info, const unsigned char *code, size_t len,
		    uint64_t *steps_left, struct code_rules *ret_rules)
{
	struct code_rules rules = {.rows = NULL};
	struct unwind_rule body, rule;
	struct builder m = {.is_stub = false};
	struct x86_64_insn i;
	size_t nsaves = 0, behind = 0; /* nops before it have the rule of the instruction there */
	int r = len > CODE_RULES_BYTES_MAX ? -E2BIG : unwind_info_rule(info, UINT64_MAX, &body);

	if (!r)
		r = unwind_info_saves(info, rules.saves, &nsaves);
	rules.nsaves = (uint8_t)nsaves;
	for (size_t at = 0; !r && at < len;) {
		unsigned int decoded = 2; /* below, and the first one of epilogue_at */

		if (at < info->prologue)
			r = unwind_info_rule(info, at, &rule);
		else if (at >= behind && !epilogue_at(code, len, at, &behind, &rule, &decoded))
			rule = body;
		rule.saves = body.saves;
		if (!r && !unwind_take_steps(steps_left, decoded * UNWIND_STEPS_DECODE))
			r = -E2BIG;
		if (!r)
			r = add_row(&m, at, &rule);
		bool known = x86_64_insn(code + at, len - at, &i);

		/* After unknown bytes, decoding soon finds the start of an instruction again. */
		at += known ? i.len : 1;
		rules.doubtful |= !known;
		rules.changes |= known ? changed_by(&i) : 0;
	}
	for (size_t k = 0; k < nsaves; k++)
		rules.changes &= (uint16_t) ~(1u << rules.saves[k].reg);
	r = take_rows(&m, r, &rules);
	if (!r)
		*ret_rules = rules;
	return r;
}

int code_rules_follow(const unsigned char *code, size_t len, bool stubs,
		      struct code_rules *ret_rules)
{
	struct code_rules rules = {.rows = NULL};
	struct builder m = {.is_stub = stubs};
	int r = x86_64_follow(code, len, stubs, add_row, &m);

	r = take_rows(&m, r, &rules);
	if (!r)
		*ret_rules = rules;
	return r;
}

int code_rules_ahead(const unsigned char *code, size_t len, struct code_rules *ret_rules,
		     size_t *ret_len)
{
	struct code_rules rules = {.rows = NULL};
	struct builder m = {.is_stub = true};
	struct x86_64_insn i = {.effect = X86_64_NONE};
	struct unwind_rule rule;
	size_t at = 0;
	int r = 0;

	for (; !r && i.effect != X86_64_RET && i.effect != X86_64_JUMP; at += i.len) {
		if (!x86_64_ahead(code + at, len - at, &rule) ||
		    !x86_64_insn(code + at, len - at, &i))
			break;
		r = add_row(&m, at, &rule);
	}
	r = take_rows(&m, r, &rules);
	if (!r && !rules.nrows)
		return -ENOENT;
	if (!r) {
		*ret_rules = rules;
		*ret_len = at;
	}
	return r;
}

void code_rules_free(struct code_rules *rules)
{
	free(rules->rows);
	*rules = (struct code_rules){.rows = NULL};
}

const struct unwind_rule *code_rules_at(const struct code_rules *rules, uint64_t offset)
{
	size_t low = 0, high = rules->nrows;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (rules->rows[mid].offset <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? &rules->rows[low - 1].rule : NULL;
}

/* Restores the saved registers, except the frame pointer. */
static void restore(const struct code_rules *rules, uint64_t offset, const struct unwind_regs *regs,
		    uint64_t cfa, const struct unwind_memory *mem, struct unwind_regs *caller)
{
	for (size_t i = 0; i < rules->nsaves; i++) {
		const struct unwind_info_save *save = &rules->saves[i];
		uint64_t at = cfa + (uint64_t)(int64_t)save->at;

		/* Not saved yet, or already restored: the place is below the stack pointer. */
		if (save->offset > offset || at < regs->v[ARCH_SP])
			continue;
		if (unwind_memory_word(mem, at, &caller->v[save->reg]))
			caller->known |= 1u << save->reg;
		else
			caller->known &= ~(1u << save->reg);
	}
}

int code_rules_step(const struct code_rules *rules, uint64_t offset, struct unwind_regs *regs,
		    const struct unwind_memory *mem)
{
	const struct unwind_rule *rule = code_rules_at(rules, offset);
	struct unwind_regs caller = *regs;
	uint64_t cfa;

	if (!rule || rule->kind != UNWIND_PLAIN)
		return -EBADMSG;
	if (~regs->known & (1u << rule->cfa_reg | 1u << ARCH_SP))
		return -ENODATA;
	cfa = regs->v[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa_add;
	if (!unwind_memory_word(mem, cfa + (uint64_t)ARCH_RETURN_OFF, &caller.v[ARCH_IP]))
		return -ENODATA;
	caller.v[ARCH_SP] = cfa;
	/* If unknown registers are saved, only the frame pointer is known. */
	caller.known &= rule->saves && !rules->nsaves
				? 1u << ARCH_FP
				: ARCH_CALLEE_SAVED & ~(uint32_t)rules->changes;
	if (rule->fp == UNWIND_FP_LOST)
		caller.known &= ~(1u << ARCH_FP);
	if (rule->fp == UNWIND_FP_AT &&
	    unwind_memory_word(mem, cfa + (uint64_t)(int64_t)rule->fp_at, &caller.v[ARCH_FP]))
		caller.known |= 1u << ARCH_FP;
	else if (rule->fp == UNWIND_FP_AT)
		caller.known &= ~(1u << ARCH_FP);
	caller.known |= 1u << ARCH_SP | 1u << ARCH_IP;
	restore(rules, offset, regs, cfa, mem, &caller);
	*regs = caller;
	return 0;
}
