/* unwind/code_rules: a function's rules are rows that no longer need its code or unwind
 * information. */
#include "unwind/code_rules.h"

#include "tests/unit/unwind_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct code_rules make(const unsigned char *data, size_t len, const unsigned char *code,
			      size_t bytes)
{
	struct unwind_info info = {.nops = 0};
	struct code_rules rules;
	uint32_t chain;

	assert_int_equal(unwind_info_add(&info, data, len, &chain), 0);
	assert_int_equal(code_rules_make(&info, code, bytes, NULL, &rules), 0);
	return rules;
}

static void each_instruction_has_its_rule(void **state)
{
	struct code_rules rules =
		make(method_info, sizeof(method_info), method_code, sizeof(method_code));

	(void)state;
	for (size_t i = 0; i < METHOD_RULES; i++)
		assert_rule(code_rules_at(&rules, method_rules[i].offset), method_rules[i].rule);
	/* number of different rules in sequence */
	assert_int_equal(rules.nrows, 9);
	assert_int_equal(code_rules_bytes(&rules), 9 * 16);
	assert_false(rules.doubtful);
	code_rules_free(&rules);
	assert_null(code_rules_at(&rules, 0));
}

static void nops_have_the_rule_of_the_instruction_behind_them(void **state)
{
	enum { RET = sizeof(method_code) - 1, NOPS = 100 };
	unsigned char code[RET + NOPS + 1];

	(void)state;
	memcpy(code, method_code, RET);
	memset(code + RET, 0x90, NOPS);
	code[RET + NOPS] = 0xc3;
	struct code_rules rules = make(method_info, sizeof(method_info), code, sizeof(code));

	for (size_t i = RET; i < sizeof(code); i++)
		assert_rule(code_rules_at(&rules, i), "sp+8 same");
	code_rules_free(&rules);
}

/* Stack of the method within its body: its frame begins at 0x1000, the CFA is 0x1050. */
static uint64_t stack[10] = {[6] = 0xbb, [7] = 0x15, [8] = 0xb9, [9] = 0x401000};
static const struct unwind_memory memory = {0x1000, (const unsigned char *)stack, sizeof(stack),
					    NULL};

static struct unwind_regs regs_at(uint64_t sp)
{
	struct unwind_regs regs = {.known = 0x1ffff};

	for (int i = 0; i < ARCH_REGS; i++)
		regs.v[i] = (uint64_t)i;
	regs.v[ARCH_SP] = sp;
	return regs;
}

static void a_step_restores_registers_saved_up_to_that_place(void **state)
{
	static const struct {
		unsigned int offset, sp;
		uint64_t bp, bx, r15;
	} steps[] = {
		{0, 0x1048, 6, 3, 15},
		{1, 0x1040, 0xb9, 3, 15},
		{3, 0x1038, 0xb9, 3, 0x15},
		{4, 0x1030, 0xb9, 0xbb, 0x15},
		{0x15, 0x1000, 0xb9, 0xbb, 0x15},
		{0x1d, 0x1030, 0xb9, 0xbb, 0x15},
		{0x1e, 0x1038, 0xb9, 3, 0x15},
		{0x20, 0x1040, 0xb9, 3, 15},
		{0x21, 0x1048, 6, 3, 15},
	};
	struct code_rules rules =
		make(method_info, sizeof(method_info), method_code, sizeof(method_code));

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct unwind_regs regs = regs_at(steps[i].sp);

		assert_int_equal(code_rules_step(&rules, steps[i].offset, &regs, &memory), 0);
		assert_int_equal(regs.known, ARCH_CALLEE_SAVED | 1u << ARCH_SP | 1u << ARCH_IP);
		assert_int_equal(regs.v[ARCH_IP], 0x401000);
		assert_int_equal(regs.v[ARCH_SP], 0x1050);
		assert_int_equal(regs.v[ARCH_FP], steps[i].bp);
		assert_int_equal(regs.v[ARCH_BX], steps[i].bx);
		assert_int_equal(regs.v[15], steps[i].r15);
		assert_int_equal(regs.v[12], 12);
	}
	code_rules_free(&rules);
}

static void a_step_with_missing_inputs_fails(void **state)
{
	struct code_rules rules = make(method_info, sizeof(method_info), method_code,
				       sizeof(method_code)),
			  none = {.rows = NULL};
	struct unwind_memory top = {0x1040, (const unsigned char *)&stack[8], 16, NULL},
			     cut = {0x1000, (const unsigned char *)stack, 0x48, NULL};
	struct unwind_regs regs = regs_at(0x1000);

	(void)state;
	assert_int_equal(code_rules_step(&rules, 0x15, &regs, &cut), -ENODATA);
	assert_int_equal(code_rules_step(&none, 0x15, &regs, &memory), -EBADMSG);
	assert_int_equal(regs.v[ARCH_SP], 0x1000);
	regs.known &= ~(1u << ARCH_SP);
	assert_int_equal(code_rules_step(&rules, 0x15, &regs, &memory), -ENODATA);
	/* A register saved below the copy. */
	regs = regs_at(0x1000);
	assert_int_equal(code_rules_step(&rules, 0x15, &regs, &top), 0);
	assert_int_equal(regs.v[ARCH_FP], 0xb9);
	assert_int_equal(regs.known & (1u << ARCH_BX | 1u << 15 | 1u << 12), 1u << 12);
	code_rules_free(&rules);
}

