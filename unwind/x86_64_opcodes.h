/*
 * Opcode tables of x86-64: the operands that follow an opcode, and the general register that it
 * writes. Source: see x86_64_insn.h.
 */
#ifndef UNWIND_X86_64_OPCODES_H
#define UNWIND_X86_64_OPCODES_H

#include <stdint.h>

/* Flags; IMM8 and IMM16 can occur together. */
enum {
	X86_64_OP_MODRM = 1,
	X86_64_OP_IMM8 = 2,
	X86_64_OP_IMM16 = 4,
	X86_64_OP_IMM32 = 8,   /* 16 bits with an operand-size prefix */
	X86_64_OP_BAD = 16,    /* unknown */
	X86_64_OP_TO_REG = 32, /* writes the register of ModRM */
	X86_64_OP_TO_RM = 64,  /* writes the other operand, if it is a register */
};

/* Opcodes of one byte. The decoder treats prefixes, 0f and a few others on its own. */
extern const uint8_t x86_64_one_byte[256];

/*
 * Opcodes after 0f. If prefixes change the meaning, the entry is the one that writes the most
 * registers.
 */
extern const uint8_t x86_64_two_bytes[256];

#endif
