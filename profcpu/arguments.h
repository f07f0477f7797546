/*
 * Command lines: the next option, numbers and lists in arguments, and one form for all complaints
 * about them.
 */
#ifndef PROFCPU_ARGUMENTS_H
#define PROFCPU_ARGUMENTS_H

#include "base/vec.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command;

/*
 * The next option, like getopt_long_only, except that a single letter never stands for a long
 * option.
 *
 * shorts begins with ":" or "+:". Values of longs are letters of shorts, or 256 and more. Set
 * optind to 0 before the first call.
 *
 * -1: no more options. '?' after one log_error line with the problem and `profcpu help COMMAND`.
 * For some options of perf the line also has the replacement.
 */
int options_next(const struct command *command, int argc, char **argv, const char *shorts,
		 const struct option *longs);

/* Rejects an empty name of an input. 0; -EINVAL after one log_error line. */
int options_input(const struct command *command, const char *name);

/*
 * Takes at most one argument, else `otherwise`. If that is NULL, one is required. 0; -EINVAL after
 * one log_error line.
 */
int options_one_argument(const struct command *command, int argc, char **argv,
			 const char *otherwise, const char **ret_argument);

/* Takes no argument. 0; -EINVAL after one log_error line. */
int options_no_argument(const struct command *command, int argc, char **argv);

/*
 * Takes a command behind "--", and otherwise no argument. *ret_argv: NULL if there is none. 0;
 * -EINVAL after one log_error line.
 */
int options_command(const struct command *command, int argc, char **argv, char *const **ret_argv);

/* The value of the option --allow-fs, which several commands share. */
#define OPTIONS_ALLOW_FS 512
/*
 * Permits a type of file system for files of targets (container/file_systems.h). 0; -EINVAL after
 * one log_error line.
 */
int options_allow_fs(const char *type);
/* Prints a warning for each type of file system whose files were skipped for lack of that option.
 */
void options_warn_skipped(void);

/* A whole number from min to max. 0; -EINVAL after one log_error line that names the option. */
int options_u64(const char *option, const char *text, uint64_t min, uint64_t max,
		uint64_t *ret_value);

/*
 * A number from min to max, decimals allowed. `what` names it in the message ("a percentage"). 0;
 * -EINVAL after one log_error line.
 */
int options_decimal(const char *option, const char *what, const char *text, double min, double max,
		    double *ret_value);

/*
 * A time from 1 ms to 366 days: seconds, or with a unit ("10", "0.5", "500ms", "2m"). It may also
 * be days, hours, minutes and seconds ("00:00:00:10"), as for dotnet-trace. 0; -EINVAL after one
 * log_error line.
 */
int options_duration(const char *option, const char *text, uint64_t *ret_ns);

/*
 * A size as perf's --max-size takes it: a number with the unit B, K, M or G ("100M"), from 1 byte
 * to 2^63 - 1. 0; -EINVAL after one log_error line.
 */
int options_size(const char *option, const char *text, uint64_t *ret_bytes);

/* The argument of --max-stack: frames of a stack. 0; -EINVAL after one log_error line. */
int options_max_stack(const char *text, size_t *ret_frames);

/*
 * The argument of --diagnostic-port: "PATH[,listen|,connect]", where listen is the default. Frees
 * *socket and sets it to PATH, which the caller frees. 0; -EINVAL or -ENOMEM after one log_error
 * line.
 */
int options_port(const char *text, char **socket, bool *ret_listen);

/* Process ids such as "1,2,3". Free list with vec_free. */
struct options_pids {
	VEC(pid_t) list;
};

/* Appends the process ids of text to pids. 0; -EINVAL or -ENOMEM after one log_error line. */
int options_pids(const char *option, const char *text, struct options_pids *pids);

#endif
