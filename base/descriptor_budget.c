#include "base/descriptor_budget.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

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
