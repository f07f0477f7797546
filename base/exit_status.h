/*
 * Exit statuses of profcpu. Those for a command that profcpu starts are the ones that shells and
 * env(1) use.
 */
#ifndef BASE_EXIT_STATUS_H
#define BASE_EXIT_STATUS_H

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_EXECUTABLE 126 /* the command exists but cannot be executed */
#define EXIT_NOT_FOUND 127      /* the command was not found */
#define EXIT_SIGNALED 128       /* plus the number of the signal that ended the command */

#endif
