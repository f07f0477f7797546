/* The queue of watched processes: the first one is always due first, each one is found by PID. */
#include "profcpu/jit/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define PROCESSES 300
#define CHANGES 20000

static struct jit_process processes[PROCESSES];
static bool is_in[PROCESSES];

static void check(const struct jit_queue *q)
{
	uint64_t first = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < PROCESSES; i++) {
		assert_ptr_equal(jit_queue_find(q, processes[i].pid),
				 is_in[i] ? &processes[i] : NULL);
		n += is_in[i];
		if (is_in[i] && processes[i].next_ns < first)
			first = processes[i].next_ns;
	}
	assert_int_equal(q->heap.len, n);
	assert_int_equal(q->places.len, n);
	if (n)
		assert_int_equal(q->heap.v[0]->next_ns, first);
}

static void any_changes_keep_the_first_one_first(void **state)
{
	struct jit_queue q = {0};

	(void)state;
	srand(1);
	for (size_t i = 0; i < PROCESSES; i++)
		processes[i].pid = (pid_t)(i * 7 + 1);
	for (int change = 0; change < CHANGES; change++) {
		size_t i = (size_t)rand() % PROCESSES;
		bool removes = is_in[i] && rand() % 3 == 0;

		/* Few different times, so that many are equal. */
		processes[i].next_ns = (uint64_t)(rand() % 100);
		if (removes)
			jit_queue_remove(&q, &processes[i]);
		else if (is_in[i])
			jit_queue_update(&q, &processes[i]);
		else
			assert_int_equal(jit_queue_add(&q, &processes[i]), 0);
		is_in[i] = !removes;
		if (change % 16 == 0)
			check(&q);
	}
	/* Taken in order, the times only grow. */
	for (uint64_t last = 0; q.heap.len;) {
		struct jit_process *p = q.heap.v[0];

		assert_true(p->next_ns >= last);
		last = p->next_ns;
		jit_queue_remove(&q, p);
		is_in[p - processes] = false;
		check(&q);
	}
	jit_queue_free(&q);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_changes_keep_the_first_one_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
