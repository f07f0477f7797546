#include "unwind/cfi.h"

#include <dwarf.h>
#include <errno.h>

#define LENGTH_64 UINT32_C(0xffffffff) /* the next 8 bytes are the length */
#define FORMAT_MASK 0x0f
#define RELATIVE_MASK 0x70

/*
 * In .eh_frame the CIE id is 0 and always has 4 bytes, also with an 8-byte length. An FDE stores
 * the distance back from that field to its CIE.
 */
int cfi_head_read(const unsigned char *p, size_t have, uint64_t off, uint64_t section_bytes,
		  bool eh, struct cfi_head *ret_head)
{
	struct dwarf_bytes b = {.p = p, .end = p + have};
	uint64_t length = dwarf_uint(&b, 4);
	bool is_64 = length == LENGTH_64;

	if (b.bad)
		return -EBADMSG;
	if (!length)
		return -ENOENT;
	if (is_64)
		length = dwarf_uint(&b, 8);
	uint64_t field = off + (uint64_t)(b.p - p);
	unsigned int id_bytes = is_64 && !eh ? 8 : 4;

	if (b.bad || field > section_bytes || length > section_bytes - field || length < id_bytes)
		return -EBADMSG;
	uint64_t id = dwarf_uint(&b, id_bytes);

	if (b.bad)
		return -EBADMSG;
	struct cfi_head head = {.off = off, .body = field + id_bytes, .end = field + length};

	head.is_cie = eh ? !id : id == (is_64 ? UINT64_MAX : UINT32_MAX);
	if (!head.is_cie)
		head.cie = !eh           ? id
			   : id <= field ? field - id
					 : UINT64_MAX; /* outside any section */
	*ret_head = head;
	return 0;
}

static uint64_t read_format(struct dwarf_bytes *b, uint8_t encoding, int *ret_error)
{
	switch (encoding & FORMAT_MASK) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_signed:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return dwarf_uint(b, 8);
	case DW_EH_PE_uleb128:
		return dwarf_uleb(b);
	case DW_EH_PE_sleb128:
		return (uint64_t)dwarf_sleb(b);
	case DW_EH_PE_udata2:
		return dwarf_uint(b, 2);
	case DW_EH_PE_udata4:
		return dwarf_uint(b, 4);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)dwarf_uint(b, 2);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)dwarf_uint(b, 4);
	default:
		*ret_error = -ENOTSUP;
		return 0;
	}
}

int cfi_pointer(struct dwarf_bytes *b, uint8_t encoding, uint64_t here, uint64_t data,
		uint64_t *ret_value)
{
	uint8_t relative = encoding & RELATIVE_MASK;
	int error = encoding == DW_EH_PE_omit || encoding & DW_EH_PE_indirect ? -ENOTSUP : 0;
	uint64_t value = error ? 0 : read_format(b, encoding, &error);

	if (relative == DW_EH_PE_pcrel)
		value += here;
	else if (relative == DW_EH_PE_datarel && data)
		value += data;
	else if (relative)
		error = -ENOTSUP;
	if (error || b->bad)
		return error ? error : -EBADMSG;
	*ret_value = value;
	return 0;
}

/* Skips the pointer to the exception handler. */
static void skip_personality(struct dwarf_bytes *b, int *ret_error)
{
	uint8_t encoding = (uint8_t)dwarf_uint(b, 1);

	if (encoding == DW_EH_PE_omit)
		return;
	if ((encoding & RELATIVE_MASK) == DW_EH_PE_aligned)
		*ret_error = -ENOTSUP;
	(void)read_format(b, encoding, ret_error);
}

/* Reads the data of an augmentation. letters: those after z. */
static int read_augmentation(struct dwarf_bytes *b, const unsigned char *letters, size_t n,
			     struct cfi_cie *cie)
{
	uint64_t len = dwarf_uleb(b);
	struct dwarf_bytes data = *b;
	int error = 0;

	dwarf_skip(b, len);
	if (b->bad)
		return -EBADMSG;
	data.end = b->p;
	for (size_t i = 0; i < n && !error; i++) {
		if (letters[i] == 'R')
			cie->encoding = (uint8_t)dwarf_uint(&data, 1);
		else if (letters[i] == 'L')
			dwarf_skip(&data, 1);
		else if (letters[i] == 'P')
			skip_personality(&data, &error);
		else if (letters[i] == 'S')
			cie->signal = true;
		else if (letters[i] != 'B')
			error = -ENOTSUP;
	}
	return error ? error : data.bad ? -EBADMSG : 0;
}

