/* Waits until a thread has really blocked, however busy the machine is. */
#ifndef TESTS_UNIT_WAIT_BLOCKED_H
#define TESTS_UNIT_WAIT_BLOCKED_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* tid: a thread or process. Returns when it sleeps, has ended, or after about 60 s. */
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
}

#endif
