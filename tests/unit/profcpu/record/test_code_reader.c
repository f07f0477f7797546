/*
 * Requests for code of a process: repeated while the code changes, but not forever, and dropped
 * with the process. A fake runtime answers.
 */
#include "profcpu/record/code_reader.h"

#include "base/clock.h"
#include "dotnet/coreclr/runtime.h"
#include "tests/unit/allocated_bytes.h"
#include "tests/unit/under_valgrind.h"
#include "unwind/clr_code.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define CHANGING 0x1000 /* addresses: always changing, steady, unknown */
#define STEADY 0x2000
#define UNKNOWN 0x3000
#define FIRST_GONE (1 << 24)    /* no process has this id or one above */
#define LONG_NS (20 * NS_PER_S) /* longer than any limit, also on a busy machine */

static atomic_uint changing_reads, closed;
static atomic_bool slow; /* the next read takes until it is false again */
static unsigned known, unknown, rows;
static char runtime;

int __wrap_clr_runtime_locate(pid_t pid, uint64_t deadline_ns, const char *maps,
			      struct clr_anchors *ret);
int __wrap_clr_contract_load(const struct clr_io *io, const struct clr_anchors *anchors,
			     struct clr_contract *ret, struct parse_error *err);
int __wrap_clr_code_reader_new(const struct clr_io *io, const struct clr_contract *contract,
			       struct clr_code_reader **ret);
void __wrap_clr_code_reader_free(struct clr_code_reader *r);
int __wrap_clr_code_read(struct clr_code_reader *r, const struct clr_code_query *queries, size_t n,
			 struct clr_code *code, int *errors);
int __wrap_unwinder_add_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code,
			     uint64_t now_ns);

int __wrap_clr_runtime_locate(pid_t pid, uint64_t deadline_ns, const char *maps,
			      struct clr_anchors *ret)
{
	(void)pid, (void)deadline_ns, (void)maps, (void)ret;
	return 0;
}

int __wrap_clr_contract_load(const struct clr_io *io, const struct clr_anchors *anchors,
			     struct clr_contract *ret, struct parse_error *err)
{
	(void)io, (void)anchors, (void)ret, (void)err;
	return 0;
}

int __wrap_clr_code_reader_new(const struct clr_io *io, const struct clr_contract *contract,
			       struct clr_code_reader **ret)
{
	(void)io, (void)contract;
	*ret = (void *)&runtime;
	return 0;
}

void __wrap_clr_code_reader_free(struct clr_code_reader *r)
{
	closed += r != NULL;
}

int __wrap_clr_code_read(struct clr_code_reader *r, const struct clr_code_query *queries, size_t n,
			 struct clr_code *code, int *errors)
{
	(void)r;
	while (slow)
		usleep(1000);
	for (size_t i = 0; i < n; i++) {
		changing_reads += queries[i].addr == CHANGING;
		errors[i] = queries[i].addr == CHANGING ? -EAGAIN
			    : queries[i].addr == STEADY ? 0
							: -ENOENT;
		code[i].start = queries[i].addr;
		code[i].end = queries[i].addr + 1;
		if (queries[i].addr == STEADY && rows)
			code[i].rules = (struct code_rules){
				calloc(rows, sizeof(struct code_row)), rows, 0, 0, 0, {{0}}};
	}
	return 0;
}

int __wrap_unwinder_add_code(struct unwinder *u, int32_t pid, uint64_t addr, struct jit_code *code,
			     uint64_t now_ns)
{
	(void)u, (void)now_ns;
	assert_true(pid == getpid() || pid >= FIRST_GONE);
	if (code)
		assert_int_equal(code->start, addr);
	known += code != NULL;
	unknown += !code;
	return 0;
}

static int begin(void **state)
{
	struct code_reader *r;
	int error = code_reader_new(0, &r);

	changing_reads = closed = known = unknown = 0;
	*state = r;
	return error;
}

static int end(void **state)
{
	code_reader_free(*state);
	return 0;
}

/* Waits for all requests. Returns the number of answers. */
static int finish(struct code_reader *r)
{
	uint64_t until_ns = clock_monotonic_ns() + LONG_NS;

	code_reader_wait(r, until_ns);
	assert_true(clock_monotonic_ns() < until_ns);
	return code_reader_take(r, NULL);
}

