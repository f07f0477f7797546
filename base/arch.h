/*
 * The architecture whose stacks are unwound: x86-64. Another architecture needs a version of this
 * module and of unwind/x86_64*.c: register numbers of DWARF and of perf, and instruction patterns
 * at function edges.
 *
 * Sources: System V ABI, AMD64 supplement, figure 3.36; Linux
 * arch/x86/include/uapi/asm/perf_regs.h.
 */
#ifndef BASE_ARCH_H
#define BASE_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#define ARCH_NAME "x86_64" /* the name in uname(2) and in recordings */
#ifdef __x86_64__
#define ARCH_CAN_RECORD 1 /* whether this build can record */
#else
#define ARCH_CAN_RECORD 0
#endif

#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */
#define ARCH_REGS 17
#define ARCH_BX 3
#define ARCH_FP 6  /* rbp */
#define ARCH_SP 7  /* rsp */
#define ARCH_IP 16 /* the column of the return address */
/* Callee-saved registers except the stack pointer, one bit each. */
#define ARCH_CALLEE_SAVED 0xf048u
#define ARCH_RETURN_OFF (-8) /* offset of the return address from the CFA, in bytes */

/*
 * The CFA in slots of a procedure linkage table, as GNU ld and gold describe it: rsp + 8 + ((rip &
 * 15) >= 11) * 8.
 */
#define ARCH_PLT_CFA "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"
#define ARCH_PLT_CFA_ADD 8

/* Registers in samples, as the mask of PERF_SAMPLE_REGS_USER: all except flags and segments. */
#define ARCH_PERF_REGS UINT64_C(0xff01ff)
#define ARCH_PERF_SP_IP UINT64_C(0x180) /* only the stack pointer and the instruction pointer */

/* DWARF number of each perf register, in the order of the mask's bits; -1: not used here. */
extern const int8_t arch_perf_reg[64];

/* Returns whether the bytes before a return address end in a call instruction. */
#define ARCH_CALL_MAX 7
bool arch_ends_in_call(const unsigned char bytes[ARCH_CALL_MAX]);

#endif
