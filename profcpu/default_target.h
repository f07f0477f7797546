/* Takes and prints the target of `collect` if the command line names none (process_list.h chooses).
 */
#ifndef PROFCPU_DEFAULT_TARGET_H
#define PROFCPU_DEFAULT_TARGET_H

#include "profcpu/arguments.h"

/*
 * Appends the PID of the only .NET process in sight to pids, or PID 1 if none is in sight. One note
 * names it. EXIT_DONE; EXIT_USAGE after the list of several .NET processes; EXIT_FAILED after one
 * log_error line.
 */
int default_target(struct options_pids *pids);

#endif
