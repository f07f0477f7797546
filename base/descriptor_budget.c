#include "base/descriptor_budget.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/resource.h>

size_t descriptor_budget_raise(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 1024;
	if (limit.rlim_cur < limit.rlim_max) {
		struct rlimit raised = {limit.rlim_max, limit.rlim_max};

		if (!setrlimit(RLIMIT_NOFILE, &raised))
			limit = raised;
	}
	return limit.rlim_cur > SIZE_MAX ? SIZE_MAX : (size_t)limit.rlim_cur;
}

size_t descriptor_budget_above(int fd)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return SIZE_MAX;
	return limit.rlim_cur > (rlim_t)fd + 1 ? (size_t)limit.rlim_cur - (size_t)fd - 1 : 0;
}

/*
 * Counts from the top, because the free numbers are there. Opening descriptors to count them would
 * briefly take them from other threads.
 */
size_t descriptor_budget_left(size_t wanted)
{
	struct rlimit limit = {0};
	size_t n = 0;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
	     fd > 0 && n < wanted; fd--)
		n += fcntl(fd - 1, F_GETFD) < 0;
	return n;
}

int descriptor_budget_check(size_t wanted)
{
	struct rlimit limit = {0};
	size_t left = descriptor_budget_left(wanted);

	if (left == wanted)
		return 0;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	log_error("cannot record: the limit of %llu open files leaves only %zu besides the events; "
		  "raise it to %llu or more (ulimit -n)",
		  (unsigned long long)limit.rlim_cur, left,
		  (unsigned long long)limit.rlim_cur + wanted - left);
	return -EMFILE;
}
