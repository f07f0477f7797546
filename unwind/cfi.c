#include "unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>

/* 1: a new row begins; 0: the same row; -EBADMSG: the address goes down. */
static int advance_to(struct cfi_program *p, uint64_t vaddr)
{
	if (vaddr < p->to)
		return -EBADMSG;
	p->from = p->to;
	p->to = vaddr;
	return p->to > p->from;
}

static int advance(struct cfi_program *p, uint64_t units)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(units, p->cie->code_align, &bytes) || bytes > UINT64_MAX - p->to)
		return p->b.bad ? -EBADMSG : advance_to(p, UINT64_MAX);
	return advance_to(p, p->to + bytes);
}

/* Sets a register's rule. Ignores registers that are not followed. */
static int set(struct cfi_program *p, uint64_t reg, struct cfi_register_rule rule)
{
	if (reg < ARCH_REGS)
		p->state.reg[reg] = rule;
	return 0;
}

static int64_t factored(const struct cfi_program *p, uint64_t units)
{
	return (int64_t)(units * (uint64_t)p->cie->data_align);
}

static int set_add(struct cfi_program *p, uint64_t reg, enum cfi_how how, int64_t add)
{
	return set(p, reg, (struct cfi_register_rule){.how = (uint8_t)how, .add = add});
}

static int restore(struct cfi_program *p, uint64_t reg)
{
	if (p->in_cie)
		return -EBADMSG;
	return reg < ARCH_REGS ? set(p, reg, p->initial.reg[reg]) : 0;
}

static int set_cfa(struct cfi_program *p, uint64_t reg, int64_t add)
{
	p->state.cfa_reg = reg;
	p->state.cfa_add = add;
	p->state.cfa.how = CFI_VALUE;
	return 0;
}

/*
 * The standard allows a change of the register alone only if no expression is in force.
 * Hand-written CFI (libgcrypt's) does it anyway. It relies on libgcc, which keeps the offset from
 * before the expression.
 */
static int set_cfa_reg(struct cfi_program *p, uint64_t reg)
{
	return p->state.cfa.how == CFI_UNDEFINED ? -EBADMSG : set_cfa(p, reg, p->state.cfa_add);
}

static int set_cfa_add(struct cfi_program *p, int64_t add)
{
	p->state.cfa_add = add;
	return p->state.cfa.how == CFI_UNDEFINED ? -EBADMSG : 0;
}

static struct cfi_register_rule expression(struct cfi_program *p, enum cfi_how how)
{
	uint64_t len = dwarf_uleb(&p->b);
	struct cfi_register_rule rule = {.how = (uint8_t)how, .ops = p->b.p};

	dwarf_skip(&p->b, len);
	rule.len = len <= UINT32_MAX ? (uint32_t)len : (p->b.bad = true, 0);
	return rule;
}

/* Runs an instruction about the CFA or whole states. -ENOTSUP: an unknown one. */
static int other_instruction(struct cfi_program *p, uint8_t op)
{
	struct dwarf_bytes *b = &p->b;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = dwarf_uleb(b);
		return set_cfa(p, reg, (int64_t)dwarf_uleb(b));
	case DW_CFA_def_cfa_sf:
		reg = dwarf_uleb(b);
		return set_cfa(p, reg, factored(p, (uint64_t)dwarf_sleb(b)));
	case DW_CFA_def_cfa_register:
		return set_cfa_reg(p, dwarf_uleb(b));
	case DW_CFA_def_cfa_offset:
		return set_cfa_add(p, (int64_t)dwarf_uleb(b));
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_add(p, factored(p, (uint64_t)dwarf_sleb(b)));
	case DW_CFA_def_cfa_expression:
		p->state.cfa = expression(p, CFI_VAL_EXPRESSION);
		return 0;
	case DW_CFA_remember_state:
		if (p->depth == CFI_REMEMBERED_MAX)
			return -E2BIG;
		p->remembered[p->depth++] = p->state;
		return 0;
	case DW_CFA_restore_state:
		if (!p->depth)
			return -EBADMSG;
		p->state = p->remembered[--p->depth];
		return 0;
	case DW_CFA_nop:
		return 0;
	case DW_CFA_GNU_args_size:
		dwarf_uleb(b);
		return 0;
	default:
		return -ENOTSUP;
	}
}

