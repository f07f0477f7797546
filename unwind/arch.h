/*
 * The architecture that is unwound: x86-64. What another one needs is here and in the unwind/x86_64*.c files: registers by their numbers of
 * DWARF, where perf has them, and what code looks like at its edges.
 * Source: System V ABI, AMD64 supplement, figure 3.36; Linux arch/x86/include/uapi/asm/perf_regs.h.
 */
#ifndef UNWIND_ARCH_H
#define UNWIND_ARCH_H

#include <stdbool.h>
#include <stdint.h>

#define ARCH_NAME "x86_64" /* of uname(2), and of recordings */
#ifdef __x86_64__
#define ARCH_IS_HERE 1 /* whether this program records it */
#else
#define ARCH_IS_HERE 0
#endif

#define ARCH_ELF_MACHINE 62 /* EM_X86_64 */
#define ARCH_REGS 17
#define ARCH_BX 3
#define ARCH_FP 6 /* rbp */
#define ARCH_SP 7 /* rsp */
#define ARCH_IP 16 /* the return address's column */
#define ARCH_PRESERVED 0xf048u /* registers that functions preserve, but for the stack pointer: a bit for each */
#define ARCH_RETURN_AT (-8) /* where the return address is, from the CFA on */

/* The CFA in slots of a procedure linkage table, as GNU ld and gold describe it: rsp + 8 + ((rip & 15) >= 11) * 8. */
#define ARCH_PLT_CFA "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"
#define ARCH_PLT_CFA_ADD 8

/* The registers that samples carry, as PERF_SAMPLE_REGS_USER's mask: all but flags and segments. */
#define ARCH_PERF_REGS UINT64_C(0xff01ff)
#define ARCH_PERF_SP_IP UINT64_C(0x180) /* the stack pointer, and then the instruction pointer, alone */

/* The number of DWARF of each of perf's registers, in the order of the bits of its mask; -1: of no use here. */
extern const int8_t arch_perf_reg[64];

/* Whether the bytes before a return address end in a call. */
#define ARCH_CALL_MAX 7
bool arch_ends_in_call(const unsigned char bytes[ARCH_CALL_MAX]);

#endif
