/* One stack, frame by frame, through code with known rules. */
#include "base/cleanup.h"
#include "unwind/walk.h"
#include "unwind/walk_previous.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define STACK_AT UINT64_C(0x7ffd00000000)
#define WORDS 4096

/* Functions of 0x100 bytes each, from 0x1000 on; no code follows CODE_END. */
enum function {
	START,
	FRAMELESS,
	SAVES,
	WITH_FP,
	NO_RULE,
	SIGNAL,
	UNKNOWN,
	DRAP,
	ODD,
	AT_RET,
	LEAF,
	TO_STUB,
	STUB,
	IN_STUB,
	FUNCTIONS
};
#define AT(function) (0x1000 + (uint64_t)(function)*0x100)
#define CODE_END AT(FUNCTIONS)

static uint64_t stack[WORDS];
static struct unwind_memory memory;
static struct unwind_regs regs;
static int steps, looked_up;

static const struct unwind_rule rules[FUNCTIONS] = {
	[START] = {.kind = UNWIND_END},
	[FRAMELESS] = {.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = 24},
	[SAVES] = {.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = 16, .saves = 1},
	[WITH_FP] = {.kind = UNWIND_PLAIN,
		     .cfa_reg = ARCH_FP,
		     .cfa_add = 16,
		     .fp = UNWIND_FP_AT,
		     .fp_at = -16},
	[NO_RULE] = {.kind = UNWIND_NONE},
	[SIGNAL] = {.kind = UNWIND_FULL},
	[DRAP] = {.kind = UNWIND_PLAIN, .cfa_reg = ARCH_BX, .cfa_add = 0},
	[AT_RET] = {.kind = UNWIND_PLAIN,
		    .cfa_reg = ARCH_SP,
		    .cfa_add = 8,
		    .fp = UNWIND_FP_AT,
		    .fp_at = -16},
	[LEAF] = {.kind = UNWIND_AHEAD, .cfa_reg = ARCH_SP, .cfa_add = 16},
	[TO_STUB] = {.kind = UNWIND_HIJACK_NEXT}, /* all bytes equal the last byte */
	[STUB] = {.kind = UNWIND_HIJACK, .cfa_reg = ARCH_SP},
	[IN_STUB] = {.kind = UNWIND_HIJACK, .cfa_reg = ARCH_SP, .cfa_add = 24},
	[ODD] = {.kind = UNWIND_PLAIN, .cfa_reg = ARCH_SP, .cfa_add = 0},
};

static int rule_at(void *ctx, uint64_t addr, struct unwind_rule *ret_rule)
{
	(void)ctx;
	looked_up++;
	if (addr < AT(START) || addr >= CODE_END)
		return -ENOENT;
	if ((addr - 0x1000) / 0x100 == UNKNOWN)
		return -EAGAIN;
	*ret_rule = rules[(addr - 0x1000) / 0x100];
	return 0;
}

/* A signal frame has the interrupted ip and sp in its first two words; other frames keep rbx. */
static int step_at(void *ctx, uint64_t addr, struct unwind_regs *r, const struct unwind_memory *m,
		   bool *ret_signal)
{
	struct unwind_rule rule = {0};
	uint64_t ip, sp = r->v[ARCH_SP], cfa;

	steps++;
	assert_int_equal(rule_at(ctx, addr, &rule), 0);
	*ret_signal = rule.kind == UNWIND_FULL;
	if (*ret_signal) {
		if (!unwind_memory_word(m, sp, &ip) || !unwind_memory_word(m, sp + 8, &sp))
			return -ENODATA;
		r->v[ARCH_IP] = ip;
		r->v[ARCH_SP] = sp;
		return 0;
	}
	if (!(r->known >> rule.cfa_reg & 1))
		return -EBADMSG;
	cfa = r->v[rule.cfa_reg] + (uint64_t)(int64_t)rule.cfa_add;
	if (!unwind_memory_word(m, cfa - 8, &ip) ||
	    (rule.fp == UNWIND_FP_AT && !unwind_memory_word(m, cfa - 16, &r->v[ARCH_FP])))
		return -ENODATA;
	r->v[ARCH_SP] = cfa;
	r->v[ARCH_IP] = ip;
	return 0;
}

