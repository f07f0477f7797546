/* unwind/x86_64_insn: each instruction has its length and its effect on the frame. Cut or invalid
 * ones are reported. */
#include "unwind/x86_64_insn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct example {
	const char *bytes; /* hexadecimal */
	enum x86_64_effect effect;
	int value, reg;
};

static size_t to_bytes(const char *hex, unsigned char *buf)
{
	size_t n = 0;
	unsigned int byte;

	for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
		buf[n++] = (unsigned char)byte;
	return n;
}

/* Each example is complete, and invalid without its last byte. */
static void assert_example(const struct example *e)
{
	unsigned char bytes[32];
	size_t len = to_bytes(e->bytes, bytes);
	struct x86_64_insn i;

	if (!x86_64_insn(bytes, len, &i) || i.len != len || i.effect != e->effect ||
	    i.value != e->value || i.reg != (e->reg ? e->reg - 1 : 0xff))
		fail_msg("%s: length %u of %zu, effect %u, value %d, reg %u", e->bytes, i.len, len,
			 i.effect, i.value, i.reg);
	for (size_t cut = 0; cut < len; cut++)
		assert_false(x86_64_insn(bytes, cut, &i));
}

static void lengths_equal_the_manuals(void **state)
{
	static const struct example examples[] = {
		{"90", X86_64_NONE, 0, 0},
		{"c5f877", X86_64_NONE, 0, 0},
		{"0f1f840000000000", X86_64_NONE, 0, 0},
		{"662e0f1f840000000000", X86_64_NONE, 0, 0},
		{"48b88877665544332211", X86_64_NONE, 0, 0},
		{"b844332211", X86_64_NONE, 0, 0},
		{"66b82211", X86_64_NONE, 0, 0},
		{"48a18877665544332211", X86_64_NONE, 0, 0},
		{"f6c101", X86_64_NONE, 0, 0},
		{"f7c101000000", X86_64_NONE, 0, 0},
		{"f7d9", X86_64_NONE, 0, 0},
		{"8b042500000000", X86_64_NONE, 0, 0},
		{"8b44246c", X86_64_NONE, 0, 0},
		{"8b8524010000", X86_64_NONE, 0, 0},
		{"8b0500000000", X86_64_NONE, 0, 0},
		{"c4e37d19c001", X86_64_NONE, 0, 0},
		{"c4e2796bc0", X86_64_NONE, 0, 0},
		{"c5f9704424ff1b", X86_64_NONE, 0, 0},
		{"62f17c4811442401", X86_64_NONE, 0, 0},
		{"62f37d4825c0ff", X86_64_NONE, 0, 0},
		{"660f3a0fc108", X86_64_NONE, 0, 0},
		{"0f38f001", X86_64_NONE, 0, 0},
		{"f04d0fb11a", X86_64_NONE, 0, 0},
		{"0fa2", X86_64_NONE, 0, 0},
		{"0fc6c0e4", X86_64_NONE, 0, 0},
		{"69c010270000", X86_64_NONE, 0, 0},
		{"6669c01027", X86_64_NONE, 0, 0},
		{"d9442404", X86_64_NONE, 0, 0},
		{"f30f1efa", X86_64_NONE, 0, 0},
		{"f30f6f06", X86_64_NONE, 0, 0},
		{"64488b042500000000", X86_64_NONE, 0, 0},
		{"0f05", X86_64_NONE, 0, 0},
		{"cd80", X86_64_NONE, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		assert_example(&examples[i]);
}

/* reg: number of the register + 1; 0: none. */
static void effects_on_the_frame_are_reported(void **state)
{
	static const struct example examples[] = {
		{"55", X86_64_PUSH, 0, 6},
		{"4157", X86_64_PUSH, 0, 16},
		{"6a03", X86_64_PUSH, 3, 0},
		{"6800010000", X86_64_PUSH, 0x100, 0},
		{"ff351e265100", X86_64_PUSH, 0, 0},
		{"fff0", X86_64_PUSH, 0, 1},
		{"9c", X86_64_PUSH, 0, 0},
		{"0fa0", X86_64_PUSH, 0, 0},
		{"5d", X86_64_POP, 0, 6},
		{"415f", X86_64_POP, 0, 16},
		{"8f0424", X86_64_POP, 0, 0},
		{"8fc0", X86_64_POP, 0, 1},
		{"9d", X86_64_POP, 0, 0},
		{"4883ec30", X86_64_SP_ADD, -0x30, 0},
		{"4881c400010000", X86_64_SP_ADD, 0x100, 0},
		{"488d642408", X86_64_SP_ADD, 8, 0},
		{"488d65e8", X86_64_SP_FROM_BP, -0x18, 0},
		{"4889ec", X86_64_SP_FROM_BP, 0, 0},
		{"488be5", X86_64_SP_FROM_BP, 0, 0},
		{"4889e5", X86_64_BP_FROM_SP, 0, 0},
		{"488bec", X86_64_BP_FROM_SP, 0, 0},
		{"488d6c2440", X86_64_BP_FROM_SP, 0x40, 0},
		{"488dac2400010000", X86_64_BP_FROM_SP, 0x100, 0},
		{"c9", X86_64_LEAVE, 0, 0},
		{"4883e4f0", X86_64_SP_LOST, 0, 0},
		{"498be3", X86_64_SP_LOST, 0, 0},
		{"488d240c", X86_64_SP_LOST, 0, 0},
		{"c8100000", X86_64_SP_LOST, 0, 0},
		{"4894", X86_64_SP_LOST, 0, 0},
		{"482be0", X86_64_SP_LOST, 0, 0},
		{"488b6d00", X86_64_BP_LOST, 0, 0},
		{"ffc5", X86_64_BP_LOST, 0, 0},
		{"33ed", X86_64_BP_LOST, 0, 0},
		{"bd01000000", X86_64_BP_LOST, 0, 0},
		{"480f44e8", X86_64_BP_LOST, 0, 0},
		{"0fb6e8", X86_64_BP_LOST, 0, 0},
		{"f2480f2ce8", X86_64_BP_LOST, 0, 0},
		{"66480f7ec5", X86_64_BP_LOST, 0, 0},
		{"c4e1f97ec5", X86_64_BP_LOST, 0, 0},
		{"c4e2e0f2e8", X86_64_BP_LOST, 0, 0},
		{"c4e2d0f3c8", X86_64_BP_LOST, 0, 0},
		{"f7d5", X86_64_BP_LOST, 0, 0},
		{"480fcd", X86_64_BP_LOST, 0, 0},
		{"0f94c5", X86_64_BP_LOST, 0, 0},
		{"4885ed", X86_64_NONE, 0, 0},
		{"4883fd01", X86_64_NONE, 0, 0},
		{"483be5", X86_64_NONE, 0, 0},
		{"48896c2408", X86_64_NONE, 0, 0},
		{"4983ec08", X86_64_NONE, 0, 0},
		{"4c8be5", X86_64_NONE, 0, 0},
		{"f7c504000000", X86_64_NONE, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		assert_example(&examples[i]);
}

static void control_flow_is_reported(void **state)
{
	static const struct example examples[] = {
		{"e8fb000000", X86_64_CALL, 0xfb, 0},
		{"ff15fb000000", X86_64_CALL, 0, 0},
		{"ffd0", X86_64_CALL, 0, 0},
		{"c3", X86_64_RET, 0, 0},
		{"f3c3", X86_64_RET, 0, 0},
		{"c20800", X86_64_RET, 8, 0},
		{"ebfe", X86_64_JUMP, -2, 0},
		{"e900ffffff", X86_64_JUMP, -0x100, 0},
		{"7410", X86_64_BRANCH, 0x10, 0},
		{"0f8400010000", X86_64_BRANCH, 0x100, 0},
		{"e2fc", X86_64_BRANCH, -4, 0},
		{"ffe0", X86_64_JUMP_FAR, 0, 0},
		{"ff2500000000", X86_64_JUMP_FAR, 0, 0},
		{"3effe0", X86_64_JUMP_FAR, 0, 0},
		{"cc", X86_64_STOP, 0, 0},
		{"0f0b", X86_64_STOP, 0, 0},
		{"f4", X86_64_STOP, 0, 0},
	};
	struct x86_64_insn i;

	(void)state;
	for (size_t k = 0; k < sizeof(examples) / sizeof(*examples); k++)
		assert_example(&examples[k]);
	assert_true(x86_64_insn((const unsigned char *)"\x48\xff\xe0", 3, &i) &&
		    i.effect == X86_64_JUMP_FAR && i.tail);
	assert_true(x86_64_insn((const unsigned char *)"\xff\x25\0\0\0\0", 6, &i) && i.tail);
	assert_true(x86_64_insn((const unsigned char *)"\xff\xe0", 2, &i) && !i.tail);
	assert_true(x86_64_insn((const unsigned char *)"\xc5\xf8\x77", 3, &i) && i.is_vzeroupper);
}

static void invalid_bytes_are_no_instruction(void **state)
{
	static const char *const none[] = {"06",         "60",
					   "82c001",     "9a0000000000",
					   "ea00000000", "d4",
					   "0f04",       "0f24c0",
					   "fff8",       "ffd8",
					   "4006",       "c4e078",
					   "62f07c48",   "6666666666666666666666666666666690"};
	unsigned char bytes[32] = {0};
	struct x86_64_insn i;

	(void)state;
	for (size_t k = 0; k < sizeof(none) / sizeof(*none); k++) {
		size_t len = to_bytes(none[k], bytes);

		if (x86_64_insn(bytes, len, &i))
			fail_msg("%s is %u bytes", none[k], i.len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths_equal_the_manuals),
		cmocka_unit_test(effects_on_the_frame_are_reported),
		cmocka_unit_test(control_flow_is_reported),
		cmocka_unit_test(invalid_bytes_are_no_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
