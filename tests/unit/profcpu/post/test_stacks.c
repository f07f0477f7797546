#include "profcpu/post/stacks.h"

#include "base/vec.h"
#include "recording/kept_stacks.h"
#include "recording/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define KERNEL 0xffffffff81000100ULL

/* perf's numbers of two registers. */
#define REG_SP 7
#define REG_IP 8

static const struct perfdata_event with_stacks = {
	.attr = {.sample_type =
			 PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		 .sample_regs_user = 1u << REG_SP | 1u << REG_IP},
};
static const struct perfdata_event without_stacks = {
	.attr = {.sample_type = PERF_SAMPLE_CALLCHAIN}};

static struct perfdata_record sample_of(uint64_t file_off, const uint64_t *callchain, size_t n)
{
	struct perfdata_record r = {
		.type = PERF_RECORD_SAMPLE, .pid = 7, .tid = 7, .file_off = file_off};

	r.sample.callchain = callchain;
	r.sample.ncallchain = n;
	return r;
}

static struct stacks *stacks_of(const struct stacks_options *options,
				const struct perfdata_event *event)
{
	struct stacks *s;

	assert_int_equal(post_stacks_new(options, &s), 0);
	assert_int_equal(post_stacks_events(s, event, 1), 0);
	return s;
}

static void grades_of_the_recorder_are_used(void **state)
{
	const uint64_t words[] = {
		PERF_CONTEXT_KERNEL, KERNEL, PERF_CONTEXT_USER, 0x1010, 0x1020, 0x1030, 0x1040};
	struct samples_idx_row rows[] = {
		{200, UNWIND_SPLICED, WALK_COPY_END, 2, UINT16_MAX, 0},
		{300, UNWIND_TRUNCATED, WALK_NO_RULE, UINT16_MAX, 3, 0},
		{400, UNWIND_GUESSED, WALK_START, UINT16_MAX, 1, 0},
		{500, UNWIND_TRUNCATED, WALK_FRAME_LIMIT, 3, 1, 0},
	};
	const struct samples_idx idx = {.rows = rows, .n = sizeof(rows) / sizeof(*rows)};
	struct symbolizer_stack stack;
	struct post_stacks_summary sum;

	(void)state;
	for (int grades = 0; grades < 2; grades++) {
		struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1,
								      .recorded = &idx,
								      .grades = grades},
					     &without_stacks);

		for (uint64_t at = 100; at <= 600; at += 100) {
			struct perfdata_record r = sample_of(at, words, at < 600 ? 7 : 3);
			const struct samples_idx_row *row = samples_idx_find(&idx, at);

			assert_int_equal(post_stacks_sample(s, &without_stacks, &r, &stack), 0);
			assert_ptr_equal(r.sample.callchain, words);
			assert_int_equal(stack.truncated, at == 300 || at == 500);
			assert_int_equal(stack.at_call_sites, at < 600);
			assert_int_equal(stack.first_spliced,
					 grades && row && row->first_spliced < 9
						 ? row->first_spliced
						 : CALLCHAIN_NO_FRAME);
			assert_int_equal(stack.first_guess, grades && row && row->first_guess < 9
								    ? row->first_guess
								    : CALLCHAIN_NO_FRAME);
		}
		sum = post_stacks_summary(s);
		assert_true(sum.known);
		assert_int_equal(sum.grades[UNWIND_COMPLETE], 1);
		assert_int_equal(sum.grades[UNWIND_SPLICED], 1);
		assert_int_equal(sum.grades[UNWIND_GUESSED], 1);
		assert_int_equal(sum.grades[UNWIND_TRUNCATED], 2);
		assert_int_equal(sum.grades[UNWIND_NO_STACK], 1);
		assert_int_equal(sum.ends[WALK_NO_RULE], 1);
		assert_int_equal(sum.ends[WALK_FRAME_LIMIT], 1);
		assert_int_equal(sum.ends[WALK_COPY_END], 0);
		assert_int_equal(sum.spliced, 2 + 1);
		assert_int_equal(sum.guessed, 1 + 3 + 2);
		assert_int_equal(sum.found, 5 * 4 - 9);
		post_stacks_free(s);
	}
}

