#include "unwind/x86_64_insn.h"

#include "unwind/x86_64_opcodes.h"

#include <string.h>

/* Numbers of registers in instructions. */
#define SP 4
#define BP 5
#define BX 3

const uint8_t x86_64_dwarf_reg[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

/* An instruction while it is decoded. */
struct decode {
	const unsigned char *code;
	size_t len, pos;
	bool w, narrow;  /* REX.W; 16-bit operands */
	uint8_t r, b, v; /* additions of prefixes to register numbers */
	uint8_t flags;
	bool is_memory;
	uint8_t reg, rm; /* of ModRM, with the additions of prefixes */
	uint8_t base;    /* register of an address; X86_64_NO_REG: none, or with an index */
	int32_t disp;
	int32_t imm;
};

static bool take(struct decode *d, size_t n)
{
	if (d->len - d->pos < n)
		return false;
	d->pos += n;
	return true;
}

static bool take_signed(struct decode *d, size_t n, int32_t *ret)
{
	const unsigned char *p = d->code + d->pos;

	if (!take(d, n))
		return false;
	*ret = n == 1   ? (int8_t)p[0]
	       : n == 2 ? (int16_t)(p[0] | p[1] << 8)
			: (int32_t)(p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				    (uint32_t)p[3] << 24);
	return true;
}

static bool take_modrm(struct decode *d)
{
	const unsigned char *p = d->code + d->pos;
	unsigned int mod, rm;

	if (!take(d, 1))
		return false;
	mod = *p >> 6;
	rm = *p & 7;
	d->reg = (uint8_t)((*p >> 3 & 7) | d->r);
	d->rm = (uint8_t)(rm | d->b);
	d->is_memory = mod != 3;
	d->base = d->rm;
	if (!d->is_memory)
		return true;
	if (rm == 4) {
		if (!take(d, 1))
			return false;
		d->base = (uint8_t)((p[1] & 7) | d->b);
		/* An index. Register 12 counts as none here, but no frame's address uses it. */
		if ((p[1] >> 3 & 7) != 4)
			d->base = X86_64_NO_REG;
		rm = p[1] & 7;
		if (rm == 5 && mod == 0) {
			d->base = X86_64_NO_REG;
			return take_signed(d, 4, &d->disp);
		}
	} else if (rm == 5 && mod == 0) {
		d->base = X86_64_NO_REG;
		return take_signed(d, 4, &d->disp);
	}
	return mod == 0 || take_signed(d, mod == 1 ? 1 : 4, &d->disp);
}

static bool take_immediates(struct decode *d, uint8_t flags)
{
	if (flags & X86_64_OP_IMM16 && !take_signed(d, 2, &d->imm))
		return false;
	if (flags & X86_64_OP_IMM8 && !take_signed(d, 1, &d->imm))
		return false;
	return !(flags & X86_64_OP_IMM32) || take_signed(d, d->narrow ? 2 : 4, &d->imm);
}

static void note_write(struct x86_64_insn *i, uint8_t reg)
{
	i->writes |= (uint16_t)(1u << reg);
	if (reg == SP)
		i->effect = X86_64_SP_LOST;
	else if (reg == BP && i->effect != X86_64_SP_LOST)
		i->effect = X86_64_BP_LOST;
}

static void note_writes(const struct decode *d, uint8_t flags, struct x86_64_insn *i)
{
	if (flags & X86_64_OP_TO_REG)
		note_write(i, d->reg);
	if (flags & X86_64_OP_TO_RM && !d->is_memory)
		note_write(i, d->rm);
}

static void set(struct x86_64_insn *i, enum x86_64_effect effect, int32_t value)
{
	i->effect = (uint8_t)effect;
	i->value = value;
}

/* add, sub, lea and mov of the stack pointer and the frame pointer. */
static bool arithmetic(const struct decode *d, uint8_t op, struct x86_64_insn *i)
{
	uint8_t to = op == 0x89 ? d->rm : d->reg, from = op == 0x89 ? d->reg : d->rm;

	if (!d->w)
		return false;
	if ((op == 0x81 || op == 0x83) && !d->is_memory && d->rm == SP &&
	    ((d->reg & 7) == 0 || (d->reg & 7) == 5) && d->imm != INT32_MIN) {
		set(i, X86_64_SP_ADD, (d->reg & 7) == 0 ? d->imm : -d->imm);
		return true;
	}
	if (op == 0x8d && d->is_memory)
		from = d->base;
	else if ((op != 0x89 && op != 0x8b) || d->is_memory)
		return false;
	int32_t value = op == 0x8d ? d->disp : 0;

	if (to == SP && from == SP)
		set(i, X86_64_SP_ADD, value);
	else if (to == SP && from == BP)
		set(i, X86_64_SP_FROM_BP, value);
	else if (to == BP && from == SP)
		set(i, X86_64_BP_FROM_SP, value);
	else
		return false;
	return true;
}

static bool group_ff(const struct decode *d, struct x86_64_insn *i)
{
	switch (d->reg & 7) {
	case 2:
		i->effect = X86_64_CALL;
		return true;
	case 4:
		i->effect = X86_64_JUMP_FAR;
		i->tail = d->w || d->is_memory;
		return true;
	case 6:
		i->effect = X86_64_PUSH;
		i->reg = d->is_memory ? X86_64_NO_REG : d->rm;
		return true;
	case 0:
	case 1:
		note_writes(d, X86_64_OP_TO_RM, i);
		return true;
	default:
		return false; /* programs have no far calls and jumps */
	}
}

/* Effects of opcodes that always have the same one. value is the immediate, if any. */
static const uint8_t simple[256] = {
	[0x68] = X86_64_PUSH, [0x6a] = X86_64_PUSH, [0x9c] = X86_64_PUSH,    [0x9d] = X86_64_POP,
	[0xc2] = X86_64_RET,  [0xc3] = X86_64_RET,  [0xc8] = X86_64_SP_LOST, [0xc9] = X86_64_LEAVE,
	[0xca] = X86_64_STOP, [0xcb] = X86_64_STOP, [0xcc] = X86_64_STOP,    [0xcf] = X86_64_STOP,
	[0xe8] = X86_64_CALL, [0xe9] = X86_64_JUMP, [0xeb] = X86_64_JUMP,    [0xf4] = X86_64_STOP,
};

/* The effect of a one-byte opcode whose operands have been read. False: unknown. */
static bool effect_of_one_byte(const struct decode *d, uint8_t op, struct x86_64_insn *i)
{
	if (arithmetic(d, op, i))
		return true;
	if (op >= 0x50 && op <= 0x5f) {
		i->effect = op < 0x58 ? X86_64_PUSH : X86_64_POP;
		i->reg = (uint8_t)((op & 7) | d->b);
		return true;
	}
	if ((op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3)) {
		set(i, X86_64_BRANCH, d->imm);
		return true;
	}
	if ((op >= 0xb8 && op <= 0xbf) || (op >= 0x91 && op <= 0x97)) {
		note_write(i, (uint8_t)((op & 7) | d->b));
		return true;
	}
	if (simple[op]) {
		set(i, simple[op], d->imm);
		return true;
	}
	switch (op) {
	case 0x80:
	case 0x81:
	case 0x83:
		if ((d->reg & 7) != 7)
			note_writes(d, X86_64_OP_TO_RM, i);
		break;
	case 0x8f:
		i->effect = X86_64_POP;
		i->reg = d->is_memory ? X86_64_NO_REG : d->rm;
		break;
	case 0x90:
		i->is_nop = !d->b;
		break;
	case 0xf6:
	case 0xf7:
		if ((d->reg & 7) == 2 || (d->reg & 7) == 3)
			note_writes(d, X86_64_OP_TO_RM, i);
		break;
	case 0xff:
		return group_ff(d, i);
	default:
		note_writes(d, x86_64_one_byte[op], i);
	}
	return true;
}

static bool decode_one(struct decode *d, uint8_t op, struct x86_64_insn *i)
{
	uint8_t flags = x86_64_one_byte[op];
	bool near = op == 0xe8 || op == 0xe9;

	if (flags & X86_64_OP_BAD)
		return false;
	if (flags & X86_64_OP_MODRM && !take_modrm(d))
		return false;
	if (op >= 0xa0 && op <= 0xa3)
		return take(d, 8);
	if (op >= 0xb8 && op <= 0xbf && d->w)
		return take(d, 8) && effect_of_one_byte(d, op, i);
	if ((op == 0xf6 || op == 0xf7) && (d->reg & 7) < 2)
		flags |= op == 0xf6 ? X86_64_OP_IMM8 : X86_64_OP_IMM32;
	if (near)
		d->narrow = false;
	return take_immediates(d, flags) && effect_of_one_byte(d, op, i);
}

static bool decode_0f(struct decode *d, struct x86_64_insn *i)
{
	uint8_t op;

	if (!take(d, 1))
		return false;
	op = d->code[d->pos - 1];
	if (op == 0x38 || op == 0x3a) {
		if (!take(d, 1) || !take_modrm(d))
			return false;
		note_writes(d, X86_64_OP_TO_REG | (op == 0x3a ? X86_64_OP_TO_RM : 0), i);
		return op == 0x38 || take(d, 1);
	}
	uint8_t flags = x86_64_two_bytes[op];

	if (flags & X86_64_OP_BAD || (flags & X86_64_OP_MODRM && !take_modrm(d)))
		return false;
	if (op >= 0x80 && op <= 0x8f)
		d->narrow = false;
	if (!take_immediates(d, flags))
		return false;
	if (op >= 0x80 && op <= 0x8f)
		set(i, X86_64_BRANCH, d->imm);
	else if (op == 0x0b)
		i->effect = X86_64_STOP;
	else if (op == 0xa2) /* CPUID */
		note_write(i, BX);
	else if (op == 0xa0 || op == 0xa8 || op == 0xa1 || op == 0xa9) {
		i->effect = op & 1 ? X86_64_POP : X86_64_PUSH;
		i->reg = X86_64_NO_REG;
	} else if (op >= 0xc8 && op <= 0xcf)
		note_write(i, (uint8_t)((op & 7) | d->b));
	else
		note_writes(d, flags, i);
	i->is_nop = op == 0x1f;
	return true;
}

/* Opcodes after VEX and EVEX: maps 1 to 3 are 0f, 0f38 and 0f3a; 5 and 6 are half precision. */
static bool decode_vector(struct decode *d, unsigned int map, bool evex, struct x86_64_insn *i)
{
	uint8_t op;

	if (!take(d, 1))
		return false;
	op = d->code[d->pos - 1];
	if (map == 1 && op == 0x77 && !evex) {
		i->is_vzeroupper = true;
		return true;
	}
	if (map == 0 || map == 4 || map > 6 || (map > 3 && !evex) || !take_modrm(d))
		return false;
	if (map == 3 ||
	    (map == 1 && ((op >= 0x70 && op <= 0x73) || op == 0xc2 || (op >= 0xc4 && op <= 0xc6))))
		if (!take(d, 1))
			return false;
	/* The few vector instructions that write general registers. */
	if (map == 1 &&
	    (op == 0x2c || op == 0x2d || op == 0x50 || op == 0xd7 || op == 0xc5 || op == 0x93))
		note_writes(d, X86_64_OP_TO_REG, i);
	else if (map == 1 && op == 0x7e)
		note_writes(d, X86_64_OP_TO_RM, i);
	else if (map == 3 && ((op >= 0x14 && op <= 0x17) || op == 0xf0))
		note_writes(d, op == 0xf0 ? X86_64_OP_TO_REG : X86_64_OP_TO_RM, i);
	else if (map == 2 && op >= 0xf2 && op <= 0xf7) {
		note_writes(d, op == 0xf3 ? 0 : X86_64_OP_TO_REG, i);
		if (op == 0xf3 || op == 0xf6)
			note_write(i, d->v);
	} else if (map == 5 && (op == 0x2c || op == 0x2d || op == 0x78 || op == 0x79))
		note_writes(d, X86_64_OP_TO_REG, i);
	return true;
}

static bool decode_vex(struct decode *d, uint8_t op, struct x86_64_insn *i)
{
	const unsigned char *p = d->code + d->pos;
	size_t n = op == 0xc5 ? 1 : op == 0xc4 ? 2 : 3;
	unsigned int map = 1;

	if (!take(d, n))
		return false;
	d->r = p[0] & 0x80 ? 0 : 8;
	d->b = n == 1 || p[0] & 0x20 ? 0 : 8;
	d->v = (uint8_t)(~p[n == 1 ? 0 : 1] >> 3 & 15);
	if (n > 1)
		map = p[0] & (n == 2 ? 31u : 7u);
	return decode_vector(d, map, n == 3, i);
}

bool x86_64_insn(const unsigned char *code, size_t len, struct x86_64_insn *ret)
{
	struct decode d = {.code = code,
			   .len = len < X86_64_INSN_MAX ? len : X86_64_INSN_MAX,
			   .base = X86_64_NO_REG};
	struct x86_64_insn i = {.reg = X86_64_NO_REG};
	uint8_t op, rex = 0;
	bool known;

	do {
		if (!take(&d, 1))
			return false;
		op = code[d.pos - 1];
		d.narrow |= op == 0x66;
	} while (op == 0x66 || op == 0xf2 || op == 0xf3 || op == 0x2e || op == 0x36 || op == 0x3e ||
		 op == 0x26 || op == 0x64 || op == 0x65 || op == 0x67 || op == 0xf0);
	if (op >= 0x40 && op <= 0x4f) {
		rex = op;
		if (!take(&d, 1))
			return false;
		op = code[d.pos - 1];
	}
	d.w = rex & 8;
	d.r = rex & 4 ? 8 : 0;
	d.b = rex & 1 ? 8 : 0;
	if (d.w)
		d.narrow = false;
	if (op == 0xc4 || op == 0xc5 || op == 0x62)
		known = decode_vex(&d, op, &i);
	else
		known = op == 0x0f ? decode_0f(&d, &i) : decode_one(&d, op, &i);
	if (!known)
		return false;
	i.len = (uint8_t)d.pos;
	*ret = i;
	return true;
}
