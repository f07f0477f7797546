/* base/worker: a thread ends when it is stopped, or is abandoned when it hangs. */
#include "base/worker.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

struct both {
	struct worker worker;
	int requested, served;
	int block[2]; /* a pipe that nobody writes to */
};

static void serve(void *ctx)
{
	struct both *b = ctx;

	worker_lock(&b->worker);
	while (!b->worker.stopping) {
		if (b->served == b->requested) {
			(void)worker_wait(&b->worker, WORKER_FOREVER);
			continue;
		}
		b->served = b->requested;
		worker_wake(&b->worker);
	}
	worker_unlock(&b->worker);
}

static void a_worker_serves_requests_until_its_end(void **state)
{
	static struct both b;
	uint64_t begin_ns = clock_monotonic_ns();

	(void)state;
	assert_int_equal(worker_start(&b.worker, "serve", serve, &b), 0);
	for (int i = 1; i <= 100; i++) {
		worker_lock(&b.worker);
		b.requested = i;
		worker_wake(&b.worker);
		while (b.served != i)
			assert_true(worker_wait(&b.worker, begin_ns + 20 * NS_PER_S));
		worker_unlock(&b.worker);
	}
	assert_true(worker_end(&b.worker, 20 * NS_PER_S));
	assert_true(b.worker.ended);
	assert_true(clock_monotonic_ns() - begin_ns < 20 * NS_PER_S);
}

static void hangs(void *ctx)
{
	struct both *b = ctx;
	char c;

	(void)!read(b->block[0], &c, 1);
}

static void a_worker_that_hangs_is_abandoned(void **state)
{
	static struct both b; /* belongs to the thread after the test abandons it */
	uint64_t begin_ns;

	(void)state;
	assert_int_equal(pipe(b.block), 0);
	assert_int_equal(worker_start(&b.worker, "hangs", hangs, &b), 0);
	begin_ns = clock_monotonic_ns();
	assert_false(worker_end(&b.worker, 50 * NS_PER_MS));
	assert_true(clock_monotonic_ns() - begin_ns >= 50 * NS_PER_MS);
	/* The thread's memory is still valid. */
	close(b.block[1]);
	worker_lock(&b.worker);
	while (!b.worker.ended)
		assert_true(worker_wait(&b.worker, begin_ns + 20 * NS_PER_S));
	worker_unlock(&b.worker);
	close(b.block[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_worker_serves_requests_until_its_end),
		cmocka_unit_test(a_worker_that_hangs_is_abandoned),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
