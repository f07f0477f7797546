/*
 * One instruction of x86-64: how long it is, and what it does to the stack pointer, the frame pointer and the flow of control. No
 * disassembly: of all else only the length is known.
 * Format: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and appendix A.
 */
#ifndef UNWIND_X86_64_INSN_H
#define UNWIND_X86_64_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_64_INSN_MAX 15 /* bytes */

enum x86_64_effect {
	X86_64_NONE, /* nothing of it matters here */
	X86_64_PUSH, /* reg, or X86_64_NO_REG for what is no register */
	X86_64_POP, /* the same */
	X86_64_SP_ADD, /* rsp += value */
	X86_64_SP_FROM_BP, /* rsp = rbp + value */
	X86_64_BP_FROM_SP, /* rbp = rsp + value */
	X86_64_LEAVE,
	X86_64_SP_LOST, /* rsp is something else now */
	X86_64_BP_LOST, /* rbp is something else now */
	X86_64_CALL, /* value as of JUMP; indirect ones have none */
	X86_64_RET,
	X86_64_JUMP, /* to the next instruction + value */
	X86_64_JUMP_FAR, /* to what a register or memory says */
	X86_64_BRANCH, /* the same as JUMP, or on to the next instruction */
	X86_64_STOP, /* control does not go on behind it */
};

#define X86_64_NO_REG 0xff

struct x86_64_insn {
	uint8_t len;
	uint8_t effect; /* enum x86_64_effect */
	uint8_t reg; /* by the number in the instruction (x86_64_dwarf_reg) */
	bool tail; /* a JUMP_FAR that .NET's JIT ends functions with: through memory, or with a prefix REX.W. Those of switches are neither */
	bool is_vzeroupper, is_nop;
	uint16_t writes; /* a bit for each register that it writes, but for those that functions may change anyway */
	int32_t value; /* where the effect says so; else of no meaning */
};

/* The instruction that begins at code. False: it is cut off, or none that is known. */
bool x86_64_insn(const unsigned char *code, size_t len, struct x86_64_insn *ret);

/* The number in DWARF of the register that instructions and unwind codes give a number of 0 to 15. */
extern const uint8_t x86_64_dwarf_reg[16];

#endif