static void without_registers_nothing_is_done(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x1010};
	struct perfdata_record r = sample_of(100, words, 2);
	struct symbolizer_stack stack = {.truncated = true};
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1}, &without_stacks);

	(void)state;
	assert_int_equal(post_stacks_sample(s, &without_stacks, &r, &stack), 0);
	assert_false(stack.truncated || stack.at_call_sites);
	assert_int_equal(stack.first_guess, CALLCHAIN_NO_FRAME);
	assert_false(post_stacks_summary(s).known);
	post_stacks_free(s);
}

/* A sample with registers and a stack; the stack's first word leads nowhere. */
static struct perfdata_record with_registers(const uint64_t *callchain, size_t n,
					     const uint64_t regs[2], const uint64_t stack[8])
{
	struct perfdata_record r = sample_of(100, callchain, n);

	r.sample.user_regs = regs;
	r.sample.user_abi = PERF_SAMPLE_REGS_ABI_64;
	r.sample.user_stack = stack;
	r.sample.user_stack_bytes = 64;
	return r;
}

static void callchains_of_the_largest_size_are_counted(void **state)
{
	const struct stacks_options options = {.symbols_fd = -1};
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, KERNEL, PERF_CONTEXT_USER, 1, 2, 3};
	struct perfdata_event event = without_stacks;
	struct symbolizer_stack stack;

	(void)state;
	for (uint16_t most = 0; most < 7; most++) {
		struct perfdata_record r = sample_of(100, words, 6);

		event.attr.sample_max_stack = most;
		struct stacks *s = stacks_of(&options, &event);

		assert_int_equal(post_stacks_sample(s, &event, &r, &stack), 0);
		assert_int_equal(post_stacks_summary(s).limits.cost[LIMIT_MAX_STACK],
				 most && most <= 4);
		post_stacks_free(s);
	}
}

static void samples_without_unwinding_keep_the_sampled_frame(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_KERNEL, KERNEL, PERF_CONTEXT_USER},
		       regs[] = {0x7ffe0000, 0x401000}, stack[8] = {0};
	const uint64_t expected[] = {PERF_CONTEXT_KERNEL, KERNEL, PERF_CONTEXT_USER, 0x401000};
	struct symbolizer_stack known;
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1, .offline = true},
				     &with_stacks);

	(void)state;
	for (size_t n = 2; n <= 3; n++) {
		struct perfdata_record r = with_registers(words, n, regs, stack);

		assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
		assert_int_equal(r.sample.ncallchain, 4);
		assert_memory_equal(r.sample.callchain, expected, sizeof(expected));
		assert_true(known.truncated);
	}
	assert_int_equal(post_stacks_summary(s).grades[UNWIND_TRUNCATED], 2);
	/* A kernel thread. */
	struct perfdata_record r = sample_of(100, words, 2);

	assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
	assert_int_equal(r.sample.ncallchain, 2);
	assert_false(known.truncated);
	assert_int_equal(post_stacks_summary(s).grades[UNWIND_NO_STACK], 1);
	post_stacks_free(s);
}

static void unwound_frames_are_at_their_calls(void **state)
{
	const uint64_t regs[] = {0x7ffe0000, 0x401000}, stack[8] = {0x401010, 0x5};
	const uint64_t expected[] = {PERF_CONTEXT_USER, 0x401000};
	struct perfdata_record r = with_registers(NULL, 0, regs, stack);
	struct symbolizer_stack known;
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1}, &with_stacks);

	(void)state;
	r.sample.callchain = expected; /* empty, but present */
	assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
	assert_true(known.at_call_sites && known.truncated);
	assert_int_equal(r.sample.ncallchain, 2);
	assert_memory_equal(r.sample.callchain, expected, sizeof(expected));
	assert_int_equal(post_stacks_summary(s).ends[WALK_NOT_CODE], 1);
	post_stacks_free(s);
}

