/* One line on a terminal that says how far something is. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* A zeroed struct shows nothing. */
struct progress {
	int fd;
	bool own; /* fd is a description of our own, which does not block */
	bool shown; /* only where fd is a terminal and the user did not say --quiet */
	uint64_t last_ns;
	int width; /* columns of the line on the screen now */
};

/* fd: usually 2; borrowed, and as it was for those who share it. */
struct progress progress_to(int fd, bool quiet);

/* Replaces the line, at most five times a second, and not while the terminal takes nothing: it never waits. */
void progress_show(struct progress *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Wipes the line, so that other output can follow. */
void progress_clear(struct progress *p);

/* Closes what progress_to opened; nothing is shown from then on. Fine on a zeroed struct. */
void progress_close(struct progress *p);

#endif
