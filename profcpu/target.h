/* Whom to profile when nobody said. */
#ifndef PROFCPU_TARGET_H
#define PROFCPU_TARGET_H

#include "profcpu/options.h"

/*
 * The only .NET process in sight, said in one line; PID 1 where there is none. With several prints the list and gives
 * EXIT_USAGE. Appends the PID to pids and gives EXIT_DONE; EXIT_FAILED after a line by log_error.
 */
int target_default(struct options_pids *pids);

#endif
