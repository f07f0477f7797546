#include "unwind/expression.h"

#include "elf/dwarf_bytes.h"

#include <dwarf.h>
#include <errno.h>

struct evaluation {
	const unsigned char *start;
	struct dwarf_bytes b; /* the remaining operations */
	const struct unwind_regs *regs;
	const struct unwind_memory *memory;
	uint64_t stack[EXPRESSION_STACK_MAX];
	size_t depth;
	int error; /* the first error; later values are 0 */
};

static void fail(struct evaluation *e, int error)
{
	if (!e->error)
		e->error = error;
}

static void push(struct evaluation *e, uint64_t value)
{
	if (e->depth == EXPRESSION_STACK_MAX)
		fail(e, -EBADMSG);
	else
		e->stack[e->depth++] = value;
}

static uint64_t pop(struct evaluation *e)
{
	if (e->depth)
		return e->stack[--e->depth];
	fail(e, -EBADMSG);
	return 0;
}

/* The value `n` places below the top. */
static uint64_t peek(struct evaluation *e, uint64_t n)
{
	if (n < e->depth)
		return e->stack[e->depth - 1 - n];
	fail(e, -EBADMSG);
	return 0;
}

static void push_register(struct evaluation *e, uint64_t reg, int64_t add)
{
	if (reg >= ARCH_REGS)
		fail(e, -ENOTSUP);
	else if (!(e->regs->known >> reg & 1))
		fail(e, -ENXIO);
	else
		push(e, e->regs->v[reg] + (uint64_t)add);
}

static void dereference(struct evaluation *e, uint64_t bytes)
{
	uint64_t addr = pop(e), off = addr - e->memory->start, value = 0;

	if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
		fail(e, -EBADMSG);
	} else if (e->memory->len < bytes || off > e->memory->len - bytes) {
		fail(e, -ENODATA);
	} else {
		memcpy(&value, e->memory->data + off, bytes);
		push(e, value);
	}
}

static void jump(struct evaluation *e, bool taken)
{
	int16_t by = (int16_t)dwarf_uint(&e->b, 2);
	ptrdiff_t here = e->b.p - e->start, all = e->b.end - e->start;

	if (!taken)
		return;
	if (by < -here || by > all - here)
		fail(e, -EBADMSG);
	else
		e->b.p += by;
}

/* Runs an operation that pushes a constant. False: op is another one. */
static bool constant(struct evaluation *e, uint8_t op)
{
	struct dwarf_bytes *b = &e->b;

	switch (op) {
	case DW_OP_lit0 ... DW_OP_lit31:
		push(e, (uint64_t)(op - DW_OP_lit0));
		return true;
	case DW_OP_const1u:
		push(e, dwarf_uint(b, 1));
		return true;
	case DW_OP_const1s:
		push(e, (uint64_t)(int8_t)dwarf_uint(b, 1));
		return true;
	case DW_OP_const2u:
		push(e, dwarf_uint(b, 2));
		return true;
	case DW_OP_const2s:
		push(e, (uint64_t)(int16_t)dwarf_uint(b, 2));
		return true;
	case DW_OP_const4u:
		push(e, dwarf_uint(b, 4));
		return true;
	case DW_OP_const4s:
		push(e, (uint64_t)(int32_t)dwarf_uint(b, 4));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(e, dwarf_uint(b, 8));
		return true;
	case DW_OP_constu:
		push(e, dwarf_uleb(b));
		return true;
	case DW_OP_consts:
		push(e, (uint64_t)dwarf_sleb(b));
		return true;
	default:
		return false;
	}
}

/* Runs an operation that moves values on the stack. False: op is another one. */
static bool shuffle(struct evaluation *e, uint8_t op)
{
	uint64_t a, b, c;

	switch (op) {
	case DW_OP_dup:
		push(e, peek(e, 0));
		return true;
	case DW_OP_drop:
		pop(e);
		return true;
	case DW_OP_over:
		push(e, peek(e, 1));
		return true;
	case DW_OP_pick:
		push(e, peek(e, dwarf_uint(&e->b, 1)));
		return true;
	case DW_OP_swap:
		a = pop(e);
		b = pop(e);
		push(e, a);
		push(e, b);
		return true;
	case DW_OP_rot:
		a = pop(e);
		b = pop(e);
		c = pop(e);
		push(e, a);
		push(e, c);
		push(e, b);
		return true;
	default:
		return false;
	}
}

