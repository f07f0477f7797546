#include "unwind/expression.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <dwarf.h>
#include <errno.h>

#include <cmocka.h>

static const unsigned char stack[] = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99};
static const struct unwind_memory memory = {0x1000, stack, sizeof(stack), NULL};
static const struct unwind_regs regs = {.v = {[0] = 7, [ARCH_SP] = 0x1000, [ARCH_IP] = 0x40101b},
					.known = 1 | 1u << ARCH_SP | 1u << ARCH_IP};

static int value_of(const void *ops, size_t len, uint64_t *ret_value)
{
	return expression_evaluate(ops, len, &regs, &memory, NULL, ret_value);
}

#define GIVES(value, ...)                                                   \
	do {                                                                \
		const unsigned char ops_[] = {__VA_ARGS__};                 \
		uint64_t value_ = 0xbad;                                    \
                                                                            \
		assert_int_equal(value_of(ops_, sizeof(ops_), &value_), 0); \
		assert_int_equal(value_, (uint64_t)(value));                \
	} while (0)

#define FAILS(error, ...)                                                       \
	do {                                                                    \
		const unsigned char ops_[] = {__VA_ARGS__};                     \
		uint64_t value_ = 0xbad;                                        \
                                                                                \
		assert_int_equal(value_of(ops_, sizeof(ops_), &value_), error); \
		assert_int_equal(value_, 0xbad);                                \
	} while (0)

static void constants_and_registers_are_pushed(void **state)
{
	(void)state;
	GIVES(31, DW_OP_lit31);
	GIVES(0xfe, DW_OP_const1u, 0xfe);
	GIVES(-2, DW_OP_const1s, 0xfe);
	GIVES(0xfffe, DW_OP_const2u, 0xfe, 0xff);
	GIVES(-2, DW_OP_const2s, 0xfe, 0xff);
	GIVES(0xfffffffe, DW_OP_const4u, 0xfe, 0xff, 0xff, 0xff);
	GIVES(-2, DW_OP_const4s, 0xfe, 0xff, 0xff, 0xff);
	GIVES(0x0807060504030201, DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8);
	GIVES(0x0807060504030201, DW_OP_const8s, 1, 2, 3, 4, 5, 6, 7, 8);
	GIVES(300, DW_OP_constu, 0xac, 2);
	GIVES(-2, DW_OP_consts, 0x7e);
	GIVES(5, DW_OP_breg0, 0x7e);
	GIVES(0x1008, DW_OP_bregx, ARCH_SP, 8);
	FAILS(-ENXIO, DW_OP_breg3, 0);
	FAILS(-ENOTSUP, DW_OP_breg17, 0);
	FAILS(-ENOTSUP, DW_OP_bregx, 0xff, 0xff, 0x7f, 0);
}

static void stack_operations_move_values(void **state)
{
	(void)state;
	GIVES(6, DW_OP_lit3, DW_OP_dup, DW_OP_plus);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_drop);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_over);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_pick, 2);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_swap);
	/* 1 2 3 becomes 3 1 2. */
	GIVES(2, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot);
	GIVES(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop);
	GIVES(3, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_pick, 1);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_swap);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_lit1, DW_OP_rot);
	FAILS(-EBADMSG, DW_OP_drop);
	FAILS(-EBADMSG, DW_OP_dup);
}

static void arithmetic_follows_the_standard(void **state)
{
	(void)state;
	GIVES(5, DW_OP_const1s, 0xfb, DW_OP_abs);
	GIVES(4, DW_OP_lit12, DW_OP_lit6, DW_OP_and);
	GIVES(-2, DW_OP_const1s, 0xfa, DW_OP_lit3, DW_OP_div);
	GIVES(INT64_MIN, DW_OP_const8s, 0, 0, 0, 0, 0, 0, 0, 0x80, DW_OP_const1s, 0xff, DW_OP_div);
	GIVES(9, DW_OP_lit12, DW_OP_lit3, DW_OP_minus);
	GIVES(2, DW_OP_lit12, DW_OP_lit5, DW_OP_mod);
	GIVES(60, DW_OP_lit12, DW_OP_lit5, DW_OP_mul);
	GIVES(-12, DW_OP_lit12, DW_OP_neg);
	GIVES(~12, DW_OP_lit12, DW_OP_not);
	GIVES(13, DW_OP_lit12, DW_OP_lit5, DW_OP_or);
	GIVES(9, DW_OP_lit12, DW_OP_lit5, DW_OP_xor);
	GIVES(12 + 300, DW_OP_lit12, DW_OP_plus_uconst, 0xac, 2);
	GIVES(48, DW_OP_lit12, DW_OP_lit2, DW_OP_shl);
	GIVES(0, DW_OP_lit12, DW_OP_const1u, 64, DW_OP_shl);
	GIVES(3, DW_OP_lit12, DW_OP_lit2, DW_OP_shr);
	GIVES(0, DW_OP_lit12, DW_OP_const1u, 64, DW_OP_shr);
	GIVES(-3, DW_OP_const1s, 0xf4, DW_OP_lit2, DW_OP_shra);
	GIVES(-1, DW_OP_const1s, 0xf4, DW_OP_const1u, 200, DW_OP_shra);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_lit0, DW_OP_div);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_lit0, DW_OP_mod);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_plus);
}

