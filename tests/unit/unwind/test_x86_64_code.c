/* unwind/x86_64_code: code alone locates a frame's caller, or reports that it does not. */
#include "unwind/x86_64_code.h"

#include "tests/unit/unwind_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CODE(...) (const unsigned char[]){__VA_ARGS__}, sizeof((const unsigned char[]){__VA_ARGS__})

/* The rule of an epilogue at the beginning of 0x100 bytes, 0x40 into the function. "no": no
 * epilogue. */
static const char *epilogue(const unsigned char *code, size_t len)
{
	struct unwind_rule rule;

	return x86_64_epilogue(code, len, 0x40, 0x100, &rule, &(unsigned int){0}) ? rule_text(&rule)
										  : "no";
}

static void epilogues_are_known_at_each_instruction(void **state)
{
	(void)state;
	for (size_t i = 0; i < METHOD_RULES; i++)
		if (method_rules[i].offset >= 0x15)
			assert_string_equal(epilogue(method_code + method_rules[i].offset,
						     sizeof(method_code) - method_rules[i].offset),
					    method_rules[i].rule);
	assert_string_equal(
		epilogue(CODE(0x48, 0x8d, 0x65, 0xe8, 0x5b, 0x41, 0x5e, 0x41, 0x5f, 0x5d, 0xc3)),
		"bp+16 fp-16");
	assert_string_equal(epilogue(CODE(0xc9, 0xc3)), "bp+16 fp-16");
	assert_string_equal(epilogue(CODE(0x48, 0x8b, 0xe5, 0x5d, 0xc3)), "bp+16 fp-16");
	assert_string_equal(epilogue(CODE(0xf3, 0xc3)), "sp+8 same");
}

static void a_tail_call_ends_a_frame(void **state)
{
	(void)state;
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0x00, 0x10, 0, 0)),
			    "sp+16 fp-16"); /* out of the function, upwards */
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0x00, 0xf0, 0xff, 0xff)),
			    "sp+16 fp-16"); /* downwards */
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0xba, 0xff, 0xff, 0xff)),
			    "sp+16 fp-16"); /* to itself */
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0xbb, 0xff, 0xff, 0xff)),
			    "no");                                            /* one byte behind */
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0xf9, 0, 0, 0)), "no"); /* to its last byte */
	assert_string_equal(epilogue(CODE(0x5d, 0xe9, 0xfa, 0, 0, 0)), "sp+16 fp-16");
	assert_string_equal(epilogue(CODE(0x48, 0xff, 0xe0)), "sp+8 same");
	assert_string_equal(epilogue(CODE(0x48, 0xff, 0x25, 0, 0, 0, 0)), "sp+8 same");
	assert_string_equal(epilogue(CODE(0x5d, 0xff, 0x25, 0, 0, 0, 0)), "sp+16 fp-16");
	assert_string_equal(epilogue(CODE(0xff, 0x60, 0x18)), "sp+8 same");
	assert_string_equal(epilogue(CODE(0xff, 0xe0)), "no"); /* of a switch */
}

static void other_instructions_are_no_epilogue(void **state)
{
	unsigned char pops[64];

	(void)state;
	assert_string_equal(epilogue(CODE(0x33, 0xc0, 0xc3)), "no");
	assert_string_equal(epilogue(CODE(0x5d)), "no");             /* cut off */
	assert_string_equal(epilogue(CODE(0x5d, 0x5d, 0xc3)), "no"); /* rbp twice */
	assert_string_equal(epilogue(CODE(0x5c, 0xc3)), "no");       /* pop rsp */
	assert_string_equal(epilogue(CODE(0x5d, 0xc9, 0xc3)), "no");
	assert_string_equal(epilogue(CODE(0x5d, 0x48, 0x8b, 0xe5, 0xc3)), "no");
	assert_string_equal(epilogue(CODE(0xe8, 0, 0, 0, 0, 0xc3)), "no");
	memset(pops, 0x5b, sizeof(pops));
	assert_string_equal(epilogue(pops, sizeof(pops)), "no");
}

struct seen {
	const char *expected; /* "OFFSET RULE;" of each instruction */
	char text[1024];
};

