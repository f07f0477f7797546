/* profcpu/record/waker_processes: the state of each process is read once, and a read that takes
 * long does not stop the caller. */
#include "profcpu/record/waker_processes.h"

#include "base/clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_NS (20 * NS_PER_S)

static int gate[2]; /* a read of PID 7 takes a byte from it first */

static int read_pid(const struct sampler_synthesis *from, pid_t pid, sampler_synthesized take,
		    void *ctx)
{
	int32_t number = pid;
	char byte;

	assert_string_equal(from->proc, "/here");
	if (pid == 7 && read(gate[0], &byte, 1) != 1)
		return -EIO;
	int r = take(ctx, &number, sizeof(number));

	return pid == 8 ? -ENOMEM : r ? r : take(ctx, &number, sizeof(number));
}

struct got {
	int32_t v[2 * WAKER_PROCESSES_MAX];
	size_t n;
	int error;
};

static int take(void *ctx, const void *data, size_t len)
{
	struct got *got = ctx;

	assert_true(got->n * sizeof(*got->v) + len <= sizeof(got->v));
	memcpy(got->v + got->n, data, len);
	got->n += len / sizeof(*got->v);
	return got->error;
}

static struct waker_processes *begin(void)
{
	const struct sampler_synthesis from = {.proc = "/here"};
	struct waker_processes *w;

	assert_int_equal(pipe(gate), 0);
	assert_int_equal(waker_processes_new(&from, read_pid, &w), 0);
	return w;
}

static void end(struct waker_processes *w)
{
	close(gate[1]);
	waker_processes_free(w);
	close(gate[0]);
}

static void each_process_is_read_once(void **state)
{
	struct waker_processes *w = begin();
	struct got got = {0};

	(void)state;
	assert_int_equal(waker_processes_know(w, 5), 0);
	assert_int_equal(waker_processes_request(w, 5), 0);
	assert_int_equal(waker_processes_request(w, 0), 0);
	assert_int_equal(waker_processes_request(w, 6), 1);
	assert_int_equal(waker_processes_request(w, 6), 0);
	assert_int_equal(waker_processes_take(w, WAIT_NS, take, &got), 0);
	assert_true(got.n == 2 && got.v[0] == 6 && got.v[1] == 6);
	assert_int_equal(waker_processes_take(w, WAIT_NS, take, &got), 0);
	assert_int_equal(got.n, 2);
	end(w);
}

static void a_slow_read_does_not_stop_the_caller(void **state)
{
	struct waker_processes *w = begin();
	struct got got = {0};

	(void)state;
	assert_int_equal(waker_processes_request(w, 7), 1);
	assert_int_equal(waker_processes_request(w, 9), 1);
	assert_int_equal(waker_processes_take(w, 0, take, &got), 0);
	assert_int_equal(waker_processes_take(w, NS_PER_MS, take, &got), 0);
	assert_int_equal(got.n, 0);
	assert_int_equal(waker_processes_left_out(w), 2);
	assert_int_equal(write(gate[1], "x", 1), 1);
	assert_int_equal(waker_processes_take(w, WAIT_NS, take, &got), 0);
	assert_int_equal(waker_processes_left_out(w), 0);
	assert_true(got.n == 4 && got.v[0] == 7 && got.v[3] == 9);
	end(w);
}

static void failures_are_handed_on_or_cost_one_process(void **state)
{
	struct waker_processes *w = begin();
	struct got got = {.error = -ENOSPC};

	(void)state;
	assert_int_equal(waker_processes_request(w, 8), 1); /* fails after its first record */
	assert_int_equal(waker_processes_request(w, 9), 1);
	assert_int_equal(waker_processes_take(w, WAIT_NS, take, &got), -ENOSPC);
	assert_true(got.n == 2 && got.v[0] == 9);
	assert_int_equal(waker_processes_left_out(w), 1);
	end(w);
}

static void processes_over_the_limit_are_counted(void **state)
{
	struct waker_processes *w = begin();
	struct got got = {0};

	(void)state;
	for (int32_t pid = 100; pid < 100 + WAKER_PROCESSES_MAX + 3; pid++)
		assert_int_equal(waker_processes_request(w, pid), pid < 100 + WAKER_PROCESSES_MAX);
	assert_int_equal(waker_processes_take(w, WAIT_NS, take, &got), 0);
	assert_int_equal(waker_processes_left_out(w), 3);
	assert_int_equal(got.n, 2 * WAKER_PROCESSES_MAX);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_process_is_read_once),
		cmocka_unit_test(a_slow_read_does_not_stop_the_caller),
		cmocka_unit_test(failures_are_handed_on_or_cost_one_process),
		cmocka_unit_test(processes_over_the_limit_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
