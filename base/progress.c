#include "base/progress.h"

#include "base/clock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_COLUMNS 79
#define PROGRESS_INTERVAL_NS (200 * NS_PER_MS)

static struct progress *on_screen; /* has a line there; NULL: none */

struct progress progress_to(int fd, bool quiet)
{
	struct progress p = {.fd = fd, .shown = !quiet && isatty(fd)};
	char path[32];

	if (!p.shown)
		return p;
	/*
	 * O_NONBLOCK belongs to the open file description, which the shell and others share. Do not
	 * set it on fd itself.
	 */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (own_fd >= 0) {
		p.fd = own_fd;
		p.own = true;
	}
	return p;
}

/*
 * A recording continues without its terminal: write errors are ignored. It also continues when the
 * terminal is stopped (Ctrl-S) or nobody reads it; a blocking write would let the rings overflow. A
 * partly written line is good enough, because the next line replaces it.
 *
 * A terminal of another user cannot be opened a second time. Then the poll prevents waiting, unless
 * another process fills the terminal between poll and write.
 */
static void progress_write(struct progress *p, const char *text, int columns)
{
	struct pollfd ready = {.fd = p->fd, .events = POLLOUT};
	char line[2 * PROGRESS_COLUMNS + 4];
	int pad = p->width > columns ? p->width - columns : 0;
	int n = snprintf(line, sizeof(line), "\r%s%*s\r%s", text, pad, "", columns ? text : "");

	size_t len = (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;

	if (n > 0 && poll(&ready, 1, 0) > 0 && ready.revents & POLLOUT &&
	    write(p->fd, line, len) > 0) {
		p->width = columns;
		on_screen = columns ? p : NULL;
	}
}

void progress_show(struct progress *p, const char *format, ...)
{
	uint64_t now = p->shown ? clock_monotonic_ns() : 0;
	char text[PROGRESS_COLUMNS + 1];
	va_list args;

	if (!p->shown || (p->last_ns && now - p->last_ns < PROGRESS_INTERVAL_NS))
		return;
	p->last_ns = now;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	progress_write(p, text, (int)strlen(text));
}

void progress_clear(void)
{
	if (on_screen)
		progress_write(on_screen, "", 0);
}

void progress_close(struct progress *p)
{
	if (on_screen == p) {
		progress_clear();
		on_screen = NULL;
	}
	if (p->own)
		close(p->fd);
	*p = (struct progress){0};
}