/* A stack that profcpu's recorder kept is unwound again only if that can improve it. */
static void registers_of_another_architecture_are_ignored(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x401000}, regs[] = {0x7ffe0000, 0x401000},
		       stack[8] = {0};
	struct perfdata_record r = with_registers(words, 2, regs, stack);
	struct symbolizer_stack known;
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1}, &with_stacks);

	(void)state;
	post_stacks_arch(s, "riscv64");
	assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
	assert_ptr_equal(r.sample.callchain, words);
	assert_false(known.truncated || known.at_call_sites);
	assert_false(post_stacks_summary(s).known);
	post_stacks_free(s);
}

static void finished_stacks_are_not_unwound_again(void **state)
{
	const uint64_t words[] = {PERF_CONTEXT_USER, 0x401000, 0x402000},
		       regs[] = {0x7ffe0000, 0x401000}, stack[8] = {5};
	struct samples_idx_row row = {100, UNWIND_GUESSED, WALK_START, UINT16_MAX, 1, 0};
	const struct samples_idx idx = {.rows = &row, .n = 1};
	struct perfdata_record r = with_registers(words, 3, regs, stack);
	struct symbolizer_stack known;
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = -1, .recorded = &idx},
				     &with_stacks);

	(void)state;
	assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
	assert_ptr_equal(r.sample.callchain, words);
	assert_int_equal(post_stacks_summary(s).grades[UNWIND_GUESSED], 1);
	r.file_off = 200;
	assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
	assert_int_equal(post_stacks_summary(s).grades[UNWIND_COMPLETE], 1);
	post_stacks_free(s);
}

/* Keeps a stack for each of three records, then removes none or the sample of the second. */
static void kept_stacks_belong_to_their_records(void **state)
{
	const uint64_t regs[] = {0x7ffe0000, 0x401000}, stack[8] = {5};
	char dir[] = "/tmp/test_stacks.XXXXXX";
	struct symbolizer_stack known;

	(void)state;
	assert_non_null(mkdtemp(dir));
	int fd = open(dir, O_RDONLY | O_DIRECTORY);
	struct kept_stacks kept = {0};

	for (uint64_t i = 3; i >= 1; i--) {
		const uint64_t word = 0x5000 + i;
		const struct kept_stack row = {.file_off = 100 * i,
					       .grade = UNWIND_SPLICED,
					       .first_spliced = UINT16_MAX,
					       .first_guess = UINT16_MAX,
					       .limit = i > 1 ? 1 + LIMIT_LIBDW_RULES : 0};

		assert_int_equal(kept_stacks_add(&kept, &row, &word, 1), 0);
	}
	assert_int_equal(kept_stacks_write(&kept, fd), 0);
	kept_stacks_free(&kept);
	struct stacks *s = stacks_of(&(struct stacks_options){.symbols_fd = fd, .offline = true},
				     &with_stacks);

	/* The row of record 200 is not used; record 250 has none. */
	for (uint64_t at = 100; at <= 300; at += at == 100 ? 150 : 50) {
		const uint64_t chain = PERF_CONTEXT_USER;
		struct perfdata_record r = with_registers(&chain, 1, regs, stack);

		r.file_off = at;
		assert_int_equal(post_stacks_sample(s, &with_stacks, &r, &known), 0);
		assert_int_equal(r.sample.ncallchain, 2);
		assert_int_equal(r.sample.callchain[1], at == 250 ? regs[1] : 0x5000 + at / 100);
	}
	assert_int_equal(post_stacks_summary(s).grades[UNWIND_SPLICED], 2);
	assert_int_equal(post_stacks_summary(s).limits.cost[LIMIT_LIBDW_RULES], 1);
	post_stacks_free(s);
	unlinkat(fd, RECORDING_STACKS, 0);
	close(fd);
	rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grades_of_the_recorder_are_used),
		cmocka_unit_test(without_registers_nothing_is_done),
		cmocka_unit_test(callchains_of_the_largest_size_are_counted),
		cmocka_unit_test(samples_without_unwinding_keep_the_sampled_frame),
		cmocka_unit_test(unwound_frames_are_at_their_calls),
		cmocka_unit_test(registers_of_another_architecture_are_ignored),
		cmocka_unit_test(finished_stacks_are_not_unwound_again),
		cmocka_unit_test(kept_stacks_belong_to_their_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
