#include "container/ask.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Over the largest PID of Linux, so no process has it. */
#define NO_PID (1 << 23)
#define SLOW_PID (NO_PID - 1)
#define QUICK_PID (NO_PID - 2)

static atomic_bool may_answer, was_dropped;
static atomic_int answered;

struct question {
	int number, answer;
	char *owned;
};

static int twice(void *state)
{
	struct question *q = state;

	q->answer = 2 * q->number;
	return q->number < 0 ? -EINVAL : 0;
}

static int slowly(void *state)
{
	while (!may_answer)
		usleep(1000);
	answered++;
	return twice(state);
}

static int from_inside(void *state)
{
	struct question *q = state, inner = {.number = q->number};
	int r = ask(SLOW_PID, twice, NULL, &inner, sizeof(inner));

	q->answer = inner.answer;
	return r;
}

static void drop(void *state)
{
	free(((struct question *)state)->owned);
	was_dropped = true;
}

static bool wait_for(const atomic_bool *condition)
{
	for (int i = 0; i < 10000 && !*condition; i++)
		usleep(1000);
	return *condition;
}

static void an_answer_comes_back(void **state)
{
	struct question q = {.number = 21};

	(void)state;
	assert_int_equal(ask(QUICK_PID, twice, drop, &q, sizeof(q)), 0);
	assert_int_equal(q.answer, 42);
	q.number = -1;
	assert_int_equal(ask(QUICK_PID, twice, drop, &q, sizeof(q)), -EINVAL);
	assert_int_equal(q.answer, -2);
	assert_false(was_dropped);
}

static void a_call_from_inside_runs_directly(void **state)
{
	struct question q = {.number = 4};

	(void)state;
	assert_int_equal(ask(QUICK_PID, from_inside, NULL, &q, sizeof(q)), 0);
	assert_int_equal(q.answer, 8);
}

static void a_silent_process_is_not_asked_again_until_it_answers(void **state)
{
	struct question q = {.number = 3, .owned = strdup("text")};

	(void)state;
	may_answer = was_dropped = false;
	assert_int_equal(ask(SLOW_PID, slowly, drop, &q, sizeof(q)), -ETIME);
	assert_int_equal(q.answer, 0);
	assert_false(was_dropped);
	assert_int_equal(ask_silent(), 1);
	/* At once, and what the question owns is freed. */
	q.owned = strdup("text");
	assert_int_equal(ask(SLOW_PID, twice, drop, &q, sizeof(q)), -ETIME);
	assert_true(was_dropped);
	assert_int_equal(ask_silent(), 1);
	/* Another process still answers. */
	assert_int_equal(ask(QUICK_PID, twice, NULL, &q, sizeof(q)), 0);
	was_dropped = false;
	may_answer = true;
	assert_true(wait_for(&was_dropped));
	assert_int_equal(answered, 1);
	q.answer = 0;
	int r;

	for (int i = 0; i < 1000; i++) {
		r = ask(SLOW_PID, twice, NULL, &q, sizeof(q));
		if (!r)
			break;
		usleep(10000);
	}
	assert_int_equal(r, 0);
	assert_int_equal(q.answer, 6);
}

static int late(void *state)
{
	usleep(200000);
	return twice(state);
}

/* Answers may come just in time, again and again. Uses up the waits. */
static void late_answers_cost_limited_time(void **state)
{
	struct question q = {.number = 1};
	int answers = 0;

	(void)state;
	while (answers < 100 && !ask(NO_PID + 1000 + answers, late, NULL, &q, sizeof(q)))
		answers++;
	assert_in_range(answers, 1, ASK_WAITS_MS / 200 + 1);
}

static int busily(void *state)
{
	const clock_t end = clock() + CLOCKS_PER_SEC / 10;

	while (clock() < end)
		;
	return twice(state);
}

/* The waits are used up. On a busy machine, an answer is late although nothing holds it back. */
static void a_thread_that_runs_is_waited_for(void **state)
{
	struct question q = {.number = 5};

	(void)state;
	assert_int_equal(ask(QUICK_PID, busily, NULL, &q, sizeof(q)), 0);
	assert_int_equal(q.answer, 10);
}

/* As in a container whose filter does not know prctl. */
static int ask_without_prctl(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	const struct sock_fprog filter = {sizeof(code) / sizeof(code[0]), code};
	struct question q = {.number = 21};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter))
		return 77;
	return ask(QUICK_PID, twice, NULL, &q, sizeof(q)) || q.answer != 42 ? 1 : 42;
}

static void a_filter_of_system_calls_leaves_answers(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(ask_without_prctl());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 42);
}

/* Runs last. */
static void many_silent_processes_cost_limited_time_and_threads(void **state)
{
	struct question q = {.number = 1};

	(void)state;
	may_answer = false;
	uint64_t before = ask_silent();

	/* PIDs of no process, so of no user. */
	for (pid_t pid = NO_PID; pid < NO_PID + ASK_SILENT_USER_MAX; pid++)
		assert_int_equal(ask(pid, slowly, NULL, &q, sizeof(q)), -ETIME);
	assert_int_equal(ask_silent(), before + ASK_SILENT_USER_MAX);
	/* There are enough of them. The others count once each. */
	for (int i = 0; i < 2; i++)
		assert_int_equal(ask(QUICK_PID, twice, NULL, &q, sizeof(q)), -ETIME);
	assert_int_equal(ask_silent(), before + ASK_SILENT_USER_MAX + 1);
	/* Another user's processes are asked. */
	assert_int_equal(ask(getppid(), twice, NULL, &q, sizeof(q)), 0);
	may_answer = true;
	for (int i = 0; i < 1000 && ask(QUICK_PID, twice, NULL, &q, sizeof(q)); i++)
		usleep(10000);
	assert_int_equal(ask(QUICK_PID, twice, NULL, &q, sizeof(q)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_comes_back),
		cmocka_unit_test(a_call_from_inside_runs_directly),
		cmocka_unit_test(a_silent_process_is_not_asked_again_until_it_answers),
		cmocka_unit_test(late_answers_cost_limited_time),
		cmocka_unit_test(a_thread_that_runs_is_waited_for),
		cmocka_unit_test(a_filter_of_system_calls_leaves_answers),
		cmocka_unit_test(many_silent_processes_cost_limited_time_and_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
