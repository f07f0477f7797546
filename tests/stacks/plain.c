/* Frames of every kind that compilers make: none, many saved registers, variable and large sizes,
 * realigned, and tail calls. */
#include "known.h"
#include "plain_asm.h"
#include "saved.h"

#include <alloca.h>
#include <setjmp.h>

static volatile unsigned sink;

/* A leaf without a frame, below frames with some saved registers. */
LEAF(leaf, ROUNDS)
static NOINLINE unsigned middle(unsigned x, unsigned y)
{
	unsigned r = CALL(leaf, x);

	BURN(r, ROUNDS / 10);
	return r + y;
}
static NOINLINE unsigned outer(unsigned x)
{
	return CALL(middle, x, x * 3) + x;
}

/* A leaf whose variables are in the red zone. */
static NOINLINE unsigned red_leaf(unsigned x)
{
	volatile unsigned zone[16] = {x};

	for (unsigned i = 0; i < ROUNDS; i++)
		zone[i % 16] += x++;
	return zone[3];
}
static NOINLINE unsigned red(unsigned x)
{
	return CALL(red_leaf, x) + 1;
}

/* Uses all registers that a callee saves. The frame pointer is a variable if the flags allow
 * that. */
LEAF(pushes_leaf, ROUNDS)
static NOINLINE unsigned pushes(unsigned x)
{
	unsigned a = x + 1, b = x * 3, c = x ^ 5, d = x - 7, e = x * 11, f = x + 13;

	for (int i = 0; i < 2; i++) {
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
		x += CALL(pushes_leaf, x);
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
	}
	return x + a + b + c + d + e + f;
}

/* The frame size is known only at run time. */
static NOINLINE unsigned vla_leaf(volatile unsigned char *p, unsigned x)
{
	BURN(x, ROUNDS);
	p[0] = (unsigned char)x;
	return x;
}
static NOINLINE unsigned vla(unsigned x)
{
	volatile unsigned char bytes[(x & 511) + 1];

	return CALL(vla_leaf, bytes, x) + bytes[0];
}
static NOINLINE unsigned alloca_leaf(volatile unsigned char *p, unsigned x)
{
	BURN(x, ROUNDS);
	p[0] = (unsigned char)x;
	return x;
}
static NOINLINE unsigned with_alloca(unsigned x)
{
	unsigned r = 0;

	for (unsigned i = 0; i < 3; i++) {
		volatile unsigned char *p = (volatile unsigned char *)alloca((x & 127) + 16);

		BURN(x, ROUNDS / 20);
		r += CALL(alloca_leaf, p, x) + p[0];
	}
	return r;
}

#ifdef __aarch64__
#define REALIGNS
#else
#define REALIGNS __attribute__((force_align_arg_pointer))
#endif
/* Realigns the stack on entry: by attribute, and for a variable that needs it. */
LEAF(realigned_leaf, ROUNDS)
static NOINLINE REALIGNS unsigned realigned(unsigned x)
{
	BURN(x, ROUNDS / 10);
	return CALL(realigned_leaf, x) + x;
}
static NOINLINE unsigned aligned_leaf(volatile unsigned *p, unsigned x)
{
	BURN(x, ROUNDS);
	p[3] = x;
	return x;
}
static NOINLINE unsigned aligned(unsigned x)
{
	volatile unsigned vector[16] __attribute__((aligned(64))) = {x};

	BURN(x, ROUNDS / 10);
	return CALL(aligned_leaf, vector, x) + vector[3];
}
/* Realigned, of variable size, and with arguments on the stack: another register locates the
 * frame. */
