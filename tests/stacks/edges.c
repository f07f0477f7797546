/*
 * Functions that mostly make and remove their frames, so that most samples are in prologues and
 * epilogues. Frames with pushes, with a fixed size, realigned, of variable size, with an early
 * return, and functions that end with a jump.
 */
#include "known.h"
#include "saved.h"

#include <alloca.h>

static volatile unsigned sink;

/*
 * Uses all registers that a callee saves, except the frame pointer of some flags. Each use is
 * different, so that no two functions are merged.
 */
#define USE_SAVED __asm__ volatile("" : : "i"(__LINE__) : SAVED)

/* Each level saves all registers again. */
static NOINLINE unsigned saves_3(unsigned x)
{
	USE_SAVED;
	return x + 1;
}
static NOINLINE unsigned saves_2(unsigned x)
{
	USE_SAVED;
	return CALL(saves_3, x) + 1;
}
static NOINLINE unsigned saves_1(unsigned x)
{
	USE_SAVED;
	return CALL(saves_2, x) + 1;
}

static NOINLINE unsigned sized_leaf(volatile unsigned *p)
{
	return p[1] + 1;
}
static NOINLINE unsigned sized(unsigned x)
{
	volatile unsigned v[40];

	v[1] = x;
	return CALL(sized_leaf, v) + v[1];
}

static NOINLINE unsigned realigned(unsigned x)
{
	volatile unsigned v[16] __attribute__((aligned(64)));

	USE_SAVED;
	v[3] = x;
	return v[3];
}

static NOINLINE unsigned variable_leaf(volatile unsigned char *p)
{
	return p[0];
}
static NOINLINE unsigned variable(unsigned x)
{
	volatile unsigned char *p = (volatile unsigned char *)alloca(x % 64 + 1);

	p[0] = (unsigned char)x;
	return CALL(variable_leaf, p);
}

/* Without a frame in three of four calls. */
static NOINLINE unsigned early_leaf(unsigned x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}
static NOINLINE unsigned early(unsigned x)
{
	volatile unsigned v[8];

	if (__builtin_expect(x % 4 != 0, 1))
		return x + 1;
	USE_SAVED;
	v[x % 8] = x;
	return CALL(early_leaf, v[x % 8]);
}

/* The frame is removed before the jump. */
static NOINLINE unsigned jump_end(unsigned x)
{
	USE_SAVED;
	return x + 1;
}
static NOINLINE unsigned jump_first(unsigned x)
{
	USE_SAVED;
	x ^= 5;
	JUMP(loop, jump_end, x);
}

static NOINLINE unsigned loop(unsigned x)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		x += CALL(saves_1, i);
		x += CALL(sized, i);
		x += CALL(realigned, i);
		x += CALL(variable, i);
		x += CALL(early, i);
		x += CALL(jump_first, i);
	}
	return x;
}

int main(void)
{
	known_ready();
	for (unsigned x = 1;;)
		sink = x += CALL(loop, x) + 1;
}
