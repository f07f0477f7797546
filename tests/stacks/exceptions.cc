/* Exceptions that pass several frames; destructors on the way and handlers afterwards do work. */
#include "known.h"

#ifdef KNOWN_STATIC
#define RUNTIME "[self]+"
#else
#define RUNTIME "[libstdc++.so.6]|[libgcc_s.so.1]|[libc.so.6]|[ld-linux-x86-64.so.2]+"
#endif

static volatile unsigned sink;

LEAF(destructor_leaf, ROUNDS)

namespace known
{
struct guard {
	unsigned x;
	explicit guard(unsigned v) : x(v)
	{
	}
	NOINLINE ~guard();
};
guard::~guard()
{
	sink = CALL(destructor_leaf, x) + 1;
}
} // namespace known

LEAF(throw_leaf, ROUNDS)
static NOINLINE unsigned thrower(unsigned x)
{
	x += CALL(throw_leaf, x);
	KNOWN_EDGE(__func__, RUNTIME, "-");
	if (x != 1)
		throw x;
	return x;
}
static NOINLINE unsigned passes(unsigned x)
{
	return CALL(thrower, x) + 1;
}
static NOINLINE unsigned guarded(unsigned x)
{
	known::guard g(x);

	KNOWN_EDGE(__func__, "-", "~guard");
	KNOWN_EDGE(__func__, RUNTIME, "-"); /* rethrows the exception */
	return CALL(passes, x) + g.x;
}
LEAF(handler_leaf, ROUNDS)
/* The handler throws again; the next handler catches a base class. */
static NOINLINE unsigned rethrows(unsigned x)
{
	KNOWN_EDGE(__func__, RUNTIME, "-");
	try {
		return CALL(guarded, x) + 1;
	} catch (unsigned &v) {
		v += CALL(handler_leaf, v);
		throw;
	}
}
LEAF(last_leaf, ROUNDS)
static NOINLINE unsigned catches(unsigned x)
{
	KNOWN_EDGE(__func__, RUNTIME, "-");
	try {
		return CALL(rethrows, x) + 1;
	} catch (...) {
		return CALL(last_leaf, x);
	}
}

/* Virtual calls through an adjusting thunk, which has no frame. */
struct first_base {
	unsigned a = 1;
	virtual unsigned first_virtual(unsigned x) = 0;
};
struct second_base {
	unsigned b = 2;
	virtual unsigned second_virtual(unsigned x) = 0;
};
LEAF(virtual_leaf, ROUNDS)
struct derived final : first_base, second_base {
	unsigned first_virtual(unsigned x) override
	{
		return x + a;
	}
	NOINLINE unsigned second_virtual(unsigned x) override;
};
unsigned derived::second_virtual(unsigned x)
{
	return CALL(virtual_leaf, x) + b;
}
static NOINLINE unsigned virtual_call(second_base *object, unsigned x)
{
	KNOWN_EDGE(__func__, "-", "second_virtual");
	return object->second_virtual(x) + 1;
}

int main()
{
	derived object;
	second_base *volatile base = &object;
	unsigned x = 1;

	known_ready();
	for (;;) {
		x += CALL(catches, x | 2);
		x += CALL(virtual_call, base, x);
		sink = x;
	}
}
