/*
 * The directory that a command writes its outputs to. The commands decide what may be in it
 * already: collect replaces a recording (record_begin.c), postprocess refuses another one
 * (cmd_postprocess.c).
 */
#ifndef PROFCPU_POST_OUTDIR_H
#define PROFCPU_POST_OUTDIR_H

/*
 * Opened once and locked against other profcpus. Open everything in it relative to fd: then nothing
 * goes elsewhere if the directory is moved or replaced.
 */
struct outdir {
	int fd;     /* -1: none */
	char *path; /* for messages */
};

#define OUTDIR_NONE ((struct outdir){.fd = -1})

/*
 * Opens the directory `wanted`, and makes it if it is missing; its parent must exist. With NULL,
 * makes a new one: profilings/HH-MM-SS_YYYY-MM-DD, with _2, _3, ... if that exists.
 * 0; -errno after one log_error line. post_outdir_release ends it.
 */
int post_outdir_make(const char *wanted, struct outdir *ret_dir);

/*
 * Opens an existing directory. Follows only links that root or this user owns, anywhere in the
 * path. The owner of the directory must be root, this user, or the owner of the directory above. 0;
 * -EPERM after one log_error line: another owner. -errno: it cannot be opened. The caller closes
 * *ret_fd.
 */
int post_outdir_open(const char *path, int *ret_fd);

/*
 * Opens the directory of a recording that gets its outputs too. Follows links as post_outdir_open
 * does. Any user may own it. 0; -errno after one log_error line. The caller closes *ret_fd.
 */
int post_outdir_open_recording(const char *path, int *ret_fd);

/* Uses a copy of dir_fd, the descriptor of an open directory. Like post_outdir_make. */
int post_outdir_use(int dir_fd, const char *path, struct outdir *ret_dir);

/* Removes the directory if it is empty and still has its name, wherever it is by now. */
void post_outdir_remove_empty(const struct outdir *dir);

/* Closes and frees. OUTDIR_NONE is allowed. */
void post_outdir_release(struct outdir *dir);

#endif