static int is_return(void *ctx, uint64_t addr)
{
	(void)ctx;
	return addr & 1; /* the default of the tests */
}

/* The return address of a place before it was hijacked. */
static uint64_t kept_at, kept_ip;

static int hijacked(void *ctx, uint64_t at, const struct unwind_memory *m, uint64_t *ret_ip)
{
	(void)ctx;
	(void)m;
	if (!kept_at || at != kept_at)
		return -ENOENT;
	*ret_ip = kept_ip;
	return 0;
}

static const struct walk_source source = {NULL, rule_at, step_at, is_return, hijacked};

static int begin(void **state)
{
	(void)state;
	memset(stack, 0, sizeof(stack));
	memory =
		(struct unwind_memory){STACK_AT, (const unsigned char *)stack, sizeof(stack), NULL};
	regs = (struct unwind_regs){.known = (1u << ARCH_REGS) - 1};
	regs.v[ARCH_SP] = STACK_AT;
	steps = 0;
	kept_at = 0;
	return 0;
}

static uint64_t word_at(unsigned i)
{
	return STACK_AT + 8 * (uint64_t)i;
}

static void check(const struct walk *w, enum walk_end end, const uint64_t *ips, size_t n)
{
	assert_string_equal(walk_end_text(w->end), walk_end_text(end));
	assert_int_equal(w->n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(w->frames[i].ip, ips[i]);
}

static void walk_with(struct walk *w, enum walk_end end, const uint64_t *chain, size_t nchain,
		      const uint64_t *ips, size_t n)
{
	assert_int_equal(walk_stack(w, &source, &regs, &memory, chain, nchain), 0);
	check(w, end, ips, n);
}

#define WALK(w, end, ...)                                                       \
	do {                                                                    \
		const uint64_t ips_[] = {__VA_ARGS__};                          \
		walk_with(w, end, NULL, 0, ips_, sizeof(ips_) / sizeof(*ips_)); \
	} while (0)

/* FRAMELESS, called by WITH_FP, called by START. */
static void lay_three(void)
{
	regs.v[ARCH_IP] = AT(FRAMELESS) + 4;
	regs.v[ARCH_FP] = word_at(10);
	stack[2] = AT(WITH_FP) + 5;
	stack[10] = 0;
	stack[11] = AT(START) + 3;
}

static void test_rules_lead_to_the_start_of_the_thread(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].at, word_at(2));
	assert_int_equal(w.frames[2].how, WALK_RULE);
	assert_true(w.frames[0].exact);
	assert_false(w.frames[1].exact);
	assert_false(w.full);
	walk_free(&w);
}

static void test_a_call_at_the_end_of_a_function_belongs_to_it(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(WITH_FP + 1); /* start of the next one */
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP + 1), AT(START) + 3);
	walk_free(&w);
}

/* State of a thread that was read from outside. */
static void test_an_unknown_frame_pointer_is_searched(void **state)
{
	struct walk w = {0};

	(void)state;
	regs = (struct unwind_regs){.known = 1u << ARCH_SP | 1u << ARCH_IP};
	regs.v[ARCH_SP] = STACK_AT;
	regs.v[ARCH_IP] = AT(FRAMELESS) + 4;
	stack[2] = AT(WITH_FP) + 5;
	stack[4] = word_at(3); /* points down the stack */
	stack[5] = AT(WITH_FP) + 1;
	stack[6] = word_at(12); /* points to no return address */
	stack[7] = AT(WITH_FP) + 1;
	stack[8] = word_at(20); /* the correct one */
	stack[9] = AT(WITH_FP) + 7;
	stack[20] = word_at(30);
	stack[21] = AT(WITH_FP) + 9;
	stack[31] = AT(START) + 3;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(WITH_FP) + 7, AT(WITH_FP) + 9,
	     AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_RULE);
	assert_int_equal(w.frames[2].how, WALK_GUESS);
	assert_int_equal(w.frames[3].how, WALK_RULE);
	/* The first function of a thread may have a frame pointer that leads nowhere. */
	memset(stack + 3, 0, sizeof(stack) - 3 * sizeof(*stack));
	stack[9] = AT(FRAMELESS) + 7;
	stack[12] = AT(START) + 3;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(FRAMELESS) + 7, AT(START) + 3);
	assert_int_equal(w.frames[2].how, WALK_GUESS);
	/* Sometimes none is found. */
	stack[12] = 0;
	WALK(&w, WALK_DAMAGED, AT(FRAMELESS) + 4, AT(WITH_FP) + 5);
	walk_free(&w);
}

