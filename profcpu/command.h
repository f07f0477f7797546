/* The table of commands. A new command is one file and one line in command.c. */
#ifndef PROFCPU_COMMAND_H
#define PROFCPU_COMMAND_H

#include <stdio.h>

#define EXIT_DONE 0
#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_NOT_EXECUTABLE 126 /* as shells and env(1) have it: of a command that could not be started, */
#define EXIT_NOT_FOUND 127 /* and of one that there is not */
#define EXIT_SIGNALED 128 /* and the signal's number, as shells have it: of a command that was started */

struct command {
	const char *name; /* "collect" */
	const char *summary; /* one line for `profcpu help` */
	const char *usage; /* whole text of `profcpu help NAME`, ends with a newline */
	int (*run)(int argc, char **argv); /* argv[0] is the name; gives an exit status */
};

extern const struct command command_collect, command_postprocess, command_fold, command_flamegraph, command_ps,
	command_doctor, command_symbols, command_help, command_version;

/* By name; NULL if there is none. */
const struct command *command_find(const char *name);

/* What a command ends with: status, where all that was printed has left; else EXIT_FAILED, said by log_error unless status is
 * a failure that was said already. */
int command_end(int status);

/* What `profcpu help` shows: the commands and the exit status. */
void help_overview(FILE *out);

/* All commands, ended by NULL. */
extern const struct command *const command_table[];

#endif
