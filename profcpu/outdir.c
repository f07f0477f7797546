#include "profcpu/outdir.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define OUTDIR_PARENT "profilings"
#define OUTDIR_TRIES 1000

/*
 * In a directory where others may write, such as /tmp, somebody may have made the parent, and could then put a link in the
 * place of what is made in it. Whoever owns the working directory can do that anyhow.
 */
static int outdir_check_parent(void)
{
	struct stat here, parent;

	if (stat(".", &here) || lstat(OUTDIR_PARENT, &parent))
		return -errno;
	if (!parent.st_uid || parent.st_uid == geteuid() || parent.st_uid == here.st_uid)
		return 0;
	log_error("cannot write to %s: it belongs to user %lu, who could put other files in their place; choose another "
		  "directory with -o",
		  OUTDIR_PARENT, (unsigned long)parent.st_uid);
	return -EPERM;
}

/* One directory a second is made, and more when several recordings begin in one. */
static int outdir_make_new(char **ret_dir)
{
	char stamp[32];
	int r = 0;

	clock_dir_name(clock_realtime_ns(), stamp, sizeof(stamp));
	for (int i = 1; !r && i < OUTDIR_TRIES; i++) {
		AUTO_FREE char *dir = NULL;

		if (asprintf(&dir, i > 1 ? OUTDIR_PARENT "/%s_%d" : OUTDIR_PARENT "/%s", stamp, i) < 0) {
			dir = NULL;
			return -ENOMEM;
		}
		if (!mkdir(dir, 0777)) {
			*ret_dir = TAKE_PTR(dir);
			return 0;
		}
		if (errno != EEXIST)
			r = -errno;
	}
	return r ? r : -EEXIST;
}

int outdir_make(const char *wanted, char **ret_dir)
{
	char *dir = NULL;
	int r;

	if (wanted && !strcmp(wanted, "-")) {
		log_error("-o takes a directory; outputs are several files and cannot go to stdout");
		return -EINVAL;
	}
	if (wanted) {
		r = file_mkdirs(wanted);
		if (!r && !(dir = strdup(wanted)))
			r = -ENOMEM;
	} else {
		r = file_mkdirs(OUTDIR_PARENT);
		if (!r && outdir_check_parent())
			return -EPERM;
		if (!r)
			r = outdir_make_new(&dir);
	}
	if (!r && access(dir, W_OK | X_OK)) {
		r = -errno;
		free(dir);
	}
	if (r) {
		log_error("cannot make a directory for the outputs at %s: %s; choose one with -o",
			  wanted ? wanted : OUTDIR_PARENT, strerror(-r));
		return r;
	}
	*ret_dir = dir;
	return 0;
}

void outdir_remove_empty(const char *dir)
{
	if (!rmdir(dir) && !strncmp(dir, OUTDIR_PARENT "/", strlen(OUTDIR_PARENT "/")))
		rmdir(OUTDIR_PARENT);
}

bool outdir_is_dir(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool outdir_is_archive(const char *path)
{
	AUTO_CLOSE int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
					      : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	enum source_kind kind;

	return fd >= 0 && !source_sniff(fd, &kind) && kind == SOURCE_ARCHIVE;
}
