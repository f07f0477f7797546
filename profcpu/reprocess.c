#include "profcpu/reprocess.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/command.h"
#include "profcpu/post/outdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The directory of -o before anything is written there. */
struct reprocess_dir {
	int fd; /* -1: it does not exist yet */
	bool is_empty;
	bool has_recording, has_manifest;
	struct recording_manifest manifest;
};

static bool reprocess_dir_is_empty(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		cleanup_close(&fd);
		return false;
	}
	while (n <= 2 && readdir(dir))
		n++;
	closedir(dir);
	return n <= 2;
}

/* 0, also if the directory cannot be opened; -EPERM after one log_error line: another owner. */
static int reprocess_dir_probe(const char *path, struct reprocess_dir *d)
{
	struct parse_error err;
	int r;

	*d = (struct reprocess_dir){.fd = -1};
	r = path ? post_outdir_open(path, &d->fd) : -ENOENT;
	if (r)
		return r == -EPERM ? r : 0;
	r = recording_manifest_read(d->fd, &d->manifest, NULL, &err);

	/* A broken manifest does not count: other programs have files of that name too. */
	d->has_manifest = !r;
	d->has_recording = !r || r == -ENOTSUP ||
			   !faccessat(d->fd, RECORDING_PERF_DATA, F_OK, AT_SYMLINK_NOFOLLOW) ||
			   !faccessat(d->fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW);
	d->is_empty = reprocess_dir_is_empty(d->fd);
	return 0;
}

static void reprocess_dir_release(struct reprocess_dir *d)
{
	if (d->has_manifest)
		recording_manifest_free(&d->manifest);
	cleanup_close(&d->fd);
}

static bool reprocess_is_file_of(const struct stat *input, int dir_fd, const char *name)
{
	struct stat st;

	return !fstatat(dir_fd, name, &st, 0) && st.st_dev == input->st_dev &&
	       st.st_ino == input->st_ino;
}

/* Whether the input is, or was merged to, a perf.data with the same bytes as the one in d. */
static bool reprocess_is_copy(const struct post_source *source, const struct reprocess_dir *d)
{
	AUTO_CLOSE int fd = -1;

	return (source->kind == INPUT_PERF_DATA || source->kind == INPUT_PERF_DIR) &&
	       !file_open_regular(d->fd, RECORDING_PERF_DATA, &fd) && file_equal(source->fd, fd);
}

/*
 * Whether the input is the recording in d: one of its files, or a copy. A copy has the same bytes,
 * or the same start and machine.
 */
static bool reprocess_is_same(const struct post_source *source, const struct reprocess_dir *d)
{
	const struct recording_manifest *a = &source->manifest, *b = &d->manifest;
	struct stat st;

	if (!fstat(source->fd, &st) && (reprocess_is_file_of(&st, d->fd, RECORDING_PERF_DATA) ||
					reprocess_is_file_of(&st, d->fd, RECORDING_SCRIPT)))
		return true;
	if (reprocess_is_copy(source, d))
		return true;
	return source->has_manifest && d->has_manifest && a->start_realtime_ns &&
	       a->start_realtime_ns == b->start_realtime_ns &&
	       a->start_monotonic_ns == b->start_monotonic_ns && a->host && b->host &&
	       !strcmp(a->host, b->host);
}

/* Refuses to write beside another recording: the picture would seem to be of that one. */
static int reprocess_check_dir(const struct post_source *source, const struct reprocess_dir *d,
			       const char *path)
{
	if (d->fd < 0)
		return 0;
	if (d->has_recording && !reprocess_is_same(source, d)) {
		log_error("%s: has another recording; choose another directory with -o", path);
		return -EEXIST;
	}
	if (!d->has_recording && !d->is_empty && input_is_recording(source->kind)) {
		log_error("%s: not empty, but a recording needs a directory of its own; choose "
			  "another one with -o",
			  path);
		return -ENOTEMPTY;
	}
	return 0;
}

/*
 * Chooses the directory for the outputs: that of -o, the recording itself, or a new one as collect
 * makes it.
 */