static int take_row(void *ctx, size_t offset, const struct unwind_rule *rule)
{
	struct seen *s = ctx;

	snprintf(s->text + strlen(s->text), sizeof(s->text) - strlen(s->text), "%zx %s;", offset,
		 rule_text(rule));
	return 0;
}

static void assert_followed(const unsigned char *code, size_t len, bool many, const char *expected)
{
	struct seen s = {.text = ""};

	assert_int_equal(x86_64_follow(code, len, many, take_row, &s), 0);
	assert_string_equal(s.text, expected);
}

static void code_is_decoded_from_its_start(void **state)
{
	char expected[1024] = "";

	(void)state;
	for (size_t i = 0; i < METHOD_RULES; i++)
		sprintf(expected + strlen(expected), "%x %s;", method_rules[i].offset,
			method_rules[i].rule);
	assert_followed(method_code, sizeof(method_code), false, expected);
	/* push rbp; mov rbp, rsp; and rsp, -32; push r10; lea rsp, [rbp]; pop rbp; ret */
	assert_followed(CODE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x41, 0x52, 0x48, 0x8d,
			     0x65, 0, 0x5d, 0xc3),
			false,
			"0 sp+8 same;1 sp+16 fp-16;4 sp+16 fp-16;8 bp+16 fp-16;a bp+16 fp-16;e "
			"sp+16 fp-16;f sp+8 same;");
	assert_followed(CODE(0x55, 0x48, 0x89, 0xe5, 0xc9, 0xc3), false,
			"0 sp+8 same;1 sp+16 fp-16;4 sp+16 fp-16;5 sp+8 same;");
}

/* test; je 0x8; push rax; jmp rax; 0x8: ret; bytes in between are unreachable */
static void all_branches_are_decoded(void **state)
{
	(void)state;
	assert_followed(CODE(0x85, 0xc0, 0x74, 0x04, 0x50, 0xff, 0xe0, 0x90, 0xc3), false,
			"0 sp+8 same;2 sp+8 same;4 sp+8 same;5 sp+16 same;8 sp+8 same;");
	/* One path has pushed, the other has not: the state at 6, on both paths, is unknown. */
	assert_followed(CODE(0x74, 0x01, 0x50, 0x90, 0xc3), false,
			"0 sp+8 same;2 sp+8 same;3 none;4 none;");
	/* A loop that pushes. */
	assert_followed(CODE(0x50, 0xeb, 0xfd), false, "0 none;1 none;");
	/* The paths differ in the frame pointer's place, but not in the stack pointer. */
	assert_followed(CODE(0x74, 0x03, 0x55, 0xeb, 0x01, 0x50, 0xc3), false,
			"0 sp+8 same;2 sp+8 same;3 sp+16 fp-16;5 sp+8 same;6 sp+16 same;");
}

static void code_behind_a_removed_frame_is_unknown(void **state)
{
	(void)state;
	assert_followed(CODE(0x48, 0x83, 0xe4, 0xf0, 0x90), false, "0 sp+8 same;4 none;");
	assert_followed(CODE(0x58, 0x90), false, "0 sp+8 same;1 none;"); /* the return address */
	assert_followed(CODE(0x5c, 0x90), false, "0 sp+8 same;1 none;");
	assert_followed(CODE(0x33, 0xed, 0x55, 0x5d, 0xc3), false,
			"0 sp+8 same;2 sp+8 lost;3 sp+16 lost;4 sp+8 lost;");
	assert_followed(CODE(0xe8, 0, 0, 0, 0, 0x58, 0xc3), false,
			"0 sp+8 same;5 sp+16 same;6 sp+8 same;"); /* its own address */
	assert_followed(CODE(0x48, 0x8b, 0xe5, 0x90), false, "0 sp+8 same;3 none;");
	assert_followed(CODE(0x06, 0x90), false, "0 sp+8 same;"); /* no instruction */
}

/* Thunks of an image: push 3; push [rip]; jmp [rip]; int3; then the same again. */
static void a_sequence_of_stubs_is_decoded_one_by_one(void **state)
{
	static const unsigned char thunks[] = {0x6a, 3, 0xff, 0x35, 0, 0,    0,    0,    0xff,
					       0x25, 0, 0,    0,    0, 0xcc, 0xcc, 0x33, 0xc0,
					       0x6a, 3, 0xff, 0x25, 0, 0,    0,    0};

	(void)state;
	assert_followed(
		thunks, sizeof(thunks), true,
		"0 sp+8 same;2 sp+16 same;8 sp+24 same;10 sp+8 same;12 sp+8 same;14 sp+16 same;");
	assert_followed(thunks, sizeof(thunks), false, "0 sp+8 same;2 sp+16 same;8 sp+24 same;");
}

