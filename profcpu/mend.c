#include "profcpu/mend.h"

#include <errno.h>

const char *mend_of(int error)
{
	switch (-error) {
	case ENOMEM:
		return "; raise the limit of memory (ulimit -v, the container's) or use a machine with more";
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
	default:
		return "";
	}
}

bool mend_is_room(int error)
{
	return error == -ENOSPC || error == -EDQUOT;
}

const char *mend_of_stdout(int error)
{
	if (mend_is_room(error))
		return "; make room where stdout goes, or let it go elsewhere";
	return error == -EFBIG ? mend_of(error) : "";
}