static void test_the_edge_of_the_copy_is_reported(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	memory.len = 11 * 8;
	WALK(&w, WALK_COPY_END, AT(FRAMELESS) + 4, AT(WITH_FP) + 5);
	walk_free(&w);
}

static void test_the_kernels_chain_carries_on_at_the_same_frame(void **state)
{
	const uint64_t chain[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 7, AT(WITH_FP) + 9,
				  AT(START) + 1, AT(START) + 9};
	const uint64_t ips[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(WITH_FP) + 7,
				AT(WITH_FP) + 9, AT(START) + 1};
	struct walk w = {0};

	(void)state;
	lay_three();
	memory.len = 11 * 8; /* the frame pointer is inside, the rest is not */
	walk_with(&w, WALK_START, chain, 5, ips, 5);
	assert_int_equal(w.frames[2].how, WALK_SPLICE);
	assert_int_equal(w.edge, WALK_COPY_END);
	walk_free(&w);
}

static void test_the_caller_of_a_spliced_frame_without_frame_pointer_is_guessed(void **state)
{
	const uint64_t chain[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 7, AT(FRAMELESS) + 9,
				  AT(WITH_FP) + 9, AT(START) + 1};
	const uint64_t ips[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(WITH_FP) + 7,
				AT(FRAMELESS) + 9, AT(WITH_FP) + 9, AT(START) + 1};
	static const uint8_t how[] = {WALK_RULE,   WALK_RULE,  WALK_SPLICE,
				      WALK_SPLICE, WALK_GUESS, WALK_SPLICE};
	struct walk w = {0};

	(void)state;
	lay_three();
	memory.len = 11 * 8;
	walk_with(&w, WALK_START, chain, 5, ips, 6);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(w.frames[i].how, how[i]);
	walk_free(&w);
}

static void test_a_chain_of_other_frames_is_not_joined(void **state)
{
	const uint64_t chain[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 7, AT(START) + 1};
	const uint64_t ips[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(FRAMELESS) + 6};
	struct walk w = {0};

	(void)state;
	/* The copy ends in a frame that keeps no frame pointer. The kernel read its caller's
	 * caller. */
	lay_three();
	stack[11] = AT(FRAMELESS) + 6;
	stack[10] = word_at(100);
	memory.len = 14 * 8;
	walk_with(&w, WALK_COPY_END, chain, 3, ips, 3);
	/* A stack read in another way may differ from the present one. */
	stack[11] = AT(WITH_FP) + 1;
	walk_with(&w, WALK_COPY_END, chain, 3,
		  (const uint64_t[]){AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(WITH_FP) + 1}, 3);
	walk_free(&w);
}

static void test_a_spliced_chain_that_leaves_code_is_truncated(void **state)
{
	const uint64_t chain[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 7, 0x10, AT(START) + 1};
	const uint64_t ips[] = {AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(WITH_FP) + 7};
	struct walk w = {0};

	(void)state;
	lay_three();
	memory.len = 11 * 8;
	walk_with(&w, WALK_COPY_END, chain, 4, ips, 3);
	walk_free(&w);
}

static void test_code_without_rules_is_left_by_its_frame_pointer(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	regs.v[ARCH_IP] = AT(NO_RULE) + 4;
	stack[11] = AT(START) + 3;
	WALK(&w, WALK_START, AT(NO_RULE) + 4, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_FRAME_POINTER);
	walk_free(&w);
}

