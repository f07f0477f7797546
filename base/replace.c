#include "base/replace.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int replace_open(struct replace *r, int dir_fd, const char *name, mode_t mode)
{
	*r = (struct replace){.dir_fd = dir_fd, .fd = -1};
	if (strlen(name) > REPLACE_NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(r->name, name);
	snprintf(r->temp, sizeof(r->temp), "%s.%ld.tmp", name, (long)getpid());
	return file_create(dir_fd, r->temp, O_WRONLY, mode, &r->fd);
}

int replace_commit(struct replace *r)
{
	int fd = r->fd, error = 0;

	r->fd = -1;
	/* Some file systems (NFS, quotas) tell of a full disk only now. */
	if (close(fd) || renameat(r->dir_fd, r->temp, r->dir_fd, r->name))
		error = -errno;
	if (error)
		unlinkat(r->dir_fd, r->temp, 0);
	return error;
}

int replace_commit_durably(struct replace *r)
{
	int error = file_sync(r->fd);

	if (error) {
		replace_abort(r);
		return error;
	}
	error = replace_commit(r);
	return error || r->dir_fd == AT_FDCWD ? error : file_sync(r->dir_fd);
}

void replace_abort(struct replace *r)
{
	if (r->fd < 0)
		return;
	close(r->fd);
	r->fd = -1;
	unlinkat(r->dir_fd, r->temp, 0);
}
