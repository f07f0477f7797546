/* Copies a recording into an empty directory, and opens the copy. */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"
#include "base/replace.h"
#include "profcpu/post/open_impl.h"
#include "symbols/jit/methods_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* Copies a file into a directory, where it appears whole or not at all. */
static int copy_file(int fd, int dir_fd, const char *name)
{
	struct replace file;
	int r = replace_open(&file, dir_fd, name, REPLACE_PRIVATE);

	if (!r)
		r = file_copy(fd, file.fd);
	if (!r)
		r = replace_commit(&file);
	replace_abort(&file);
	return r;
}

/* Copies a file of symbols/ into another symbols/; ctx is its descriptor. */
static int copy_symbols_file(void *ctx, int from_fd, const char *name, pid_t pid)
{
	const int *to_fd = ctx;
	AUTO_CLOSE int fd = -1;
	int r = file_open_regular(from_fd, name, &fd);

	(void)pid;
	return r ? r : copy_file(fd, *to_fd, name);
}

/*
 * Copies the names of a recording, as far as they exist, into a new symbols/ in dir_fd. *ret_fd is
 * that, or unchanged without names.
 */
static int copy_names(const struct post_source *s, int dir_fd, int *ret_fd)
{
	AUTO_CLOSE int symbols_fd = -1;

	if (s->store_fd < 0)
		return 0;
	if (mkdirat(dir_fd, RECORDING_SYMBOLS, 0700))
		return -errno;
	symbols_fd =
		openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = symbols_fd < 0 ? -errno
			       : copy_symbols_file(&symbols_fd, s->store_fd, RECORDING_NAMES, 0);

	if (!r || r == -ENOENT)
		r = copy_symbols_file(&symbols_fd, s->store_fd, RECORDING_STACKS, 0);
	if (!r || r == -ENOENT)
		r = jit_methods_each_file(s->store_fd, copy_symbols_file, &symbols_fd);
	if (!r)
		*ret_fd = TAKE_FD(symbols_fd);
	return r;
}

int post_open_copy(struct post_source *s, const char *name, int own_dir_fd)
{
	AUTO_CLOSE int fd = -1, symbols_fd = -1, dir_fd = fcntl(own_dir_fd, F_DUPFD_CLOEXEC, 0);
	int r = dir_fd < 0 ? -errno : copy_file(s->fd, dir_fd, RECORDING_PERF_DATA);

	if (!r)
		r = copy_names(s, dir_fd, &symbols_fd);
	if (!r && s->samples_fd >= 0)
		r = copy_file(s->samples_fd, dir_fd, RECORDING_SAMPLES);
	if (!r && s->offcpu_fd >= 0)
		r = copy_file(s->offcpu_fd, dir_fd, RECORDING_OFFCPU);
	if (!r && s->trace_fd >= 0)
		r = copy_file(s->trace_fd, dir_fd, RECORDING_TRACE);
	if (!r && s->trace_threads_fd >= 0)
		r = copy_file(s->trace_threads_fd, dir_fd, RECORDING_TRACE_THREADS);
	if (!r && s->has_manifest)
		r = recording_manifest_write(dir_fd, &s->manifest);
	if (!r)
		r = file_open_regular(dir_fd, RECORDING_PERF_DATA, &fd);
	/* Keep the number, because s->data reads on from it. */
	if (!r && dup3(fd, s->fd, O_CLOEXEC) < 0)
		r = -errno;
	if (r) {
		log_error("cannot copy %s: %s%s", name, strerror(-r), remedy_for(r));
		return r;
	}
	s->lacks_manifest = !s->has_manifest;
	cleanup_close(&s->dir_fd);
	cleanup_close(&s->store_fd);
	s->dir_fd = TAKE_FD(dir_fd);
	s->store_fd = TAKE_FD(symbols_fd);
	return 0;
}
