/*
 * Decodes one instruction of x86-64: its length, and its effect on the stack pointer, the frame
 * pointer and the flow of control. It is not a disassembler: for all other instructions only the
 * length is known. Format: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2,
 * chapter 2 and appendix A.
 */
#ifndef UNWIND_X86_64_INSN_H
#define UNWIND_X86_64_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_64_INSN_MAX 15 /* bytes */

enum x86_64_effect {
	X86_64_NONE,       /* no effect that matters here */
	X86_64_PUSH,       /* pushes reg; X86_64_NO_REG: another value */
	X86_64_POP,        /* pops into reg; X86_64_NO_REG: elsewhere */
	X86_64_SP_ADD,     /* rsp += value */
	X86_64_SP_FROM_BP, /* rsp = rbp + value */
	X86_64_BP_FROM_SP, /* rbp = rsp + value */
	X86_64_LEAVE,
	X86_64_SP_LOST, /* rsp gets an unknown value */
	X86_64_BP_LOST, /* rbp gets an unknown value */
	X86_64_CALL,    /* value as for JUMP; indirect calls have none */
	X86_64_RET,
	X86_64_JUMP,     /* to the next instruction + value */
	X86_64_JUMP_FAR, /* to an address in a register or memory */
	X86_64_BRANCH,   /* like JUMP, or on to the next instruction */
	X86_64_STOP,     /* control never reaches the next instruction */
};

#define X86_64_NO_REG 0xff

struct x86_64_insn {
	uint8_t len;
	uint8_t effect; /* enum x86_64_effect */
	uint8_t reg;    /* number in the instruction; see x86_64_dwarf_reg */
	/*
	 * A JUMP_FAR with which .NET's JIT compiler ends functions: through memory, or with a REX.W
	 * prefix. Jumps of switches are neither.
	 */
	bool tail;
	bool is_vzeroupper, is_nop;
	/* A bit for each written register. Those that any function may change can be missing. */
	uint16_t writes;
	int32_t value; /* only with the effects that mention it */
};

/* Decodes the instruction at code. False: it is cut off or unknown. */
bool x86_64_insn(const unsigned char *code, size_t len, struct x86_64_insn *ret);

/* DWARF numbers of the registers that instructions and unwind codes number 0 to 15. */
extern const uint8_t x86_64_dwarf_reg[16];

#endif
