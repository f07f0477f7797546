/*
 * Signal handlers called at a known instruction (a breakpoint in a leaf that uses its red zone), at
 * any instruction (a timer), and within another handler. With ALTERNATE the first two have a stack
 * of their own, so the interrupted frame is on another stack.
 */
#include "known.h"

#include <sys/time.h>

#ifdef __x86_64__
#define INSTRUCTION_POINTER 16 /* REG_RIP */
#else
#define INSTRUCTION_POINTER 14 /* REG_EIP */
#endif

static volatile unsigned sink;

LEAF(handler_leaf, ROUNDS)
static NOINLINE void on_trap(int sig)
{
	sink = CALL(handler_leaf, (unsigned)sig) + 1;
}
static NOINLINE unsigned trap_leaf(unsigned x)
{
	volatile unsigned zone[8] = {x};

	for (unsigned i = 0; i < ROUNDS / 4; i++)
		zone[i % 8] += x++;
	KNOWN_EDGE(__func__, RESTORER, "on_trap");
	__asm__ volatile("int3" : : : "memory");
	return zone[2];
}
static NOINLINE unsigned traps(unsigned x)
{
	return CALL(trap_leaf, x) + 1;
}

#ifdef ALTERNATE
#define ON_STACK SA_ONSTACK
#else
#define ON_STACK 0
#endif
/* A handler that another handler interrupts. */
LEAF(inner_leaf, ROUNDS)
static NOINLINE void on_usr1(int sig)
{
	sink = CALL(inner_leaf, (unsigned)sig) + 1;
}
static NOINLINE void on_ill(int sig, siginfo_t *info, void *context)
{
	unsigned x = (unsigned)sig;
	ucontext_t *c = (ucontext_t *)context;

	(void)info;
	c->uc_mcontext.gregs[INSTRUCTION_POINTER] += 2;
	BURN(x, ROUNDS / 4);
	KNOWN_EDGE(__func__, LIBC_KERNEL ";" RESTORER, "on_usr1");
	LIBRARY(LIBC "+", raise(SIGUSR1));
	sink = x;
}
static NOINLINE unsigned ill_leaf(unsigned x)
{
	BURN(x, ROUNDS / 4);
	KNOWN_EDGE(__func__, RESTORER, "on_ill");
	__asm__ volatile("ud2" : : : "memory");
	return x;
}
static NOINLINE unsigned ills(unsigned x)
{
	return CALL(ill_leaf, x) + 2;
}

/* At any instruction, including first ones of functions. */
LEAF(timer_leaf, ROUNDS * 4)
static NOINLINE void on_timer(int sig)
{
	KNOWN_EDGE("*", RESTORER, "on_timer");
	sink = CALL(timer_leaf, (unsigned)sig);
}
static NOINLINE unsigned first_instruction(unsigned x)
{
	return x * 3;
}
static NOINLINE unsigned many_calls(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS / 2; i++)
		x += CALL(first_instruction, i);
	return x;
}

int main(void)
{
	static char stack[1 << 16];
	unsigned x = 1;

	sigaltstack(&(stack_t){.ss_sp = stack, .ss_size = sizeof(stack)}, NULL);
	sigaction(SIGTRAP, &(struct sigaction){.sa_handler = on_trap}, NULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_usr1, .sa_flags = ON_STACK}, NULL);
	sigaction(SIGILL,
		  &(struct sigaction){.sa_sigaction = on_ill, .sa_flags = ON_STACK | SA_SIGINFO},
		  NULL);
	sigaction(SIGPROF, &(struct sigaction){.sa_handler = on_timer, .sa_flags = SA_RESTART},
		  NULL);
	known_ready();
	setitimer(ITIMER_PROF, &(struct itimerval){{0, 4000}, {0, 4000}}, NULL);
	for (;;) {
		x += CALL(traps, x);
		x += CALL(ills, x);
		x += CALL(many_calls, x);
		sink = x;
	}
}
