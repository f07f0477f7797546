/* Waits get their causes from the events in their time and from their stacks. */
#include "profcpu/managed/causes.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TID = 7, OTHER = 8 };

static struct profile *profile;
static struct causes *causes;
static struct evidence evidence;
static uint32_t thread, in_runtime, in_task, in_program, idle_loop;
static struct cause_sum sums[16];
static size_t nsums;

static uint32_t stack_of(uint32_t parent, uint8_t kind, const char *module, const char *name)
{
	struct profile_frame f = {.perf_name = PROFILE_NONE, .srcline = PROFILE_NONE, .kind = kind};
	uint32_t frame, stack;

	assert_int_equal(profile_text(profile, module, strlen(module), &f.module), 0);
	assert_int_equal(profile_text(profile, name, strlen(name), &f.name), 0);
	assert_int_equal(profile_frame(profile, &f, &frame), 0);
	assert_int_equal(profile_stack(profile, parent, frame, &stack), 0);
	return stack;
}

static int setup(void **state)
{
	struct profile_event event = {.has_period = true, .off_cpu = true};
	struct profile_thread t = {.pid = TID, .tid = TID};
	uint32_t id;

	(void)state;
	nsums = 0;
	assert_int_equal(profile_new(&profile), 0);
	assert_int_equal(causes_new(&evidence, &causes), 0);
	assert_int_equal(profile_text(profile, "offcpu-time", 11, &event.name), 0);
	assert_int_equal(profile_event(profile, &event, &id), 0);
	assert_int_equal(profile_text(profile, "app", 3, &t.comm), 0);
	assert_int_equal(profile_thread(profile, &t, &thread), 0);
	in_program = stack_of(PROFILE_STACK_EMPTY, FRAME_NATIVE, "/app/app", "main");
	in_runtime = stack_of(in_program, FRAME_RUNTIME, "/app/libcoreclr.so", "f");
	in_task = stack_of(in_program, FRAME_MANAGED, "app.dll",
			   "System.Threading.Tasks.Task.InternalWaitCore(int32,CancellationToken)");
	in_task = stack_of(in_task, FRAME_RUNTIME, "/app/libcoreclr.so", "f");
	idle_loop =
		stack_of(PROFILE_STACK_EMPTY, FRAME_MANAGED, "app.dll",
			 "System.Threading.PortableThreadPool.WorkerThread.WorkerThreadStart()");
	idle_loop = stack_of(idle_loop, FRAME_RUNTIME, "/app/libcoreclr.so", "f");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	causes_free(causes);
	evidence_free(&evidence);
	evidence = (struct evidence){0};
	profile_free(profile);
	return 0;
}

/* Times are milliseconds. */
static void add(enum evidence_kind kind, int32_t tid, uint64_t begin, uint64_t end, uint32_t event)
{
	const struct evidence_interval i = {tid, begin * NS_PER_MS, end * NS_PER_MS, event};

	assert_int_equal(evidence_add(&evidence, kind, &i), 0);
	evidence_sort(&evidence);
}

static void take(uint32_t stack, uint64_t begin, uint64_t end)
{
	const struct cause_wait w = {.tid = TID,
				     .begin_ns = begin * NS_PER_MS,
				     .end_ns = end * NS_PER_MS,
				     .blocked_ns = (end > begin ? end - begin : 1) * NS_PER_MS,
				     .thread = thread,
				     .stack = stack};

	assert_int_equal(causes_take(causes, &w), 0);
}

static int keep(void *ctx, const struct cause_sum *sum)
{
	(void)ctx;
	assert_true(nsums < sizeof(sums) / sizeof(sums[0]));
	sums[nsums++] = *sum;
	return 0;
}

static void finish(size_t n)
{
	assert_int_equal(causes_finish(causes, profile, keep, NULL), 0);
	assert_int_equal(nsums, n);
}

static void check(size_t i, enum wait_cause cause, uint64_t ms)
{
	if (sums[i].cause != cause || sums[i].ns != ms * NS_PER_MS)
		fail_msg("%zu: %s, %llu ns", i, cause_word(sums[i].cause),
			 (unsigned long long)sums[i].ns);
}

