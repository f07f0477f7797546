/*
 * The registers of a crash, as libunwind numbers them. The only part of the crash report that
 * depends on the architecture: x86-64 and AArch64.
 */
#ifndef PROFCPU_CRASH_REGISTERS_H
#define PROFCPU_CRASH_REGISTERS_H

#include <libunwind.h>
#include <ucontext.h>

#if defined(__x86_64__)
#define CRASH_REGISTERS (UNW_X86_64_RIP + 1)
#define CRASH_IP UNW_X86_64_RIP
#define CRASH_SP UNW_X86_64_RSP
#elif defined(__aarch64__)
#define CRASH_REGISTERS (UNW_AARCH64_PC + 1)
#define CRASH_IP UNW_AARCH64_PC
#define CRASH_SP UNW_AARCH64_SP
#define CRASH_LINK UNW_AARCH64_X30 /* the return address of a call that has just begun */
#else
#define CRASH_REGISTERS 2 /* no stack can be printed, only the address of the crash */
#define CRASH_IP 0
#define CRASH_SP 1
#endif

/* Returns whether the stack can be unwound from them. */
static inline int crash_registers(const ucontext_t *context, unw_word_t regs[CRASH_REGISTERS])
{
#if defined(__x86_64__)
	/* REG_* of each DWARF number. */
	static const unsigned char numbers[] = {
		[UNW_X86_64_RAX] = REG_RAX, [UNW_X86_64_RDX] = REG_RDX, [UNW_X86_64_RCX] = REG_RCX,
		[UNW_X86_64_RBX] = REG_RBX, [UNW_X86_64_RSI] = REG_RSI, [UNW_X86_64_RDI] = REG_RDI,
		[UNW_X86_64_RBP] = REG_RBP, [UNW_X86_64_RSP] = REG_RSP, [UNW_X86_64_R8] = REG_R8,
		[UNW_X86_64_R9] = REG_R9,   [UNW_X86_64_R10] = REG_R10, [UNW_X86_64_R11] = REG_R11,
		[UNW_X86_64_R12] = REG_R12, [UNW_X86_64_R13] = REG_R13, [UNW_X86_64_R14] = REG_R14,
		[UNW_X86_64_R15] = REG_R15, [UNW_X86_64_RIP] = REG_RIP,
	};

	for (int i = 0; i < CRASH_REGISTERS; i++)
		regs[i] = (unw_word_t)context->uc_mcontext.gregs[numbers[i]];
	return 1;
#elif defined(__aarch64__)
	for (int i = UNW_AARCH64_X0; i <= UNW_AARCH64_X30; i++)
		regs[i] = context->uc_mcontext.regs[i];
	regs[UNW_AARCH64_SP] = context->uc_mcontext.sp;
	regs[UNW_AARCH64_PC] = context->uc_mcontext.pc;
	return 1;
#else
	(void)context;
	regs[CRASH_IP] = regs[CRASH_SP] = 0;
	return 0;
#endif
}

#endif