/* Runs an instruction about one register. */
static int register_instruction(struct cfi_program *p, uint8_t op)
{
	struct dwarf_bytes *b = &p->b;
	uint64_t reg = dwarf_uleb(b);

	switch (op) {
	case DW_CFA_offset_extended:
		return set_add(p, reg, CFI_AT, factored(p, dwarf_uleb(b)));
	case DW_CFA_offset_extended_sf:
		return set_add(p, reg, CFI_AT, factored(p, (uint64_t)dwarf_sleb(b)));
	case DW_CFA_GNU_negative_offset_extended:
		return set_add(p, reg, CFI_AT, factored(p, 0 - dwarf_uleb(b)));
	case DW_CFA_val_offset:
		return set_add(p, reg, CFI_VALUE, factored(p, dwarf_uleb(b)));
	case DW_CFA_val_offset_sf:
		return set_add(p, reg, CFI_VALUE, factored(p, (uint64_t)dwarf_sleb(b)));
	case DW_CFA_restore_extended:
		return restore(p, reg);
	case DW_CFA_undefined:
		return set_add(p, reg, CFI_UNDEFINED, 0);
	case DW_CFA_same_value:
		return set_add(p, reg, CFI_SAME, 0);
	case DW_CFA_register:
		return set(p, reg,
			   (struct cfi_register_rule){.how = CFI_REGISTER, .reg = dwarf_uleb(b)});
	case DW_CFA_expression:
		return set(p, reg, expression(p, CFI_EXPRESSION));
	default: /* DW_CFA_val_expression */
		return set(p, reg, expression(p, CFI_VAL_EXPRESSION));
	}
}

/* Runs one instruction. 1: a row is complete. */
static int instruction(struct cfi_program *p)
{
	struct dwarf_bytes *b = &p->b;
	uint8_t op = (uint8_t)dwarf_uint(b, 1), low = op & 0x3f;
	uint64_t vaddr = 0;

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		return advance(p, low);
	case DW_CFA_offset:
		return set_add(p, low, CFI_AT, factored(p, dwarf_uleb(b)));
	case DW_CFA_restore:
		return restore(p, low);
	}
	switch (op) {
	case DW_CFA_set_loc:
		/* Compilers do not use pointers relative to their place in the section here. */
		if (p->cie->encoding & CFI_RELATIVE_MASK)
			return -ENOTSUP;
		int r = cfi_pointer(b, p->cie->encoding, p->cie->address_bytes, 0, 0, &vaddr);

		return r ? r : advance_to(p, vaddr);
	case DW_CFA_advance_loc1:
		return advance(p, dwarf_uint(b, 1));
	case DW_CFA_advance_loc2:
		return advance(p, dwarf_uint(b, 2));
	case DW_CFA_advance_loc4:
		return advance(p, dwarf_uint(b, 4));
	case DW_CFA_offset_extended ... DW_CFA_register:
	case DW_CFA_expression ... DW_CFA_offset_extended_sf:
	case DW_CFA_val_offset ... DW_CFA_val_expression:
	case DW_CFA_GNU_negative_offset_extended:
		return register_instruction(p, op);
	default:
		return other_instruction(p, op);
	}
}

static int run(struct cfi_program *p)
{
	int r = 0;

	while (p->b.p < p->b.end && !r) {
		r = instruction(p);
		if (p->b.bad)
			return -EBADMSG;
	}
	return r;
}

/* Begins a program at the rules in p->state. */
static void begin(struct cfi_program *p, const unsigned char *program, size_t bytes, uint64_t start,
		  uint64_t end)
{
	p->b = (struct dwarf_bytes){.p = program, .end = program + bytes};
	p->from = p->to = start;
	p->end = end;
	p->done = false;
	p->depth = 0;
}

int cfi_program_begin(struct cfi_program *p, const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	if (cie->return_column != ARCH_IP)
		return -ENOTSUP;
	p->cie = cie;
	memset(&p->state, 0, sizeof(p->state));
	p->state.reg[ARCH_SP].how = CFI_VALUE;
	p->state.cfa.how = CFI_UNDEFINED;
	p->in_cie = true;
	begin(p, cie->program, cie->program_bytes, 0, UINT64_MAX);
	int r = run(p);

	if (r)
		return r < 0 ? r : -EBADMSG; /* a CIE cannot advance the address */
	p->initial = p->state;
	p->in_cie = false;
	begin(p, fde->program, fde->program_bytes, fde->start, fde->end);
	return 0;
}

int cfi_program_next(struct cfi_program *p)
{
	if (p->done || p->to >= p->end)
		return 0;
	int r = run(p);

	if (r < 0)
		return r;
	if (!r) {
		p->done = true;
		p->from = p->to;
		p->to = p->end;
	}
	if (p->to > p->end)
		p->to = p->end;
	return 1;
}