static void a_wait_for_a_lock_has_its_event(void **state)
{
	(void)state;
	add(EVIDENCE_LOCK, TID, 100, 130, 5);
	add(EVIDENCE_LOCK, TID, 200, 210, 6);
	add(EVIDENCE_LOCK, OTHER, 300, 400, 7);
	take(in_runtime, 101, 129);
	take(in_program, 102, 128);
	take(in_runtime, 190, 204); /* less than half of it */
	take(in_runtime, 190, 210); /* just half */
	take(in_runtime, 310, 390); /* another thread's */
	finish(4);
	check(0, CAUSE_LOCK, 28);
	assert_int_equal(sums[0].event, 5);
	check(1, CAUSE_LOCK, 26);
	check(2, CAUSE_RUNTIME, 14 + 80);
	assert_int_equal(sums[2].waits, 2);
	check(3, CAUSE_LOCK, 20);
	assert_int_equal(sums[3].event, 6);
}

static void a_pause_stops_threads_that_wait_in_the_runtime(void **state)
{
	(void)state;
	add(EVIDENCE_PAUSE, 0, 100, 140, 0);
	take(in_runtime, 110, 140);
	take(in_program, 110, 139); /* not in the runtime */
	take(in_task, 90, 138);     /* began before it */
	take(in_task, 110, 137);    /* returns from native code */
	finish(4);
	check(0, CAUSE_GC, 30);
	check(1, CAUSE_UNKNOWN, 29);
	check(2, CAUSE_TASK, 48);
	check(3, CAUSE_GC, 27);
}

static void a_task_waits_for_a_starved_pool(void **state)
{
	(void)state;
	/* Together they take more than half of a wait. */
	add(EVIDENCE_STARVATION, 0, 1000, 1550, 0);
	add(EVIDENCE_STARVATION, 0, 1250, 1800, 0);
	add(EVIDENCE_STARVATION, 0, 1500, 2050, 0);
	take(in_task, 1000, 2500);
	take(in_runtime, 1000, 2500);
	take(in_task, 3000, 3500);
	finish(3);
	check(0, CAUSE_STARVATION, 1500);
	check(1, CAUSE_RUNTIME, 1500);
	check(2, CAUSE_TASK, 500);
}

static void a_compilation_holds_others_up(void **state)
{
	(void)state;
	add(EVIDENCE_JIT, OTHER, 100, 150, 0);
	add(EVIDENCE_JIT, TID, 300, 350, 0);
	take(in_runtime, 105, 151); /* ends with it */
	take(in_task, 106, 151);
	take(in_runtime, 140, 180); /* goes on for longer */
	take(in_runtime, 105, 140); /* ends before it */
	take(in_runtime, 310, 330); /* within its own one */
	finish(4);
	check(0, CAUSE_JIT, 46);
	check(1, CAUSE_TASK, 45);
	check(2, CAUSE_RUNTIME, 40 + 35);
	check(3, CAUSE_JIT, 20);
}

static void other_waits(void **state)
{
	struct cause_wait w = {.tid = TID,
			       .begin_ns = NS_PER_S,
			       .end_ns = NS_PER_S,
			       .is_estimated = true,
			       .blocked_ns = 3,
			       .runnable_ns = 4,
			       .thread = thread,
			       .stack = in_task};

	(void)state;
	add(EVIDENCE_LOCK, TID, 500, 2000, 9);
	take(idle_loop, 100, 130);
	/* An estimated one has no time. */
	assert_int_equal(causes_take(causes, &w), 0);
	w.stack = in_program;
	w.blocked_ns = 0;
	w.runnable_ns = UINT64_MAX;
	assert_int_equal(causes_take(causes, &w), 0);
	assert_int_equal(causes_take(causes, &w), 0);
	finish(4);
	check(0, CAUSE_IDLE, 30);
	assert_int_equal(sums[1].cause, CAUSE_CPU);
	assert_int_equal(sums[1].waits, 0);
	assert_int_equal(sums[2].cause, CAUSE_TASK);
	assert_int_equal(sums[3].cause, CAUSE_CPU);
	assert_int_equal(sums[3].waits, 2);
	assert_true(sums[3].ns == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_wait_for_a_lock_has_its_event, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pause_stops_threads_that_wait_in_the_runtime,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_task_waits_for_a_starved_pool, setup, teardown),
		cmocka_unit_test_setup_teardown(a_compilation_holds_others_up, setup, teardown),
		cmocka_unit_test_setup_teardown(other_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
