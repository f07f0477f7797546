/* The directory that a command writes its outputs to. */
#ifndef PROFCPU_OUTDIR_H
#define PROFCPU_OUTDIR_H

/*
 * Opened once: everything in it is opened relative to fd, so that nothing goes elsewhere when the directory is moved, or
 * another one takes its place.
 */
struct outdir {
	int fd; /* -1: none */
	char *path; /* for messages */
};

#define OUTDIR_NONE ((struct outdir){.fd = -1})

/*
 * Makes the directory `wanted`, but none that it would stand in, where it is not there yet; or with NULL a new one
 * profilings/HH-MM-SS_YYYY-MM-DD (with _2, _3 ... where that exists). 0 (ended by outdir_release), or -errno after one
 * line by log_error.
 */
int outdir_make(const char *wanted, struct outdir *ret_dir);

/* A directory that is open already, by a descriptor of its own. As outdir_make. */
int outdir_of(int dir_fd, const char *path, struct outdir *ret_dir);

/* Removes it if nothing was put into it and it still stands where it was made. */
void outdir_remove_empty(const struct outdir *dir);

/* Closes and frees. Fine on OUTDIR_NONE. */
void outdir_release(struct outdir *dir);

#endif
