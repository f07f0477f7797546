#include "base/remedy.h"

#include <errno.h>

const char *remedy_for(int error)
{
	switch (-error) {
	case ENOMEM:
		return "; raise the limit of memory (ulimit -v, or the container's) or use a "
		       "machine with more memory";
	case EAGAIN: /* of a new thread or process */
		return "; raise the limits of threads (ulimit -u, pids.max) and memory (ulimit -v)";
	case ENOSPC:
	case EDQUOT:
		return "; make room or choose another directory with -o";
	case EFBIG:
		return "; raise the limit (ulimit -f)";
	case EMFILE:
		return "; raise the limit (ulimit -n)";
	case EACCES:
	case EROFS:
	case EPERM:
		return "; choose a writable directory with -o";
	case ELIBACC:
		return "; install libcurl.so.4 (package libcurl4)";
	default:
		return "";
	}
}

bool remedy_is_disk_full(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

const char *remedy_for_stdout(int error)
{
	if (remedy_is_disk_full(error))
		return "; make room where stdout goes, or redirect it elsewhere";
	return error == -EFBIG ? remedy_for(error) : "";
}