static void test_without_a_frame_pointer_a_return_address_is_guessed_and_marked(void **state)
{
	struct walk w = {0};

	(void)state;
	regs.v[ARCH_IP] = AT(NO_RULE) + 4;
	regs.v[ARCH_FP] = 12345;
	stack[3] = AT(WITH_FP) + 4; /* code, but not directly after a call */
	stack[4] = 77;
	stack[5] = AT(START) + 3;
	WALK(&w, WALK_START, AT(NO_RULE) + 4, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	stack[5] = 0;
	WALK(&w, WALK_NO_RULE, AT(NO_RULE) + 4);
	walk_free(&w);
}

static void test_a_signal_leads_to_the_interrupted_frame(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	regs.v[ARCH_IP] = AT(SIGNAL);
	regs.v[ARCH_SP] = word_at(200);
	stack[200] = AT(FRAMELESS); /* its first instruction, not the function before it */
	stack[201] = word_at(0);
	WALK(&w, WALK_START, AT(SIGNAL), AT(FRAMELESS), AT(WITH_FP) + 5, AT(START) + 3);
	assert_true(w.frames[1].exact);
	/* Its handler was to return to the first instruction of the function that ends it. */
	regs.v[ARCH_IP] = AT(AT_RET);
	regs.v[ARCH_SP] = word_at(199);
	stack[199] = AT(SIGNAL) + 1;
	WALK(&w, WALK_START, AT(AT_RET), AT(SIGNAL) + 1, AT(FRAMELESS), AT(WITH_FP) + 5,
	     AT(START) + 3);
	assert_true(w.frames[1].exact);
	assert_false(w.frames[3].exact);
	regs.v[ARCH_IP] = AT(SIGNAL);
	regs.v[ARCH_SP] = word_at(200);
	/* A signal frame that points to itself ends the walk. */
	stack[200] = AT(SIGNAL);
	stack[201] = word_at(200);
	assert_int_equal(walk_stack(&w, &source, &regs, &memory, NULL, 0), 0);
	assert_int_equal(w.end, WALK_NO_PROGRESS);
	assert_true(w.n <= WALK_JUMPS_MAX + 2);
	walk_free(&w);
}

static void test_only_full_steps_restore_other_registers(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[11] = AT(DRAP) + 2;
	stack[10] = 5;
	regs.v[ARCH_BX] = word_at(20);
	stack[19] = AT(START) + 8;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(DRAP) + 2, AT(START) + 8);
	assert_false(w.full); /* callees that save nothing keep its value */
	regs.known &= ~(1u << ARCH_BX);
	WALK(&w, WALK_DAMAGED, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(DRAP) + 2);
	assert_true(w.full);
	assert_int_not_equal(steps, 0);
	walk_free(&w);
}

static void test_hostile_stacks_end(void **state)
{
	struct walk w = {0};

	(void)state;
	/* A frame of size 0. */
	regs.v[ARCH_IP] = AT(ODD) + 1;
	WALK(&w, WALK_NO_PROGRESS, AT(ODD) + 1);
	/* Frame pointers in a circle. */
	regs.v[ARCH_IP] = AT(WITH_FP) + 1;
	regs.v[ARCH_FP] = word_at(4);
	stack[4] = word_at(4);
	stack[5] = AT(WITH_FP) + 1;
	WALK(&w, WALK_NO_PROGRESS, AT(WITH_FP) + 1, AT(WITH_FP) + 1);
	/* A stack pointer at the end of the address space. */
	regs.v[ARCH_SP] = UINT64_MAX - 8;
	regs.v[ARCH_IP] = AT(FRAMELESS) + 1;
	memory.start = UINT64_MAX - 8;
	assert_int_equal(walk_stack(&w, &source, &regs, &memory, NULL, 0), 0);
	assert_int_not_equal(w.end, WALK_START);
	walk_free(&w);
}

static void test_epilogues_give_registers_back(void **state)
{
	struct walk w = {0};

	(void)state;
	/* At its ret the CFA is sp + 8, and the frame pointer was saved below. */
	regs.v[ARCH_IP] = AT(AT_RET) + 4;
	regs.v[ARCH_FP] = word_at(10);
	stack[0] = AT(WITH_FP) + 5;
	stack[11] = AT(START) + 3;
	WALK(&w, WALK_START, AT(AT_RET) + 4, AT(WITH_FP) + 5, AT(START) + 3);
	walk_free(&w);
}

static void test_a_system_call_at_the_end_of_a_function_is_that_functions(void **state)
{
	struct walk w = {.in_kernel = true};

	(void)state;
	lay_three();
	regs.v[ARCH_IP] = AT(NO_RULE); /* after the last instruction of the previous function */
	regs.v[ARCH_FP] = word_at(0);
	stack[0] = 0;
	stack[1] = AT(START) + 3;
	WALK(&w, WALK_START, AT(NO_RULE), AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_RULE);
	walk_free(&w);
}

