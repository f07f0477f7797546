/*
 * The table of commands. A new command is one file, one declaration here, and one line in
 * command.c.
 */
#ifndef PROFCPU_COMMAND_H
#define PROFCPU_COMMAND_H

#include "base/exit_status.h"

#include <stdio.h>

struct command {
	const char *name;    /* "collect" */
	const char *summary; /* one line for `profcpu help` */
	const char *usage;   /* whole text of `profcpu help NAME`; ends with a newline */
	int (*run)(int argc, char **argv); /* argv[0] is the name; returns an exit status */
};

extern const struct command command_collect, command_compare, command_postprocess, command_fold,
	command_flamegraph, command_ps, command_doctor, command_symbols, command_stacks,
	command_trace, command_events, command_counters, command_info, command_env, command_dump,
	command_load, command_resume, command_help, command_version;

/* The command with this name; NULL: none. */
const struct command *command_find(const char *name);

/*
 * Flushes stdout at the end of a command. Returns status, or EXIT_FAILED if flushing fails for
 * another reason than a missing reader. log_error reports that, unless status is EXIT_FAILED
 * already.
 */
int command_end(int status);

/* Prints the text of `profcpu help`: the commands and the exit status. */
void help_overview(FILE *out);

/* All commands, ended by NULL. */
extern const struct command *const command_table[];

#endif
