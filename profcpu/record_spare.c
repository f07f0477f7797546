#include "profcpu/record_spare.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>

/* From the top, where the free ones are; taking some to see would leave another thread without for a moment. */
size_t record_spare_count(size_t wanted)
{
	struct rlimit limit = {0};
	size_t n = 0;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur; fd > 0 && n < wanted; fd--)
		n += fcntl(fd - 1, F_GETFD) < 0;
	return n;
}

int record_spare_check(size_t wanted)
{
	struct rlimit limit = {0};
	size_t spare = record_spare_count(wanted);

	if (spare == wanted)
		return 0;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	log_error("cannot record with a limit of %llu open files: the events leave %zu for all "
		  "else; raise it to %llu or more (ulimit -n)",
		  (unsigned long long)limit.rlim_cur, spare,
		  (unsigned long long)limit.rlim_cur + wanted - spare);
	return -EMFILE;
}
