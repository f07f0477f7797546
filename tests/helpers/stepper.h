/*
 * Steps a thread of a living process through its instructions. At each one it knows the return
 * address, because it observed the call. Unwinders must find that address. Uses no description of
 * the code.
 */
#ifndef TESTS_HELPERS_STEPPER_H
#define TESTS_HELPERS_STEPPER_H

#include "base/vec.h"
#include "container/memory.h"
#include "unwind/rule.h"
#include "unwind/x86_64_insn.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* A call that has not returned yet. */
struct stepper_frame {
	uint64_t cfa; /* CFA; the return address is directly below it */
	uint64_t ret;
	struct unwind_regs
		caller; /* values required after the return, if functions preserve the register */
	bool is_signal; /* made by the kernel: only cfa and ret are known */
};

struct stepper {
	pid_t pid, tid;
	VEC(struct stepper_frame) frames; /* the innermost frame is the last */
	struct unwind_regs regs;
	uint64_t steps, calls, signals, unreadable, replaced;
	bool sp_loaded; /* set by the last instruction */
};

/* Called at each instruction with its regs and frames. A result other than 0 ends the stepping and
 * is returned. */
typedef int stepper_fn(void *ctx, const struct stepper *s);

static inline struct unwind_regs stepper_regs(const struct user_regs_struct *r)
{
	return (struct unwind_regs){
		.v = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
		      r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip},
		.known = (1u << ARCH_REGS) - 1,
	};
}

static inline int stepper_wait(const struct stepper *s, int *ret_status)
{
	while (waitpid(s->tid, ret_status, __WALL) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

static inline int stepper_read_regs(struct stepper *s)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, s->tid, NULL, &r) < 0)
		return -errno;
	s->regs = stepper_regs(&r);
	return 0;
}

/* Removes frames that returned or that an exception left. */
static inline void stepper_drop(struct stepper *s)
{
	while (s->frames.len && s->frames.v[s->frames.len - 1].cfa <= s->regs.v[ARCH_SP])
		s->frames.len--;
}

static inline int stepper_push(struct stepper *s, const struct unwind_regs *before, bool is_signal)
{
	struct stepper_frame f = {
		.cfa = s->regs.v[ARCH_SP] + 8, .caller = *before, .is_signal = is_signal};

	if (memory_read(s->pid, s->regs.v[ARCH_SP], &f.ret, sizeof(f.ret)))
		return 0;
	f.caller.v[ARCH_SP] = f.cfa;
	f.caller.v[ARCH_IP] = f.ret;
	f.caller.known = is_signal ? 1u << ARCH_SP | 1u << ARCH_IP
				   : ARCH_CALLEE_SAVED | 1u << ARCH_SP | 1u << ARCH_IP;
	return vec_push(&s->frames, f);
}

static inline void hide_trap(const struct stepper *s)
{
	uint64_t flags;

	if (!memory_read(s->pid, s->regs.v[ARCH_SP], &flags, sizeof(flags)))
		(void)ptrace(PTRACE_POKEDATA, s->tid, (void *)(uintptr_t)s->regs.v[ARCH_SP],
			     (void *)(uintptr_t)(flags & ~0x100ull));
}

/*
 * Handles a replaced method. The runtime may continue with other registers than those of a call
 * (RtlRestoreContext), at the stack position of a call. Then the calling method continues as
 * another method (JIT_Patchpoint), which starts as if called. This call never returns.
 * before: the last executed instruction.
 */
static inline void stepper_replaced(struct stepper *s, const struct unwind_regs *before,
				    uint8_t effect)
{
	/* A call whose caller had no frame leads back to that caller. */
	bool comes_back = effect == X86_64_RET && s->frames.len &&
			  before->v[ARCH_SP] == s->frames.v[s->frames.len - 1].cfa - 8;

	stepper_drop(s);
	uint64_t slot = s->frames.len ? s->frames.v[s->frames.len - 1].cfa - 8 : 0;
	bool jumps = (effect == X86_64_JUMP_FAR && s->sp_loaded) || effect == X86_64_RET ||
		     effect == X86_64_STOP /* IRET */;

	s->sp_loaded = effect == X86_64_SP_LOST;
	if (!slot || !jumps || comes_back || s->regs.v[ARCH_SP] != slot)
		return;
	s->replaced++;
	s->frames.len--;
}

/* Steps one instruction. *signal: signal to deliver with it, then the next one. */
static inline int stepper_step(struct stepper *s, int *signal)
{
	struct unwind_regs before = s->regs;
	unsigned char code[X86_64_INSN_MAX] = {0};
	struct x86_64_insn insn = {.effect = X86_64_NONE};
	int status, r, sent = *signal;

	if (memory_read_pages(s->pid, before.v[ARCH_IP], code, sizeof(code), NULL) ||
	    !x86_64_insn(code, sizeof(code), &insn))
		s->unreadable++;
	if (ptrace(PTRACE_SINGLESTEP, s->tid, NULL, (void *)(intptr_t)sent) < 0)
		return -errno;
	r = stepper_wait(s, &status);
	if (r || (r = stepper_read_regs(s)))
		return r;
	s->steps++;
	*signal = WSTOPSIG(status) == SIGTRAP || status >> 16 ? 0 : WSTOPSIG(status);
	/* A handler begins below the interrupted frame, or on a stack of its own. Its return
	 * address leads to the kernel. */
	if (sent && s->regs.v[ARCH_IP] - before.v[ARCH_IP] > X86_64_INSN_MAX) {
		s->signals++;
		return stepper_push(s, &before, true);
	}
	if (code[0] == 0x9c) /* PUSHF: removes the single-step flag from the saved flags */
		hide_trap(s);
	stepper_replaced(s, &before, insn.effect);
	if (insn.effect == X86_64_CALL && s->regs.v[ARCH_SP] == before.v[ARCH_SP] - 8) {
		s->calls++;
		stepper_drop(s);
		return stepper_push(s, &before, false);
	}
	return 0;
}

/* Steps for this many instructions, from any moment on. Returns 0; -ESRCH if the thread ended;
 * -errno; or the result of fn. */
static inline int stepper_run(struct stepper *s, uint64_t steps, stepper_fn *fn, void *ctx)
{
	struct user_regs_struct last;
	int signal = 0, status, r;
	cpu_set_t was, one;
	bool moved = !sched_getaffinity(s->tid, sizeof(was), &was);

	s->frames.len = 0;
	/* On one CPU both run twenty times faster. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	if (moved && !sched_setaffinity(0, sizeof(one), &one))
		(void)sched_setaffinity(s->tid, sizeof(one), &one);
	if (ptrace(PTRACE_SEIZE, s->tid, NULL, NULL) < 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, s->tid, NULL, NULL) < 0)
		return -errno;
	r = stepper_wait(s, &status);
	if (!r)
		r = stepper_read_regs(s);
	for (uint64_t i = 0; !r && i < steps; i++) {
		stepper_drop(s);
		r = s->frames.len ? fn(ctx, s) : 0;
		if (!r)
			r = stepper_step(s, &signal);
	}
	/* After POPF and IRET the kernel treats the single-step flag as the program's own. */
	if (r != -ESRCH && !ptrace(PTRACE_GETREGS, s->tid, NULL, &last)) {
		last.eflags &= ~0x100ull;
		(void)ptrace(PTRACE_SETREGS, s->tid, NULL, &last);
	}
	if (r != -ESRCH)
		(void)ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)signal);
	if (moved) {
		(void)sched_setaffinity(s->tid, sizeof(was), &was);
		(void)sched_setaffinity(0, sizeof(was), &was);
	}
	return r;
}

#endif
