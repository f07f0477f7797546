#include "base/progress.h"

#include "base/clock.h"
#include "base/file.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_COLUMNS 79
#define PROGRESS_INTERVAL_NS (200 * NS_PER_MS)

struct progress progress_to(int fd, bool quiet)
{
	return (struct progress){.fd = fd, .shown = !quiet && isatty(fd)};
}

/* A terminal that went away is no reason to stop recording: write errors are ignored here. Neither is one that was
 * stopped (Ctrl-S): a write to it would wait, while the rings run over. */
static void progress_write(struct progress *p, const char *text, int columns)
{
	struct pollfd ready = {.fd = p->fd, .events = POLLOUT};
	char line[2 * PROGRESS_COLUMNS + 4];
	int pad = p->width > columns ? p->width - columns : 0;
	int n = snprintf(line, sizeof(line), "\r%s%*s\r%s", text, pad, "", columns ? text : "");

	if (n > 0 && poll(&ready, 1, 0) > 0 && ready.revents & POLLOUT)
		(void)file_write_all(p->fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
	p->width = columns;
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

void progress_clear(struct progress *p)
{
	if (p->shown && p->width)
		progress_write(p, "", 0);
}
