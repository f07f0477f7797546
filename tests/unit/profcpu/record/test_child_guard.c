#include "profcpu/record/child_guard.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define WAIT_MS 20000

static pid_t waiting_child(void)
{
	pid_t pid = fork();

	if (!pid) {
		alarm(60); /* so that a failed test leaves none */
		for (;;)
			pause();
	}
	return pid;
}

/* Waits for the end of a child or an adopted process. Returns its status; -1: it lives on. */
static int status_within(pid_t pid, int ms)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	int status;

	for (int i = 0; i < ms; i++) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		assert_true(ended >= 0);
		if (ended == pid)
			return status;
		nanosleep(&moment, NULL);
	}
	return -1;
}

enum what_next {
	BE_KILLED,
	END_WITHOUT_A_WORD,
	END_THE_GUARD,
};

/* Runs a process that guards its child and another one. Returns its pid. */
static pid_t guarding(enum what_next next, pid_t other, pid_t *ret_child)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();

	if (!pid) {
		struct child_guard guard;
		pid_t child = waiting_child();

		if (child_guard_new(child, &guard))
			_exit(1);
		child_guard_add(&guard, other);
		if (next == END_THE_GUARD)
			child_guard_end(&guard);
		if (write(fds[1], &child, sizeof(child)) != sizeof(child))
			_exit(1);
		while (next == BE_KILLED)
			pause();
		_exit(0);
	}
	close(fds[1]);
	assert_true(pid > 0);
	assert_int_equal(read(fds[0], ret_child, sizeof(*ret_child)), sizeof(*ret_child));
	close(fds[0]);
	return pid;
}

static void both_end_with_their_guardian(enum what_next next)
{
	pid_t child, other = waiting_child(), pid = guarding(next, other, &child);

	if (next == BE_KILLED)
		kill(pid, SIGKILL);
	assert_int_not_equal(status_within(pid, WAIT_MS), -1);
	assert_int_equal(status_within(child, WAIT_MS), SIGKILL);
	assert_int_equal(status_within(other, WAIT_MS), SIGKILL);
}

static void a_command_is_ended_if_we_are_killed(void **state)
{
	(void)state;
	both_end_with_their_guardian(BE_KILLED);
}

static void a_command_is_ended_if_we_exit_without_a_word(void **state)
{
	(void)state;
	both_end_with_their_guardian(END_WITHOUT_A_WORD);
}

static void a_command_outlives_an_ended_guard(void **state)
{
	pid_t child, other = waiting_child(), pid = guarding(END_THE_GUARD, other, &child);

	(void)state;
	assert_int_equal(status_within(pid, WAIT_MS), 0);
	assert_int_equal(status_within(child, 200), -1);
	assert_int_equal(status_within(other, 1), -1);
	kill(child, SIGTERM);
	kill(other, SIGTERM);
	assert_int_equal(status_within(child, WAIT_MS), SIGTERM);
	assert_int_equal(status_within(other, WAIT_MS), SIGTERM);
}

static void without_a_guard_nothing_happens(void **state)
{
	struct child_guard none = {0};

	(void)state;
	child_guard_add(&none, getpid());
	child_guard_end(&none);
}

/* Children of processes that end become ours. */
static int adopt(void **state)
{
	(void)state;
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_is_ended_if_we_are_killed),
		cmocka_unit_test(a_command_is_ended_if_we_exit_without_a_word),
		cmocka_unit_test(a_command_outlives_an_ended_guard),
		cmocka_unit_test(without_a_guard_nothing_happens),
	};

	return cmocka_run_group_tests(tests, adopt, NULL);
}