/* The body is known without its instructions; an unknown body has no length. */
static void unreadable_code_is_doubtful(void **state)
{
	static const unsigned char code[] = {0x55, 0x06, 0x90, 0x5d, 0xc3},
				   info[] = {1, 1, 1, 0, 1, 0x50};
	struct code_rules rules = make(info, sizeof(info), code, sizeof(code));

	(void)state;
	assert_true(rules.doubtful);
	assert_rule(code_rules_at(&rules, 1), "sp+16 fp-16");
	assert_rule(code_rules_at(&rules, 3), "sp+16 fp-16");
	assert_rule(code_rules_at(&rules, 4), "sp+8 same");
	code_rules_free(&rules);
}

static void decoded_code_has_rows_too(void **state)
{
	static const unsigned char stubs[] = {0x50, 0xff, 0xe0, 0xcc, 0x50, 0xff, 0xe0};
	struct unwind_regs regs = regs_at(0x1040);
	struct code_rules rules;

	(void)state;
	assert_int_equal(code_rules_follow(stubs, sizeof(stubs), true, &rules), 0);
	assert_int_equal(rules.nrows, 4);
	assert_rule(code_rules_at(&rules, 5), "sp+16 same");
	assert_int_equal(code_rules_step(&rules, 5, &regs, &memory), 0);
	assert_int_equal(regs.v[ARCH_IP], 0x401000);
	assert_int_equal(regs.known, ARCH_CALLEE_SAVED | 1u << ARCH_SP | 1u << ARCH_IP);
	code_rules_free(&rules);
	/* Nothing shows which registers a function saves. */
	assert_int_equal(code_rules_follow(stubs, sizeof(stubs), false, &rules), 0);
	assert_int_equal(rules.nrows, 2);
	regs = regs_at(0x1040);
	assert_int_equal(code_rules_step(&rules, 1, &regs, &memory), 0);
	assert_int_equal(regs.known, 1u << ARCH_FP | 1u << ARCH_SP | 1u << ARCH_IP);
	code_rules_free(&rules);
}

static void a_leaf_has_rows_up_to_its_return(void **state)
{
	static const unsigned char leaf[] = {0x50, 0x90, 0x58, 0xc3, 0xc3},
				   endless[] = {0xeb, 0xfe};
	struct code_rules rules;
	size_t len = 0;

	(void)state;
	assert_int_equal(code_rules_ahead(leaf + 1, sizeof(leaf) - 1, &rules, &len), 0);
	assert_int_equal(len, 3);
	assert_rule(code_rules_at(&rules, 0), "sp+16 same");
	assert_rule(code_rules_at(&rules, 2), "sp+8 same");
	code_rules_free(&rules);
	assert_int_equal(code_rules_ahead(endless, sizeof(endless), &rules, &len), -ENOENT);
	assert_int_equal(len, 3);
}

static void exceeded_limits_are_reported(void **state)
{
	static const unsigned char pair[] = {0x48, 0x83, 0xc4, 8, 0xc3}; /* two rules */
	struct unwind_info info = {.nops = 0};
	size_t bytes = (CODE_RULES_ROWS_MAX / 2 + 1) * sizeof(pair);
	unsigned char *code = malloc(bytes);
	struct code_rules rules;

	(void)state;
	for (size_t at = 0; at < bytes; at++)
		code[at] = pair[at % sizeof(pair)];
	assert_int_equal(code_rules_make(&info, code, bytes, NULL, &rules), -E2BIG);
	assert_int_equal(code_rules_make(&info, code, CODE_RULES_BYTES_MAX + 1, NULL, &rules),
			 -E2BIG);
	assert_int_equal(code_rules_make(&info, code, 0, NULL, &rules), 0);
	assert_null(rules.rows);
	code_rules_free(&rules);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_has_its_rule),
		cmocka_unit_test(nops_have_the_rule_of_the_instruction_behind_them),
		cmocka_unit_test(a_step_restores_registers_saved_up_to_that_place),
		cmocka_unit_test(a_step_with_missing_inputs_fails),
		cmocka_unit_test(unreadable_code_is_doubtful),
		cmocka_unit_test(decoded_code_has_rows_too),
		cmocka_unit_test(a_leaf_has_rows_up_to_its_return),
		cmocka_unit_test(exceeded_limits_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
