/* Parts of paths. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <string.h>

/* The last part of a path: what follows its last slash. Without such a part, the whole path. */
static inline const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

#endif
