/* Options of a command line: their walk, numbers and lists in their arguments, with one way of refusing them. */
#ifndef PROFCPU_OPTIONS_H
#define PROFCPU_OPTIONS_H

#include "base/vec.h"

#include <getopt.h>
#include <stdint.h>
#include <sys/types.h>

struct command;

/*
 * The next option, as getopt_long_only gives it, except that one letter never stands for a long option; shorts begins with ":"
 * (or "+:"), values of longs are letters of it or 256 and more, and optind is 0 before the first call. -1: no more; '?' after one
 * line by log_error that says what is wrong, where the options are shown, and of some of perf's options what there is instead.
 */
int options_next(const struct command *command, int argc, char **argv, const char *shorts, const struct option *longs);

/* What is left is one argument at most, which is given back, else `otherwise`. 0; -EINVAL as above. */
int options_one_argument(const struct command *command, int argc, char **argv, const char *otherwise, const char **ret_argument);

/* Nothing is left. 0; -EINVAL as above. */
int options_no_argument(const struct command *command, int argc, char **argv);

/* A whole number from min to max. 0; -EINVAL after one line by log_error that names the option. */
int options_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* A number with or without decimals, from min to max; `what` is said of it. 0; -EINVAL as above. */
int options_decimal(const char *option, const char *what, const char *text, double min, double max, double *ret_value);

/* Seconds, with decimals or a suffix ("10", "0.5", "500ms", "2m"), at least a millisecond, at most 366 days.
 * 0; -EINVAL as above. */
int options_duration(const char *option, const char *text, uint64_t *ret_ns);

/* "1,2,3" appended to pids. 0; -EINVAL as above; -ENOMEM. */
struct options_pids {
	VEC(pid_t) list;
};
int options_pids(const char *option, const char *text, struct options_pids *pids);

#endif
