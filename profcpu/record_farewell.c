#include "profcpu/record_farewell.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Made before, because a signal's handler may call next to nothing. */
static struct {
	char text[2 * PATH_MAX + 128];
	size_t len;
} farewell;

/* Nobody may read stderr, and a write that waits would keep the program from ending. */
static void farewell_say(int signal_number)
{
	static volatile sig_atomic_t said;
	struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};

	if (!said && poll(&ready, 1, 0) > 0 && ready.revents & POLLOUT &&
	    write(STDERR_FILENO, farewell.text, farewell.len) < 0)
		farewell.len = 0;
	said = 1;
	signal(signal_number, SIG_DFL);
	raise(signal_number); /* it comes when this returns */
}

void record_farewell_set(const char *dir)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction act = {.sa_handler = farewell_say}, old;
	/* A terminal shows ^C in the line. */
	int n = snprintf(farewell.text, sizeof(farewell.text),
			 "%sprofcpu: what was recorded is in %s; `profcpu postprocess %s` makes "
			 "the outputs of it\n",
			 isatty(STDERR_FILENO) ? "\n" : "", dir, dir);

	if (n < 0 || (size_t)n >= sizeof(farewell.text))
		return;
	farewell.len = (size_t)n;
	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&act.sa_mask, signals[i]);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(signals[i], &act, NULL);
}