static void comparisons_are_signed(void **state)
{
	(void)state;
	GIVES(1, DW_OP_lit1, DW_OP_lit1, DW_OP_eq);
	GIVES(0, DW_OP_lit1, DW_OP_lit1, DW_OP_ne);
	GIVES(0, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_ge);
	GIVES(0, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_gt);
	GIVES(1, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_le);
	GIVES(1, DW_OP_const1s, 0xff, DW_OP_lit1, DW_OP_lt);
	GIVES(1, DW_OP_lit1, DW_OP_lit1, DW_OP_le);
	GIVES(0, DW_OP_lit1, DW_OP_lit1, DW_OP_lt);
	GIVES(0x1010, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
	      DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus);
}

static void memory_is_read_in_the_copy_only(void **state)
{
	(void)state;
	GIVES(UINT64_C(0x8877665544332211), DW_OP_breg7, 0, DW_OP_deref);
	GIVES(UINT64_C(0x9988776655443322), DW_OP_breg7, 1, DW_OP_deref);
	GIVES(0x99, DW_OP_breg7, 8, DW_OP_deref_size, 1);
	GIVES(0x2211, DW_OP_breg7, 0, DW_OP_deref_size, 2);
	GIVES(0x44332211, DW_OP_breg7, 0, DW_OP_deref_size, 4);
	FAILS(-ENODATA, DW_OP_breg7, 2, DW_OP_deref);
	FAILS(-ENODATA, DW_OP_breg7, 0x7f, DW_OP_deref);
	FAILS(-ENODATA, DW_OP_breg7, 9, DW_OP_deref_size, 1);
	FAILS(-ENODATA, DW_OP_lit0, DW_OP_deref);
	FAILS(-EBADMSG, DW_OP_breg7, 0, DW_OP_deref_size, 3);
	FAILS(-EBADMSG, DW_OP_deref);
}

static void jumps_stay_inside_and_loops_end(void **state)
{
	(void)state;
	GIVES(1, DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_lit2);
	GIVES(1, DW_OP_lit1, DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_lit2);
	GIVES(2, DW_OP_lit1, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_lit2);
	/* Counts down from 9. */
	GIVES(0, DW_OP_lit9, DW_OP_lit1, DW_OP_minus, DW_OP_dup, DW_OP_bra, 0xfa, 0xff);
	FAILS(-E2BIG, DW_OP_lit1, DW_OP_skip, 0xfd, 0xff);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_skip, 2, 0, DW_OP_lit2);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_skip, 0xfb, 0xff);
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_dup, DW_OP_skip, 0xfc, 0xff); /* fills the stack */
	FAILS(-EBADMSG, DW_OP_lit1, DW_OP_skip, 1);
}

static void cut_or_unknown_opcodes_fail(void **state)
{
	uint64_t cfa = 0x5000, value;

	(void)state;
	FAILS(-EBADMSG, DW_OP_const4u, 1, 2);
	FAILS(-EBADMSG, DW_OP_constu, 0x80);
	FAILS(-EBADMSG, DW_OP_nop);
	FAILS(-ENOTSUP, DW_OP_addr, 1, 2, 3, 4, 5, 6, 7, 8);
	FAILS(-ENOTSUP, DW_OP_call_frame_cfa);
	FAILS(-ENOTSUP, DW_OP_lit1, DW_OP_stack_value);
	FAILS(-ENOTSUP, DW_OP_reg0);
	assert_int_equal(value_of("", 0, &value), -EBADMSG);
	assert_int_equal(expression_evaluate((const unsigned char[]){DW_OP_plus_uconst, 8}, 2,
					     &regs, &memory, &cfa, &value),
			 0);
	assert_int_equal(value, 0x5008);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_and_registers_are_pushed),
		cmocka_unit_test(stack_operations_move_values),
		cmocka_unit_test(arithmetic_follows_the_standard),
		cmocka_unit_test(comparisons_are_signed),
		cmocka_unit_test(memory_is_read_in_the_copy_only),
		cmocka_unit_test(jumps_stay_inside_and_loops_end),
		cmocka_unit_test(cut_or_unknown_opcodes_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