static void test_a_stack_has_at_most_the_maximum_of_frames(void **state)
{
	struct walk w = {.max = 100};

	(void)state;
	regs.v[ARCH_IP] = AT(FRAMELESS);
	for (unsigned i = 2; i < WORDS; i += 3)
		stack[i] = AT(FRAMELESS) + 5;
	assert_int_equal(walk_stack(&w, &source, &regs, &memory, NULL, 0), 0);
	assert_int_equal(w.end, WALK_FRAME_LIMIT);
	assert_int_equal(w.n, 100);
	walk_free(&w);
}

static void test_data_makes_no_frame(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[11] = CODE_END + 5;
	WALK(&w, WALK_NOT_CODE, AT(FRAMELESS) + 4, AT(WITH_FP) + 5);
	/* A call to an invalid address has a caller. */
	lay_three();
	regs.v[ARCH_IP] = 0;
	stack[0] = AT(WITH_FP) + 5;
	WALK(&w, WALK_START, 0, AT(WITH_FP) + 5, AT(START) + 3);
	/* Without a return address nothing is found. */
	stack[0] = 0;
	assert_int_equal(walk_stack(&w, &source, &regs, &memory, NULL, 0), 0);
	assert_int_equal(w.end, WALK_NOT_CODE);
	walk_free(&w);
}

static void test_unknown_code_defers_the_sample(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(UNKNOWN) + 5;
	WALK(&w, WALK_CODE_UNKNOWN, AT(FRAMELESS) + 4, AT(UNKNOWN) + 5);
	walk_free(&w);
}

static void test_a_hijacked_return_address_is_restored(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(STUB);
	kept_at = word_at(2);
	kept_ip = AT(WITH_FP) + 5;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	assert_int_equal(w.frames[1].at, word_at(2));
	assert_false(w.frames[1].exact);
	assert_int_equal(w.frames[2].how, WALK_RULE);
	walk_free(&w);
}

static void test_the_caller_of_an_unknown_hijacked_return_is_guessed(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(STUB);
	/* The stub takes the place of the method whose frame pointer it has. */
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(STUB), AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	assert_true(w.frames[1].exact);
	assert_int_equal(w.frames[2].how, WALK_GUESS);
	/* Without a frame pointer the first plausible return address is used. */
	regs.v[ARCH_FP] = 12345;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(STUB), AT(START) + 3);
	assert_int_equal(w.frames[2].how, WALK_GUESS);
	walk_free(&w);
}

