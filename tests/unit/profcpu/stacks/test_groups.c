/* profcpu/stacks/groups: threads with equal stacks and states are together, the most first. */
#include "profcpu/stacks/groups.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

/* A stack "Main;NAME". Frames differ by sym_off, as versions of a method do by their addresses. */
static uint32_t stack_of(struct profile *p, const char *name, uint64_t sym_off)
{
	const char *names[] = {"Main", name};
	uint32_t stack = PROFILE_STACK_EMPTY;

	for (int i = 0; i < 2; i++) {
		struct profile_frame frame = {.addr = sym_off + 1,
					      .sym_off = sym_off,
					      .perf_name = PROFILE_NONE,
					      .module = PROFILE_NONE,
					      .srcline = PROFILE_NONE,
					      .kind = FRAME_MANAGED};
		uint32_t id;

		assert_int_equal(profile_text(p, names[i], strlen(names[i]), &frame.name), 0);
		assert_int_equal(profile_frame(p, &frame, &id), 0);
		assert_int_equal(profile_stack(p, stack, id, &stack), 0);
	}
	return stack;
}

static struct stacks_thread *add(struct stacks_threads *t, pid_t tid, const char *name)
{
	struct stacks_thread thread = {.tid = tid, .state = 'S', .number = SYS_futex};

	thread.how = STACKS_WAITING;
	snprintf(thread.name, sizeof(thread.name), "%s", name);
	assert_int_equal(vec_push(&t->list, thread), 0);
	return &t->list.v[t->list.len - 1];
}

static void threads_of_equal_stacks_are_together(void **state)
{
	struct stacks_threads t = {.pid = 1};
	struct stacks_groups g;
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	add(&t, 10, "b")->stack = stack_of(p, "Wait", 0);
	add(&t, 11, "alone")->stack = stack_of(p, "Other", 0);
	add(&t, 12, "a")->stack = stack_of(p, "Wait", 64); /* another version */
	add(&t, 13, "b")->stack = stack_of(p, "Wait", 0);
	add(&t, 14, "gone")->ended = true;
	struct stacks_thread *runs = add(&t, 15, "runs");

	runs->how = STACKS_RUNNING;
	runs->stack = stack_of(p, "Wait", 0);
	assert_int_equal(stacks_groups_make(p, &t, &g), 0);
	assert_int_equal(g.list.len, 3);
	assert_int_equal(g.list.v[0].n, 3);
	assert_int_equal(g.list.v[0].threads[0]->tid, 12); /* by name, then by id */
	assert_int_equal(g.list.v[0].threads[1]->tid, 10);
	assert_int_equal(g.list.v[0].threads[2]->tid, 13);
	assert_int_equal(g.list.v[1].threads[0]->tid, 15); /* running before waiting */
	assert_int_equal(g.list.v[2].threads[0]->tid, 11);
	stacks_groups_free(&g);
	stacks_threads_free(&t);
	profile_free(p);
}

static void other_states_are_other_groups(void **state)
{
	struct stacks_threads t = {.pid = 1};
	struct stacks_groups g;
	struct profile *p;

	(void)state;
	assert_int_equal(profile_new(&p), 0);
	for (int i = 0; i < 6; i++)
		add(&t, 20 + i, "same")->stack = stack_of(p, "Wait", 0);
	t.list.v[1].number = SYS_read;
	t.list.v[2].state = 'D';
	t.list.v[3].kernel = strdup("futex_wait\n");
	t.list.v[4].how = STACKS_NO_STACK;
	assert_int_equal(stacks_thread_why(&t.list.v[4], "no %s", "reason"), 0);
	assert_int_equal(stacks_groups_make(p, &t, &g), 0);
	assert_int_equal(g.list.len, 5);
	assert_int_equal(g.list.v[0].n, 2);
	assert_int_equal(g.list.v[0].threads[0]->tid, 20);
	assert_int_equal(g.list.v[0].threads[1]->tid, 25);
	stacks_groups_free(&g);
	stacks_threads_free(&t);
	profile_free(p);
}

static void check_state(uint8_t how, char letter, int64_t number, const char *want)
{
	const struct stacks_thread thread = {.how = how, .state = letter, .number = number};
	char text[STACKS_STATE_BYTES];

	stacks_group_state(&thread, text);
	assert_string_equal(text, want);
}

static void states_are_words(void **state)
{
	(void)state;
	check_state(STACKS_RUNNING, 'R', -1, "running");
	check_state(STACKS_RUNNING, 'S', -1, "running");
	check_state(STACKS_WAITING, 'S', SYS_futex, "waiting in futex");
	check_state(STACKS_WAITING, 'R', SYS_futex, "waiting in futex"); /* it was woken since */
	check_state(STACKS_WAITING, 'D', SYS_read, "waiting in read (uninterruptible)");
	check_state(STACKS_WAITING, 'S', -1, "waiting for a page of memory");
	check_state(STACKS_WAITING, 'T', -1, "stopped");
	check_state(STACKS_WAITING, 't', SYS_read, "stopped by a debugger in read");
	check_state(STACKS_WAITING, 'S', INT64_MAX, "waiting in system call 9223372036854775807");
	check_state(STACKS_NO_STACK, 'Z', -1, "ended");
	check_state(STACKS_NO_STACK, 'R', -1, "running");
	check_state(STACKS_MANAGED, 'S', -1, "waiting");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_equal_stacks_are_together),
		cmocka_unit_test(other_states_are_other_groups),
		cmocka_unit_test(states_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
