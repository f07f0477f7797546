/* profcpu/record/exit_notice: only a second signal ends profcpu while a recording is finished. */
#include "profcpu/record/exit_notice.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* Sends signals to a program with a notice. Returns the signal that ended it; 0: none did. */
static int ended_by(bool pass_one, bool finished, const int *signals, int n)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* The tests ignore none of these. */
		for (int i = 0; i < n; i++)
			signal(signals[i], SIG_DFL);
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
		exit_notice_set("dir", pass_one);
		if (finished)
			exit_notice_pass_none();
		for (int i = 0; i < n; i++)
			raise(signals[i]);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_first_signal_passes_while_a_recording_is_finished(void **state)
{
	static const int signals[] = {SIGUSR1, SIGTERM};

	(void)state;
	assert_int_equal(ended_by(true, false, signals, 1), 0);
	assert_int_equal(ended_by(true, false, signals, 2), SIGTERM);
	assert_int_equal(ended_by(true, true, signals, 2), SIGUSR1);
	assert_int_equal(ended_by(false, false, signals, 2), SIGUSR1);
}

static void signals_that_the_kernel_repeats_pass(void **state)
{
	static const int signals[] = {SIGHUP, SIGHUP, SIGXCPU, SIGXCPU};

	(void)state;
	assert_int_equal(ended_by(true, false, signals, 2), 0);
	assert_int_equal(ended_by(true, false, signals + 2, 2), 0);
	assert_int_equal(ended_by(true, false, signals, 3), SIGXCPU);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_signal_passes_while_a_recording_is_finished),
		cmocka_unit_test(signals_that_the_kernel_repeats_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