static void wait_until(atomic_uint *counter, unsigned least)
{
	uint64_t until_ns = clock_monotonic_ns() + LONG_NS;

	while (*counter < least && clock_monotonic_ns() < until_ns)
		usleep(1000);
	assert_true(*counter >= least);
}

static void each_request_is_answered(void **state)
{
	assert_true(code_reader_request(*state, getpid(), STEADY));
	assert_true(code_reader_request(*state, getpid(), UNKNOWN));
	assert_int_equal(finish(*state), 2);
	assert_int_equal(known, 1);
	assert_int_equal(unknown, 1);
}

static void changing_code_is_read_again_and_then_unknown(void **state)
{
	assert_true(code_reader_request(*state, getpid(), CHANGING));
	wait_until(&changing_reads, 3);
	assert_true(code_reader_request(*state, getpid(), STEADY));
	assert_int_equal(finish(*state), 2);
	assert_int_equal(known, 1);
	assert_int_equal(unknown, 1);
}

static void a_forgotten_process_has_no_more_requests(void **state)
{
	assert_true(code_reader_request(*state, getpid(), CHANGING));
	wait_until(&changing_reads, 1);
	slow = true;
	assert_true(code_reader_request(*state, getpid(), STEADY)); /* stops the thread */
	usleep(50000);
	assert_true(code_reader_request(*state, getpid(), UNKNOWN));
	code_reader_forget(*state, getpid());
	assert_true(code_reader_request(*state, getpid(), STEADY)); /* of the next program */
	slow = false;
	wait_until(&closed, 1);
	unsigned reads = changing_reads;

	assert_in_range(finish(*state), 1, 2);
	assert_int_equal(unknown, 0);
	assert_in_range(known, 1, 2);
	assert_int_equal(changing_reads, reads);
}

static void forgotten_processes_take_no_memory(void **state)
{
	const int32_t first = FIRST_GONE, n = 32768;
	size_t before = 0;

	if (under_valgrind())
		skip(); /* its allocations are not counted */
	for (int32_t i = 0; i < 4 * n; i += n) {
		for (int32_t pid = first + i; pid < first + i + n; pid++)
			assert_true(code_reader_request(*state, pid, UNKNOWN));
		assert_int_equal(finish(*state), n);
		for (int32_t pid = first + i; pid < first + i + n; pid++)
			code_reader_forget(*state, pid);
		assert_int_equal(finish(*state), 0);
		before = before ? before : allocated_bytes();
	}
	assert_true(allocated_bytes() < before + 1000000);
}

static void lookups_without_taken_results_are_limited(void **state)
{
	const unsigned n = CODE_READER_REQUESTS_MAX, over = 1000;
	unsigned taken = 0;

	for (unsigned i = 0; i < n + over; i++)
		taken += code_reader_request(*state, getpid(), UNKNOWN);
	assert_int_equal(taken, n);
	assert_int_equal(code_reader_left_out(*state), over);
	assert_int_equal(finish(*state), n);
	assert_true(code_reader_request(*state, getpid(), UNKNOWN));
	assert_int_equal(finish(*state), 1);
	assert_int_equal(code_reader_left_out(*state), over);
}

static void rules_over_the_limit_are_unknown_and_counted(void **state)
{
	struct code_reader *r;

	(void)state;
	rows = 10000;
	assert_int_equal(code_reader_new(16 * rows * sizeof(struct code_row), &r), 0);
	for (int i = 0; i < 5; i++)
		assert_true(code_reader_request(r, getpid(), STEADY));
	assert_int_equal(finish(r), 5);
	assert_int_equal(known, 1);
	assert_int_equal(unknown, 4);
	assert_int_equal(code_reader_left_out(r), 4);
	assert_true(code_reader_request(r, getpid(), STEADY));
	assert_int_equal(finish(r), 1);
	assert_int_equal(known, 2);
	code_reader_free(r);
	rows = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(forgotten_processes_take_no_memory, begin, end),
		cmocka_unit_test_setup_teardown(lookups_without_taken_results_are_limited, begin,
						end),
		cmocka_unit_test_setup_teardown(rules_over_the_limit_are_unknown_and_counted, begin,
						end),
		cmocka_unit_test_setup_teardown(each_request_is_answered, begin, end),
		cmocka_unit_test_setup_teardown(changing_code_is_read_again_and_then_unknown, begin,
						end),
		cmocka_unit_test_setup_teardown(a_forgotten_process_has_no_more_requests, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
