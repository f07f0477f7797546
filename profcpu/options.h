/* Reading numbers and lists out of option arguments, with one way of refusing them. */
#ifndef PROFCPU_OPTIONS_H
#define PROFCPU_OPTIONS_H

#include "base/vec.h"

#include <stdint.h>
#include <sys/types.h>

/* A whole number from min to max. 0; -EINVAL after one line by log_error that names the option. */
int options_u64(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *ret_value);

/* Seconds, with decimals or a suffix ("10", "0.5", "500ms", "2m"), at least a millisecond, at most a year.
 * 0; -EINVAL as above. */
int options_duration(const char *option, const char *text, uint64_t *ret_ns);

/* "1,2,3" appended to pids. 0; -EINVAL as above; -ENOMEM. */
struct options_pids {
	VEC(pid_t) list;
};
int options_pids(const char *option, const char *text, struct options_pids *pids);

#endif