static int reprocess_out_dir(const struct reprocess_arguments *a, const struct reprocess_dir *there,
			     const struct post_source *source, struct outdir *ret_dir)
{
	if (there->fd >= 0)
		return post_outdir_use(there->fd, a->out, ret_dir);
	if (!a->out && source->kind == INPUT_RECORDING)
		return post_outdir_use(source->dir_fd, a->input, ret_dir);
	return post_outdir_make(a->out, ret_dir);
}

/*
 * Whether to make the input a recording in the output directory. Not for text, and not for a
 * recording that stays in place.
 */
static bool reprocess_is_copied(const struct reprocess_arguments *a,
				const struct reprocess_dir *there, const struct post_source *source)
{
	return input_is_recording(source->kind) && (a->out || source->kind != INPUT_RECORDING) &&
	       (there->fd < 0 || there->is_empty);
}

/* Opens the directory of a recording again, now with the checks of a directory for outputs. */
static int reprocess_reopen(const char *path, struct post_source *source)
{
	cleanup_close(&source->dir_fd);
	return post_outdir_open_recording(path, &source->dir_fd);
}

/*
 * Opens the input, and the directory in which it becomes a recording. If the directory of -o has
 * the same recording already, opens that one instead.
 */
static int reprocess_open(const struct reprocess_arguments *a, const struct reprocess_dir *there,
			  struct outdir *ret_dir, struct post_source *ret_source)
{
	struct post_source source;
	int r = post_open_begin(a->input, &source);

	if (r)
		return r;
	bool is_copied = reprocess_is_copied(a, there, &source);

	if (is_copied)
		r = reprocess_out_dir(a, there, &source, ret_dir);
	else if (!a->out && source.kind == INPUT_RECORDING && strcmp(a->input, "-") != 0)
		r = reprocess_reopen(a->input, &source);
	if (r) {
		post_open_close(&source);
		return r;
	}
	r = post_open_finish(&source, a->input, ret_dir->fd);
	if (r)
		return r;
	r = is_copied ? 0 : reprocess_check_dir(&source, there, a->out);
	if (!r && !is_copied && input_is_recording(source.kind) && there->has_recording) {
		post_open_close(&source);
		return post_open_dir(there->fd, a->out, NULL, ret_source);
	}
	if (r)
		post_open_close(&source);
	else
		*ret_source = source;
	return r;
}

static int reprocess_one(const struct reprocess_arguments *a, const struct reprocess_dir *there,
			 struct outdir *ret_dir, bool *ret_wrote)
{
	struct post_source source;
	int status = EXIT_FAILED;

	*ret_wrote = false;

	/*
	 * Open the input before making a directory for it, so that a wrong one leaves nothing
	 * behind.
	 */
	if (reprocess_open(a, there, ret_dir, &source))
		return EXIT_FAILED;
	if (a->options.compares && source.trace_fd < 0)
		log_error("%s has no %s, so there is nothing to compare; record one with `profcpu "
			  "compare -p PID`",
			  post_open_name(a->input), RECORDING_TRACE);
	else if (ret_dir->fd >= 0 || !reprocess_out_dir(a, there, &source, ret_dir))
		status = postprocess_run(&source, post_open_name(a->input), ret_dir, &a->options,
					 ret_wrote);
	/* The copy is not a recording, or has no outputs: remove it. */
	if (!*ret_wrote && ret_dir->fd >= 0 && reprocess_is_copied(a, there, &source))
		file_remove_contents(ret_dir->fd);
	post_open_close(&source);
	return status;
}

int reprocess_run(const struct reprocess_arguments *a)
{
	struct reprocess_dir there;
	struct outdir dir = OUTDIR_NONE;
	bool wrote = false;
	int status = EXIT_FAILED;

	if (!reprocess_dir_probe(a->out, &there))
		status = reprocess_one(a, &there, &dir, &wrote);
	if (status != EXIT_DONE && there.fd < 0)
		post_outdir_remove_empty(&dir);
	reprocess_dir_release(&there);
	/* Also after a failure: damaged input has outputs too. */
	if (wrote && !a->options.quiet)
		printf("written   %s\n", dir.path);
	post_outdir_release(&dir);
	return command_end(status);
}