/* Computes b op a; a was on top. Shifts by 64 or more leave 0, or the sign bits. */
static uint64_t combine(struct evaluation *e, uint8_t op, uint64_t b, uint64_t a)
{
	switch (op) {
	case DW_OP_and:
		return b & a;
	case DW_OP_or:
		return b | a;
	case DW_OP_xor:
		return b ^ a;
	case DW_OP_plus:
		return b + a;
	case DW_OP_minus:
		return b - a;
	case DW_OP_mul:
		return b * a;
	case DW_OP_div:
		if (a == UINT64_MAX)
			return 0 - b; /* the CPU cannot divide INT64_MIN by -1 */
		return a ? (uint64_t)((int64_t)b / (int64_t)a) : (fail(e, -EBADMSG), 0);
	case DW_OP_mod:
		return a ? b % a : (fail(e, -EBADMSG), 0);
	case DW_OP_shl:
		return a < 64 ? b << a : 0;
	case DW_OP_shr:
		return a < 64 ? b >> a : 0;
	case DW_OP_shra:
		return (uint64_t)((int64_t)b >> (a < 64 ? a : 63));
	case DW_OP_eq:
		return b == a;
	case DW_OP_ne:
		return b != a;
	case DW_OP_ge:
		return (int64_t)b >= (int64_t)a;
	case DW_OP_gt:
		return (int64_t)b > (int64_t)a;
	case DW_OP_le:
		return (int64_t)b <= (int64_t)a;
	default: /* DW_OP_lt */
		return (int64_t)b < (int64_t)a;
	}
}

static void calculate(struct evaluation *e, uint8_t op)
{
	uint64_t a;

	switch (op) {
	case DW_OP_abs:
		a = pop(e);
		push(e, (int64_t)a < 0 ? 0 - a : a);
		break;
	case DW_OP_neg:
		push(e, 0 - pop(e));
		break;
	case DW_OP_not:
		push(e, ~pop(e));
		break;
	case DW_OP_plus_uconst:
		a = pop(e);
		push(e, a + dwarf_uleb(&e->b));
		break;
	case DW_OP_and ... DW_OP_mul:
	case DW_OP_or ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
		a = pop(e);
		push(e, combine(e, op, pop(e), a));
		break;
	default:
		fail(e, -ENOTSUP);
	}
}

static void operate(struct evaluation *e)
{
	uint8_t op = (uint8_t)dwarf_uint(&e->b, 1);
	uint64_t reg;

	switch (op) {
	case DW_OP_nop:
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(e, (uint64_t)(op - DW_OP_breg0), dwarf_sleb(&e->b));
		break;
	case DW_OP_bregx:
		reg = dwarf_uleb(&e->b);
		push_register(e, reg, dwarf_sleb(&e->b));
		break;
	case DW_OP_deref:
		dereference(e, 8);
		break;
	case DW_OP_deref_size:
		dereference(e, dwarf_uint(&e->b, 1));
		break;
	case DW_OP_skip:
		jump(e, true);
		break;
	case DW_OP_bra:
		jump(e, pop(e) != 0);
		break;
	default:
		if (!constant(e, op) && !shuffle(e, op))
			calculate(e, op);
	}
	if (e->b.bad)
		fail(e, -EBADMSG);
}

int expression_evaluate(const void *ops, size_t len, const struct unwind_regs *regs,
			const struct unwind_memory *memory, const uint64_t *initial,
			uint64_t *ret_value)
{
	struct evaluation e;

	e.start = ops;
	e.b = (struct dwarf_bytes){.p = ops, .end = e.start + len};
	e.regs = regs;
	e.memory = memory;
	e.depth = 0;
	e.error = 0;
	if (initial)
		push(&e, *initial);
	for (int steps = 0; e.b.p < e.b.end && !e.error; steps++) {
		if (steps == EXPRESSION_STEPS_MAX || !unwind_take_steps(memory->steps_left, 1))
			return -E2BIG;
		operate(&e);
	}
	if (e.error)
		return e.error;
	if (!e.depth)
		return -EBADMSG;
	*ret_value = e.stack[e.depth - 1];
	return 0;
}
