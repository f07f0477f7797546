#include "profcpu/record/exit_notice.h"

#include "base/cleanup.h"
#include "base/shell_word.h"
#include "profcpu/record/watch.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Formatted in advance, because a signal handler may call very few functions. */
static struct {
	char text[4 * PATH_MAX + 128];
	size_t len;
	int fds_max; /* no descriptor is as large as this */
} exit_notice;

static volatile sig_atomic_t exit_notice_passes;

/* Do not block on stderr, which may have no reader; a blocked write would keep the program alive.
 */
static void exit_notice_say(int signal_number)
{
	static volatile sig_atomic_t said;
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (exit_notice_passes) {
		exit_notice_passes = 0;
		record_watch_ignore_more(signal_number);
		return;
	}
	if (!said && poll(&ready, 1, 0) > 0 && ready.revents & POLLOUT &&
	    write(STDERR_FILENO, exit_notice.text, exit_notice.len) < 0)
		exit_notice.len = 0;
	said = 1;
	/* Else readers of our output may wait for a silent process, see ask_leave. */
	if (syscall(SYS_close_range, 0, ~0u, 0)) /* Linux before 5.9 */
		for (int fd = 0; fd < exit_notice.fds_max; fd++)
			close(fd);
	if (getpid() == 1) /* of a PID namespace: the kernel would ignore the signal */
		_exit(128 + signal_number);
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* the signal is delivered when this returns */
}

void exit_notice_pass_none(void)
{
	exit_notice_passes = 0;
}

void exit_notice_set(const char *dir, bool pass_one)
{
	struct sigaction act = {.sa_handler = exit_notice_say, .sa_flags = SA_RESTART}, old;
	AUTO_FREE char *word = shell_word(dir);
	/* Start a new line, because the terminal shows ^C. */
	int n = snprintf(exit_notice.text, sizeof(exit_notice.text),
			 "%sprofcpu: the samples are in %s; run `profcpu postprocess %s` to make "
			 "the outputs\n",
			 isatty(STDERR_FILENO) ? "\n" : "", word ? word : dir, word ? word : "DIR");

	if (n < 0 || (size_t)n >= sizeof(exit_notice.text))
		return;
	exit_notice.len = (size_t)n;
	exit_notice.fds_max = (int)sysconf(_SC_OPEN_MAX);
	exit_notice_passes = pass_one;
	act.sa_mask = record_watch_signals();
	for (int number = 1; number <= SIGRTMAX; number++)
		if (sigismember(&act.sa_mask, number) == 1 && !sigaction(number, NULL, &old) &&
		    old.sa_handler == SIG_DFL)
			sigaction(number, &act, NULL);
}
