/* profcpu/record_waiting: the stacks of threads that wait already are read, unwound and told; what cannot be read is counted. */
#include "profcpu/record_waiting.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 8

struct fixture {
	struct record_offcpu *offcpu;
	struct record_waiting *waiting;
	struct unwinder *unwinder;
	uint64_t asked, ips[THREADS]; /* of waits with a stack: where it is */
	size_t with_stack, waits;
};

static pid_t tids[THREADS];
static int block[2];

static void *waits(void *arg)
{
	char c;

	__atomic_store_n((pid_t *)arg, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return read(block[0], &c, 1) ? arg : NULL;
}

static int take_wait(void *ctx, const struct perfdata_offcpu *sample, const struct unwound *unwound, const struct offcpu_idx_wait *row)
{
	struct fixture *f = ctx;

	f->waits++;
	assert_true(row->flags & OFFCPU_IDX_CUT_BEGIN);
	if (sample->ncallchain < 2)
		return 0;
	assert_true(sample->callchain[0] == PERF_CONTEXT_USER);
	assert_int_not_equal(unwound->grade, UNWIND_NO_STACK);
	assert_true(f->with_stack < THREADS);
	f->ips[f->with_stack++] = sample->callchain[1];
	return 0;
}

static int take_thread(void *ctx, const struct offcpu_idx_thread *thread)
{
	(void)ctx;
	assert_int_equal(thread->no_stack_ns, 0);
	return 0;
}

static int take_ask(void *ctx, int32_t pid, int32_t tid)
{
	struct fixture *f = ctx;

	f->asked++;
	return record_waiting_ask(f->waiting, pid, tid);
}

static void round_of(struct fixture *f)
{
	assert_int_equal(record_offcpu_round(f->offcpu), 0);
	assert_int_equal(record_waiting_take(f->waiting, f->unwinder, f->offcpu, false), 0);
	usleep(10000);
}

/* All wait in the same place; one is of another process, and one is not there. */
static void threads_that_wait_have_a_stack(void **state)
{
	struct record_offcpu_options options = {.begin_ns = clock_monotonic_ns()};
	/* All that there is is code, of which nobody knows anything. */
	const struct perfdata_record map = {.type = PERF_RECORD_MMAP2, .pid = getpid(), .tid = getpid(),
					    .mmap = {.addr = 4096, .len = UINT64_C(0x7fffffffe000), .filename = "//anon"}};
	const struct unwinder_options unwinder = {0};
	struct fixture f = {0};
	pthread_t threads[THREADS];

	(void)state;
	assert_int_equal(pipe(block), 0);
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, waits, &tids[i]), 0);
		while (!__atomic_load_n(&tids[i], __ATOMIC_ACQUIRE))
			usleep(1000);
	}
	usleep(50000);
	assert_int_equal(record_offcpu_new(&options, &f.offcpu), 0);
	assert_int_equal(unwinder_new(&unwinder, &f.unwinder), 0);
	assert_int_equal(unwinder_apply(f.unwinder, &map), 0);
	assert_int_equal(record_waiting_new(NULL, &f.waiting), 0);
	record_offcpu_to(f.offcpu, &(struct record_offcpu_writer){.ctx = &f, .wait = take_wait, .thread = take_thread, .ask = take_ask});
	for (size_t i = 0; i < THREADS; i++) {
		const struct perfdata_record record = {.type = PERF_RECORD_FORK, .pid = getpid(), .tid = tids[i], .cpu = -1};

		assert_int_equal(record_offcpu_apply(f.offcpu, &record), 0);
	}
	assert_int_equal(f.asked, THREADS);
	for (int i = 0; i < 1000 && record_waiting_stats(f.waiting).asked < THREADS; i++)
		round_of(&f);
	if (!record_waiting_stats(f.waiting).read)
		skip(); /* a kernel that does not tell */
	assert_int_equal(record_waiting_stats(f.waiting).read, THREADS);
	assert_int_equal(record_waiting_stats(f.waiting).refused, 0);
	assert_true(record_waiting_stats(f.waiting).cpu_ns > 0);
	round_of(&f);
	round_of(&f);
	assert_false(record_waiting_hopes(f.waiting));
	assert_int_equal(record_waiting_ask(f.waiting, getpid(), 0x3fffffff), 0);
	for (int i = 0; i < 1000 && record_waiting_stats(f.waiting).asked <= THREADS; i++)
		round_of(&f);
	assert_int_equal(record_waiting_stats(f.waiting).read, THREADS);
	assert_int_equal(record_offcpu_finish(f.offcpu, clock_monotonic_ns()), 0);
	assert_int_equal(f.waits, THREADS);
	assert_int_equal(f.with_stack, THREADS);
	for (size_t i = 1; i < THREADS; i++)
		assert_true(f.ips[i] == f.ips[0]);
	close(block[1]);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	close(block[0]);
	record_waiting_free(f.waiting);
	record_offcpu_free(f.offcpu);
	unwinder_free(f.unwinder);
}

/* Whoever ends early does not wait for what it has asked. */
static void the_end_does_not_wait_for_answers(void **state)
{
	struct record_waiting *w;
	uint64_t begin_ns = clock_monotonic_ns();

	(void)state;
	assert_int_equal(record_waiting_new(NULL, &w), 0);
	for (int i = 0; i < RECORD_WAITING_THREADS_MAX + 1000; i++)
		assert_int_equal(record_waiting_ask(w, getpid(), getpid()), 0);
	record_waiting_free(w);
	assert_true(clock_monotonic_ns() - begin_ns < RECORD_WAITING_END_NS);
	record_waiting_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_that_wait_have_a_stack),
		cmocka_unit_test(the_end_does_not_wait_for_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
