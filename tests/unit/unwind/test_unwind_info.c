/* unwind/unwind_info: the effect of a prologue is known at each of its instructions. Impossible
 * info is reported. */
#include "unwind/unwind_info.h"

#include "tests/unit/unwind_check.h"

#include <errno.h>

static struct unwind_info read_info(const unsigned char *data, size_t len)
{
	struct unwind_info info = {.nops = 0};
	uint32_t chain = 1;

	assert_int_equal(unwind_info_add(&info, data, len, &chain), 0);
	assert_int_equal(chain, 0);
	return info;
}

#define INFO(...)                                       \
	read_info((const unsigned char[]){__VA_ARGS__}, \
		  sizeof((const unsigned char[]){__VA_ARGS__}))

static void assert_at(const struct unwind_info *info, uint64_t offset, const char *text)
{
	struct unwind_rule rule;

	assert_int_equal(unwind_info_rule(info, offset, &rule), 0);
	assert_rule(&rule, text);
}

static void a_prologue_has_rules_at_each_instruction(void **state)
{
	struct unwind_info info = read_info(method_info, sizeof(method_info));
	struct unwind_info_save saves[UNWIND_INFO_SAVES_MAX];
	struct unwind_rule rule;
	size_t n;

	(void)state;
	for (size_t i = 0; i < METHOD_RULES && method_rules[i].offset < 0x1d; i++)
		assert_at(&info, method_rules[i].offset, method_rules[i].rule);
	assert_int_equal(unwind_info_rule(&info, 8, &rule), 0);
	assert_true(rule.saves);
	assert_int_equal(unwind_info_rule(&info, 1, &rule), 0);
	assert_false(rule.saves);
	assert_int_equal(unwind_info_saves(&info, saves, &n), 0);
	assert_int_equal(n, 2);
	assert_true(saves[0].reg == 3 && saves[0].at == -32 && saves[0].offset == 4);
	assert_true(saves[1].reg == 15 && saves[1].at == -24 && saves[1].offset == 3);
}

static void a_leaf_has_only_its_return_address(void **state)
{
	struct unwind_info info = INFO(1, 0, 0, 0);

	(void)state;
	assert_at(&info, 0, "sp+8 same");
	assert_at(&info, 100, "sp+8 same");
}

/* push rbp; sub rsp, 0x20; lea rbp, [rsp + 0x20]: with localloc the stack pointer cannot be the
 * base. */
static void a_frame_register_is_used_after_it_is_set(void **state)
{
	struct unwind_info info = INFO(1, 10, 3, 0x25, 10, 3, 5, 0x32, 1, 0x50);

	(void)state;
	assert_at(&info, 9, "sp+48 fp-16");
	assert_at(&info, 10, "bp+16 fp-16");
	/* far from the stack pointer: SET_FPREG_LARGE, 0x20 * 16, and both forms of ALLOC_LARGE */
	info = INFO(1, 20, 6, 0xf5, 20, 0xb, 0x20, 0, 0, 0, 8, 1, 0x40, 0, 1, 0x50);
	assert_at(&info, 19, "sp+528 fp-16");
	assert_at(&info, 20, "bp+16 fp-16");
	info = INFO(1, 20, 4, 0, 8, 0x11, 0, 0, 2, 0, 1, 0x50);
	assert_at(&info, 20, "sp+131088 fp-16");
}

/* Methods that replace others on the stack store registers by mov. */
static void stored_registers_are_where_they_are_stored(void **state)
{
	struct unwind_info info =
		INFO(1, 12, 7, 0, 12, 0x34, 2, 0, 8, 0xf5, 8, 0, 0, 0, 4, 0x32, 1, 0x50);
	struct unwind_info_save saves[UNWIND_INFO_SAVES_MAX];
	size_t n;

	(void)state;
	assert_int_equal(info.nops, 4);
	assert_int_equal(unwind_info_saves(&info, saves, &n), 0);
	assert_int_equal(n, 2);
	assert_true(saves[0].reg == 3 && saves[0].at == 16 - 48 && saves[0].offset == 12);
	assert_true(saves[1].reg == 15 && saves[1].at == 8 - 48 && saves[1].offset == 8);
}