static void test_the_stub_of_hijacked_returns_has_its_return_address_late(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(WITH_FP) + 5;
	regs.v[ARCH_IP] = AT(IN_STUB) + 9;
	WALK(&w, WALK_START, AT(IN_STUB) + 9, AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_RULE);
	/* Not yet: here rax is the method's result. */
	stack[2] = 42;
	kept_at = word_at(2);
	kept_ip = AT(WITH_FP) + 5;
	WALK(&w, WALK_START, AT(IN_STUB) + 9, AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	/* At its first instruction the place is below the stack pointer. */
	regs.v[ARCH_IP] = AT(STUB);
	kept_at = STACK_AT - 8;
	WALK(&w, WALK_START, AT(STUB), AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	kept_at = 0;
	WALK(&w, WALK_START, AT(STUB), AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_GUESS);
	walk_free(&w);
}

static void test_a_hijacked_return_that_leads_to_itself_ends(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	stack[2] = AT(STUB);
	kept_at = word_at(2);
	kept_ip = AT(STUB);
	assert_int_equal(walk_stack(&w, &source, &regs, &memory, NULL, 0), 0);
	assert_int_equal(w.end, WALK_NO_PROGRESS);
	walk_free(&w);
}

static void test_a_scan_that_finds_a_return_address_is_used(void **state)
{
	struct walk w = {0};

	(void)state;
	lay_three();
	regs.v[ARCH_IP] = AT(LEAF) + 4;
	stack[1] = AT(WITH_FP) + 5;
	WALK(&w, WALK_START, AT(LEAF) + 4, AT(WITH_FP) + 5, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_RULE);
	/* No call ends at this address. */
	stack[1] = AT(WITH_FP) + 4;
	WALK(&w, WALK_START, AT(LEAF) + 4, AT(START) + 3);
	assert_int_equal(w.frames[1].how, WALK_FRAME_POINTER);
	/* A return address is not at the start of a scanned instruction. */
	lay_three();
	stack[2] = AT(LEAF) + 5;
	stack[4] = AT(WITH_FP) + 5;
	WALK(&w, WALK_START, AT(FRAMELESS) + 4, AT(LEAF) + 5, AT(START) + 3);
	assert_int_equal(w.frames[2].how, WALK_FRAME_POINTER);
	walk_free(&w);
}

/* The stack of a thread again: its rules are already cached. */
static int again(struct walk *w, uint32_t thread, uint32_t space)
{
	w->thread = thread;
	w->space = space;
	looked_up = 0;
	assert_int_equal(walk_stack(w, &source, &regs, &memory, NULL, 0), 0);
	return looked_up;
}

/* FRAMELESS 20 times, then START. */
static void lay_frameless(void)
{
	for (unsigned i = 0; i < 20; i++)
		stack[3 * i + 2] = i < 19 ? AT(FRAMELESS) + 7 : AT(START) + 3;
	regs.v[ARCH_IP] = AT(FRAMELESS) + 4;
}

static void test_frames_of_the_last_stack_are_reused(void **state)
{
	struct walk w = {0};
	int anew;

	(void)state;
	lay_frameless();
	anew = again(&w, 1, 1);
	assert_int_equal(w.n, 21);
	assert_true(anew >= 21);
	/* Frames of the sample itself and of the last stack. */
	assert_int_equal(again(&w, 1, 1), 2);
	assert_int_equal(w.n, 21);
	assert_int_equal(again(&w, 2, 1), anew);
	assert_int_equal(again(&w, 1, 2), anew);
	assert_int_equal(again(&w, 1, 0), anew);
	/* Another caller in the middle. */
	assert_int_equal(again(&w, 1, 2), 2);
	stack[3 * 9 + 2] = AT(FRAMELESS) + 9;
	assert_true(again(&w, 1, 2) > 2);
	assert_int_equal(w.n, 21);
	assert_int_equal(w.frames[10].ip, AT(FRAMELESS) + 9);
	/* The copy ends before the part that was read then. */
	memory.len = 8 * 30;
	again(&w, 1, 2);
	assert_int_equal(w.end, WALK_COPY_END);
	assert_int_equal(w.n, 11);
	walk_free(&w);
}

static void test_stacks_are_reused_after_a_deep_one(void **state)
{
	struct walk w = {0};

	(void)state;
	/* AT_RET 3000 times, of one word each. */
	for (unsigned i = 0; i < 3000; i++)
		stack[i] = i < 2999 ? AT(AT_RET) + 7 : AT(START) + 3;
	regs.v[ARCH_IP] = AT(AT_RET) + 4;
	again(&w, 1, 1);
	assert_int_equal(w.n, 3001);
	lay_frameless();
	assert_true(again(&w, 1, 1) >= 21);
	assert_int_equal(again(&w, 1, 1), 2);
	assert_true(again(&w, 2, 1) >= 21);
	assert_int_equal(again(&w, 2, 1), 2);
	assert_int_equal(again(&w, 1, 1), 2);
	assert_int_equal(w.n, 21);
	assert_true(w.cap <= WALK_LAST_FRAMES_MAX);
	walk_free(&w);
}

/* xorshift64: the same numbers in every run. */
static unsigned random_below(unsigned n)
{
	static uint64_t x = 88172645463325252u;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x % n);
}

static void test_a_reused_stack_equals_a_new_walk(void **state)
{
	static const uint8_t offsets[] = {0, 1, 3, 4, 5, 7, 0x80, 0xff};
	struct walk fresh = {0}, kept = {0};
	size_t fewer = 0;

	(void)state;
	for (unsigned i = 0; i < 400000; i++) {
		for (unsigned n = i % 1000 ? 1 + random_below(2) : 300; n; n--) {
			unsigned at = random_below(60);

			switch (random_below(8)) {
			case 0:
				stack[at] = word_at(random_below(80));
				break;
			case 1:
				stack[at] = random_below(3);
				break;
			default: /* few kinds besides plain ones, so that stacks are deep */
				stack[at] = AT(random_below(4) ? FRAMELESS + random_below(3)
							       : random_below(FUNCTIONS)) +
					    offsets[random_below(sizeof(offsets))];
			}
		}
		if (!random_below(4)) {
			regs.v[ARCH_IP] = AT(random_below(2) ? FRAMELESS + random_below(3)
							     : random_below(FUNCTIONS)) +
					  offsets[random_below(sizeof(offsets))];
			regs.v[ARCH_FP] = word_at(random_below(60));
			regs.v[ARCH_BX] = word_at(random_below(60));
			regs.v[ARCH_SP] = word_at(random_below(20));
			kept_at = random_below(2) ? word_at(random_below(60)) : 0;
			kept_ip = AT(FRAMELESS) + 5;
		}
		if (!random_below(4))
			memory.len = 8 * (20 + random_below(60));
		int anew = again(&fresh, 1, 0), with_last = again(&kept, 1, 1);

		fewer += with_last < anew;
		assert_int_equal(fresh.n, kept.n);
		assert_int_equal(fresh.end, kept.end);
		assert_int_equal(fresh.full, kept.full);
		for (size_t f = 0; f < fresh.n; f++) {
			assert_int_equal(fresh.frames[f].ip, kept.frames[f].ip);
			assert_int_equal(fresh.frames[f].at, kept.frames[f].at);
			assert_int_equal(fresh.frames[f].how, kept.frames[f].how);
			assert_int_equal(fresh.frames[f].exact, kept.frames[f].exact);
		}
	}
	assert_true(fewer > 10000);
	walk_free(&fresh);
	walk_free(&kept);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_frames_of_the_last_stack_are_reused, begin),
		cmocka_unit_test_setup(test_stacks_are_reused_after_a_deep_one, begin),
		cmocka_unit_test_setup(test_a_reused_stack_equals_a_new_walk, begin),
		cmocka_unit_test_setup(test_rules_lead_to_the_start_of_the_thread, begin),
		cmocka_unit_test_setup(test_a_call_at_the_end_of_a_function_belongs_to_it, begin),
		cmocka_unit_test_setup(test_an_unknown_frame_pointer_is_searched, begin),
		cmocka_unit_test_setup(test_the_edge_of_the_copy_is_reported, begin),
		cmocka_unit_test_setup(test_the_kernels_chain_carries_on_at_the_same_frame, begin),
		cmocka_unit_test_setup(
			test_the_caller_of_a_spliced_frame_without_frame_pointer_is_guessed, begin),
		cmocka_unit_test_setup(test_a_chain_of_other_frames_is_not_joined, begin),
		cmocka_unit_test_setup(test_a_spliced_chain_that_leaves_code_is_truncated, begin),
		cmocka_unit_test_setup(test_code_without_rules_is_left_by_its_frame_pointer, begin),
		cmocka_unit_test_setup(
			test_without_a_frame_pointer_a_return_address_is_guessed_and_marked, begin),
		cmocka_unit_test_setup(test_a_signal_leads_to_the_interrupted_frame, begin),
		cmocka_unit_test_setup(test_only_full_steps_restore_other_registers, begin),
		cmocka_unit_test_setup(test_hostile_stacks_end, begin),
		cmocka_unit_test_setup(test_epilogues_give_registers_back, begin),
		cmocka_unit_test_setup(
			test_a_system_call_at_the_end_of_a_function_is_that_functions, begin),
		cmocka_unit_test_setup(test_a_stack_has_at_most_the_maximum_of_frames, begin),
		cmocka_unit_test_setup(test_data_makes_no_frame, begin),
		cmocka_unit_test_setup(test_unknown_code_defers_the_sample, begin),
		cmocka_unit_test_setup(test_a_hijacked_return_address_is_restored, begin),
		cmocka_unit_test_setup(test_the_caller_of_an_unknown_hijacked_return_is_guessed,
				       begin),
		cmocka_unit_test_setup(
			test_the_stub_of_hijacked_returns_has_its_return_address_late, begin),
		cmocka_unit_test_setup(test_a_hijacked_return_that_leads_to_itself_ends, begin),
		cmocka_unit_test_setup(test_a_scan_that_finds_a_return_address_is_used, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
