/* Waits until a thread has really blocked, however busy the machine is. */
#ifndef TESTS_UNIT_WAIT_BLOCKED_H
#define TESTS_UNIT_WAIT_BLOCKED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* tid: a thread or process. Returns when it sleeps or has ended; aborts the test after 60 s. */
static inline void wait_blocked(pid_t tid)
{
	char path[64], line[512], state = 'R';

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	for (int i = 0; i < 60000 && !strchr("SZX", state); i++) {
		FILE *file = fopen(path, "re");

		if (!file)
			return;
		const char *end = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;

		state = end && end[1] ? end[2] : 'R';
		fclose(file);
		usleep(1000);
	}
	if (!strchr("SZX", state)) {
		fprintf(stderr, "thread %d does not block\n", tid);
		abort();
	}
}

#endif
