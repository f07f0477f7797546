/* A line on a terminal that shows progress. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct shows nothing. */
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
 * Erases the line. Call it after the last progress_show and before other output to the terminal.
 * Neither progress_close nor base/log.h does it.
 */
void progress_clear(struct progress *p);

/*
 * Closes the descriptor that progress_to opened; nothing is shown afterwards. Accepts a zeroed
 * struct.
 */
void progress_close(struct progress *p);

#endif
