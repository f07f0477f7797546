#include "profcpu/record_spare.h"

#include "base/log.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

/* By opening them: whoever started us may have left some open. */
size_t record_spare_count(size_t wanted)
{
	VEC(int) fds = {0};
	size_t n;

	while (fds.len < wanted && !vec_reserve(&fds, 1)) {
		int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

		if (fd < 0)
			break;
		fds.v[fds.len++] = fd;
	}
	n = fds.len;
	for (size_t i = 0; i < n; i++)
		close(fds.v[i]);
	vec_free(&fds);
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
