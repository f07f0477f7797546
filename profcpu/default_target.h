/* Takes and prints the target of a command if its line names none (process_list.h chooses). */
#ifndef PROFCPU_DEFAULT_TARGET_H
#define PROFCPU_DEFAULT_TARGET_H

#include "profcpu/arguments.h"

#include <stdbool.h>

/*
 * Appends the PID of the only .NET process in sight to pids. If none is in sight, appends PID 1, or
 * fails with dotnet: the command needs a .NET runtime. One note names the process. EXIT_DONE;
 * EXIT_USAGE after the list of several .NET processes; EXIT_FAILED after one log_error line.
 */
int default_target(struct options_pids *pids, bool dotnet);

/* The same for a command of one process: sets *pid if it is 0. */
int default_target_one(pid_t *pid, bool dotnet);

#endif
