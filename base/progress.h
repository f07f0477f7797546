/* A line on a terminal that shows progress. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct shows nothing. Do not move it between progress_show and progress_close. */
struct progress {
	int fd;
	bool own;   /* progress_to opened fd, without blocking */
	bool shown; /* fd is a terminal, and the user did not pass --quiet */
	uint64_t last_ns;
	int width; /* columns of the line that is on the screen */
};

/* Prepares a progress line on fd (usually 2; borrowed). Other users of fd see no change in it. */
struct progress progress_to(int fd, bool quiet);

/*
 * Replaces the line, at most five times per second. Never waits: shows nothing while the terminal
 * accepts no output.
 */
void progress_show(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Erases the line that is on the screen, whichever struct it is of. profcpu/main.c calls it before
 * each message, so that no message stands behind a line. Call it from the thread that shows.
 */
void progress_clear(void);

/*
 * Erases the line and closes the descriptor that progress_to opened; nothing is shown afterwards.
 * Accepts a zeroed struct.
 */
void progress_close(struct progress *p);

#endif