static void an_info_can_continue_another(void **state)
{
	static const unsigned char part[] = {0x21, 4, 1, 0, 4, 0x02, 0,    0,    1,    2,
					     3,    4, 5, 6, 7, 8,    0x44, 0x33, 0x22, 0x11};
	struct unwind_info info = {.nops = 0};
	uint32_t chain = 0;

	(void)state;
	assert_int_equal(unwind_info_add(&info, part, sizeof(part), &chain), 0);
	assert_int_equal(chain, 0x11223344);
	assert_int_equal(unwind_info_add(&info, method_info, sizeof(method_info), &chain), 0);
	assert_int_equal(chain, 0);
	assert_at(&info, 0, "sp+80 fp-16");
	assert_at(&info, 4, "sp+88 fp-16");
}

static void impossible_values_are_reported(void **state)
{
	static const struct {
		int error;
		unsigned char len, data[16];
	} wrong[] = {
		{-EBADMSG, 3, {1, 0, 0}},
		{-EBADMSG, 5, {1, 0, 1, 0, 1}}, /* cut off */
		{-ENOTSUP, 4, {2, 0, 0, 0}},
		{-ENOTSUP, 6, {1, 0, 1, 0, 1, 0x0a}}, /* a machine frame */
		{-ENOTSUP, 6, {1, 0, 1, 0, 1, 0x06}},
		{-EBADMSG, 6, {1, 0, 1, 0, 1, 0x21}},                 /* an unknown size */
		{-EBADMSG, 8, {1, 0, 1, 0, 1, 0x01, 1, 0}},           /* larger than the codes */
		{-EBADMSG, 10, {1, 0, 3, 0, 1, 0x11, 0, 0, 0, 0x80}}, /* gigabytes */
		{-EBADMSG, 10, {1, 0, 3, 0x15, 1, 0x0b, 0, 0, 0, 0}},
		{-EBADMSG, 12, {0x21, 0, 0, 0}}, /* continues nothing */
	};
	struct unwind_info info;
	uint32_t chain = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		info = (struct unwind_info){.nops = 0};
		if (unwind_info_add(&info, wrong[i].data, wrong[i].len, &chain) != wrong[i].error)
			fail_msg("example %zu", i);
	}
	info = (struct unwind_info){.nops = 0};
	for (int i = 0; i < UNWIND_INFO_CHAIN_MAX; i++)
		assert_int_equal(
			unwind_info_add(&info, (const unsigned char[]){1, 0, 0, 0}, 4, &chain), 0);
	assert_int_equal(unwind_info_add(&info, (const unsigned char[]){1, 0, 0, 0}, 4, &chain),
			 -E2BIG);
}

static void exceeded_limits_are_reported(void **state)
{
	unsigned char data[4 + 2 * 255] = {1, 255, UNWIND_INFO_OPS_MAX + 1, 0};
	struct unwind_info_save saves[UNWIND_INFO_SAVES_MAX];
	struct unwind_info info = {.nops = 0};
	struct unwind_rule rule;
	uint32_t chain;
	size_t n;

	(void)state;
	for (int i = 0; i <= UNWIND_INFO_OPS_MAX; i++)
		data[4 + 2 * i + 1] = 0x30; /* push rbx, repeatedly */
	assert_int_equal(unwind_info_add(&info, data, sizeof(data), &chain), -E2BIG);
	data[2] = UNWIND_INFO_SAVES_MAX + 1;
	info = (struct unwind_info){.nops = 0};
	assert_int_equal(unwind_info_add(&info, data, sizeof(data), &chain), 0);
	assert_int_equal(unwind_info_saves(&info, saves, &n), -EBADMSG);
	/* The stack pointer is not a saved register. */
	info = INFO(1, 0, 1, 0, 1, 0x40);
	assert_int_equal(unwind_info_rule(&info, 10, &rule), -EBADMSG);
	/* Frames of maximal size. */
	info = INFO(1, 0, 6, 0, 1, 0x11, 0, 0, 0, 0x40, 1, 0x11, 0, 0, 0, 0x40);
	assert_int_equal(unwind_info_rule(&info, 10, &rule), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_prologue_has_rules_at_each_instruction),
		cmocka_unit_test(a_leaf_has_only_its_return_address),
		cmocka_unit_test(a_frame_register_is_used_after_it_is_set),
		cmocka_unit_test(stored_registers_are_where_they_are_stored),
		cmocka_unit_test(an_info_can_continue_another),
		cmocka_unit_test(impossible_values_are_reported),
		cmocka_unit_test(exceeded_limits_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