static NOINLINE unsigned both_leaf(volatile unsigned *p, volatile unsigned char *q, unsigned x)
{
	BURN(x, ROUNDS);
	p[0] = x;
	q[0] = (unsigned char)x;
	return x;
}
static NOINLINE unsigned both(unsigned x, unsigned b, unsigned c, unsigned d, unsigned e,
			      unsigned f, unsigned g, unsigned h)
{
	volatile unsigned vector[16] __attribute__((aligned(64))) = {x};
	volatile unsigned char bytes[(b & 255) + 1];

	BURN(x, ROUNDS / 10);
	return CALL(both_leaf, vector, bytes, x) + vector[0] + bytes[0] + b + c + d + e + f + g + h;
}

/* A frame larger than a page; the stack protector touches each page. */
static NOINLINE unsigned large_leaf(volatile char *p, unsigned x)
{
	BURN(x, ROUNDS);
	p[1] = (char)x;
	return x;
}
static NOINLINE unsigned large(unsigned x)
{
	volatile char bytes[6000];

	bytes[0] = (char)x;
	return CALL(large_leaf, bytes, x) + (unsigned)bytes[1];
}

/* A jump instead of a call: the jumping function has no frame. */
LEAF(jumped_to, ROUNDS)
static NOINLINE unsigned jumper(unsigned x)
{
	BURN(x, ROUNDS);
	JUMP(jump_top, jumped_to, x);
}
static NOINLINE unsigned jump_top(unsigned x)
{
	return CALL(jumper, x) + 1;
}

/* A call that does not return is the last instruction, so the return address is in the next
 * function. */
static jmp_buf back;
static NOINLINE __attribute__((noreturn)) void no_return(unsigned x)
{
	BURN(x, ROUNDS);
	sink = x;
	LIBRARY(LIBC "+", longjmp(back, 1));
	__builtin_unreachable();
}
static NOINLINE __attribute__((noreturn)) void ends_with_call(unsigned x)
{
	KNOWN_EDGE(__func__, "-", "no_return");
	no_return(x + 1);
}
LEAF(after_end, ROUNDS / 10)
static NOINLINE unsigned catches(unsigned x)
{
	KNOWN_EDGE(__func__, LIBC "+", "-"); /* setjmp */
	KNOWN_EDGE(__func__, "-", "ends_with_call");
	if (setjmp(back) == 0)
		ends_with_call(x);
	return CALL(after_end, x);
}

/* Mostly saves and restores registers. */
static NOINLINE unsigned tiny(unsigned x)
{
	__asm__ volatile("" : "+r"(x) : : SAVED);
	return x + 1;
}
static NOINLINE unsigned tiny_loop(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS / 4; i++)
		x = CALL(tiny, x);
	return x;
}
static NOINLINE unsigned tiny_top(unsigned x)
{
	return CALL(tiny_loop, x) ^ 3;
}
/* The same with a frame made by sub and removed by add, and an early return before that. */
static NOINLINE unsigned early_leaf(unsigned x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}
static NOINLINE unsigned early(unsigned x)
{
	volatile unsigned v[8];

	if (__builtin_expect(x % 4 == 0, 1))
		return x + 1;
	v[x % 8] = x;
	__asm__ volatile("" : : : SOME_SAVED);
	return CALL(early_leaf, v[x % 8]);
}
static NOINLINE unsigned early_loop(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS / 3; i++)
		x += CALL(early, i);
	return x;
}

static NOINLINE unsigned asm_top(unsigned x)
{
	x += CALL(asm_leaf, x);
	return CALL(asm_moves, x) + 1;
}

int main(void)
{
	unsigned x = 1;

	known_ready();
	for (;;) {
		x += CALL(outer, x);
		x += CALL(red, x);
		x += CALL(pushes, x);
		x += CALL(vla, x);
		x += CALL(with_alloca, x);
		x += CALL(realigned, x);
		x += CALL(aligned, x);
		x += CALL(both, x, x, x, x, x, x, x, x);
		x += CALL(large, x);
		x += CALL(jump_top, x);
		x += CALL(catches, x);
		x += CALL(tiny_top, x);
		x += CALL(early_loop, x);
		x += CALL(asm_top, x);
		sink = x;
	}
}
