/* container/process_list: processes that are not inspected. */
#include "container/process_list.h"

#include "container/opener.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static pid_t silent;

__typeof__(proc_status) __real_proc_status, __wrap_proc_status;

int __wrap_proc_status(pid_t pid, struct proc_status *ret_status)
{
	return pid == silent ? -ETIME : __real_proc_status(pid, ret_status);
}

static void a_process_that_does_not_answer_is_named(void **state)
{
	char text[PROCESS_LIST_DENIED_BYTES], pids[32];
	struct process_list list;
	struct opener *opener;

	(void)state;
	silent = fork();
	assert_true(silent >= 0);
	if (!silent) {
		pause();
		_exit(0);
	}
	assert_int_equal(opener_new(&opener), 0);
	int r = process_list_load(opener, true, &list);

	kill(silent, SIGKILL);
	waitpid(silent, NULL, 0);
	opener_free(opener);
	assert_int_equal(r, 0);
	assert_int_equal(list.denied.by[PROCESS_LIST_SILENT].count, 1);
	process_list_denied_text(&list.denied, text, sizeof(text));
	snprintf(pids, sizeof(pids), "(PID %d)", (int)silent);
	assert_non_null(strstr(text, pids));
	process_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_that_does_not_answer_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