static int run(struct cfi_program *p);

/* Sets the initial rules: those of the ABI, then those of the CIE's program. */
static int read_initial(struct dwarf_bytes b, struct cfi_cie *cie)
{
	struct cfi_program p;

	p.cie = cie;
	p.b = b;
	p.in_cie = true;
	p.done = false;
	p.depth = 0;
	p.from = p.to = 0;
	p.end = UINT64_MAX;
	memset(&p.state, 0, sizeof(p.state));
	p.state.reg[ARCH_SP].how = CFI_VALUE;
	p.state.cfa.how = CFI_UNDEFINED;
	int r = run(&p);

	if (r)
		return r < 0 ? r : -EBADMSG; /* a CIE cannot advance the address */
	cie->initial = p.state;
	return 0;
}

int cfi_cie_read(const unsigned char *body, size_t len, struct cfi_cie *ret_cie)
{
	struct dwarf_bytes b = {.p = body, .end = body + len};
	struct cfi_cie cie = {.encoding = DW_EH_PE_absptr};
	uint64_t version = dwarf_uint(&b, 1);
	const unsigned char *letters = b.p,
			    *nul = b.bad ? NULL : memchr(b.p, 0, (size_t)(b.end - b.p));

	if (!nul)
		return -EBADMSG;
	size_t n = (size_t)(nul - letters);

	if ((version != 1 && version != 3 && version != 4) || n > CFI_AUGMENTATION_MAX ||
	    (n && *letters != 'z'))
		return -ENOTSUP;
	b.p = nul + 1;
	if (version == 4 && (dwarf_uint(&b, 1) != sizeof(uint64_t) || dwarf_uint(&b, 1)))
		return b.bad ? -EBADMSG : -ENOTSUP; /* another address size, or segments */
	cie.code_align = dwarf_uleb(&b);
	cie.data_align = dwarf_sleb(&b);
	uint64_t return_column = version == 1 ? dwarf_uint(&b, 1) : dwarf_uleb(&b);

	if (b.bad)
		return -EBADMSG;
	if (return_column != ARCH_IP)
		return -ENOTSUP;
	cie.has_augmentation = n > 0;
	int r = n ? read_augmentation(&b, letters + 1, n - 1, &cie) : 0;

	if (!r)
		r = read_initial(b, &cie);
	if (!r)
		*ret_cie = cie;
	return r;
}

int cfi_fde_read(const struct cfi_cie *cie, const unsigned char *body, size_t len, uint64_t here,
		 struct cfi_fde *ret_fde)
{
	struct dwarf_bytes b = {.p = body, .end = body + len};
	struct cfi_fde fde;
	uint64_t bytes;
	int r = cfi_pointer(&b, cie->encoding, here, 0, &fde.start);

	if (r)
		return r;
	if (cie->encoding & RELATIVE_MASK && fde.start == here)
		return -ENOENT;
	r = cfi_pointer(&b, cie->encoding & FORMAT_MASK, 0, 0, &bytes);
	if (r)
		return r;
	if (cie->has_augmentation)
		dwarf_skip(&b, dwarf_uleb(&b));
	if (b.bad || bytes > UINT64_MAX - fde.start)
		return -EBADMSG;
	fde.end = fde.start + bytes;
	fde.program = b.p;
	fde.program_bytes = (size_t)(b.end - b.p);
	*ret_fde = fde;
	return 0;
}

void cfi_program_begin(struct cfi_program *p, const struct cfi_cie *cie, const struct cfi_fde *fde)
{
	p->cie = cie;
	p->b = (struct dwarf_bytes){.p = fde->program, .end = fde->program + fde->program_bytes};
	p->from = p->to = fde->start;
	p->end = fde->end;
	p->state = cie->initial;
	p->in_cie = p->done = false;
	p->depth = 0;
}

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
	return reg < ARCH_REGS ? set(p, reg, p->cie->initial.reg[reg]) : 0;
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
		if (p->cie->encoding & RELATIVE_MASK)
			return -ENOTSUP;
		int r = cfi_pointer(b, p->cie->encoding, 0, 0, &vaddr);

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