static int stop(void *ctx, size_t offset, const struct unwind_rule *rule)
{
	(void)ctx, (void)offset, (void)rule;
	return 5;
}

static void an_error_of_the_caller_ends_it(void **state)
{
	unsigned char *large = calloc(1, X86_64_CODE_BYTES_MAX + 1);

	(void)state;
	assert_int_equal(x86_64_follow(CODE(0x90), false, stop, NULL), 5);
	assert_int_equal(x86_64_follow(large, X86_64_CODE_BYTES_MAX + 1, false, stop, NULL),
			 -E2BIG);
	assert_int_equal(x86_64_follow(large, 0, false, stop, NULL), 0);
	free(large);
}

static const char *ahead(const unsigned char *code, size_t len)
{
	struct unwind_rule rule;

	return x86_64_ahead(code, len, &rule) ? rule_text(&rule) : "no";
}

static void a_leaf_is_known_by_its_returns(void **state)
{
	(void)state;
	/* mov [rdi], rsi; shr rdi, 11; cmp byte [rdi], 255; jne 1f; ret; 1: mov byte [rdi], 255;
	 * ret */
	assert_string_equal(ahead(CODE(0x48, 0x89, 0x37, 0x48, 0xc1, 0xef, 0x0b, 0x80, 0x3f, 0xff,
				       0x75, 1, 0xc3, 0xc6, 7, 0xff, 0xc3)),
			    "sp+8 same");
	assert_string_equal(ahead(CODE(0xe8, 0, 1, 0, 0, 0x58, 0x5d, 0xc3)), "sp+24 fp-16");
	assert_string_equal(ahead(CODE(0x50, 0x58, 0xc3)), "sp+8 same");
	assert_string_equal(ahead(CODE(0xc9, 0xc3)), "bp+16 fp-16");
	assert_string_equal(ahead(CODE(0xeb, 1, 0xcc, 0xc3)), "sp+8 same");
	assert_string_equal(ahead(CODE(0x74, 1, 0xcc, 0xc3)), "sp+8 same"); /* one path ends */
}

static void stubs_without_return_or_of_two_kinds_are_unknown(void **state)
{
	unsigned char nops[1024];

	(void)state;
	assert_string_equal(ahead(CODE(0x74, 1, 0x58, 0xc3)), "no");
	assert_string_equal(ahead(CODE(0xff, 0xe0)), "no");
	assert_string_equal(ahead(CODE(0xe9, 0, 1, 0, 0)), "no");
	assert_string_equal(ahead(CODE(0x90)), "no");
	assert_string_equal(ahead(CODE(0xcc)), "no");
	assert_string_equal(ahead(CODE(0xeb, 0xfe)), "no");
	assert_string_equal(ahead(CODE(0x55, 0x5d, 0xc3)),
			    "no"); /* the method of this frame pointer */
	assert_string_equal(ahead(CODE(0x48, 0x83, 0xe4, 0xf0, 0xc3)), "no");
	memset(nops, 0x90, sizeof(nops));
	nops[sizeof(nops) - 1] = 0xc3;
	assert_string_equal(ahead(nops, sizeof(nops)), "no");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(epilogues_are_known_at_each_instruction),
		cmocka_unit_test(a_tail_call_ends_a_frame),
		cmocka_unit_test(other_instructions_are_no_epilogue),
		cmocka_unit_test(code_is_decoded_from_its_start),
		cmocka_unit_test(all_branches_are_decoded),
		cmocka_unit_test(code_behind_a_removed_frame_is_unknown),
		cmocka_unit_test(a_sequence_of_stubs_is_decoded_one_by_one),
		cmocka_unit_test(an_error_of_the_caller_ends_it),
		cmocka_unit_test(a_leaf_is_known_by_its_returns),
		cmocka_unit_test(stubs_without_return_or_of_two_kinds_are_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
