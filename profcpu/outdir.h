/* The directory that a command writes its outputs to. */
#ifndef PROFCPU_OUTDIR_H
#define PROFCPU_OUTDIR_H

#include <stdbool.h>

/*
 * Makes the directory `wanted`, or with NULL a new one profilings/HH-MM-SS_YYYY-MM-DD (with _2, _3 ... where that exists).
 * The caller frees *ret_dir. 0, or -errno after one line by log_error.
 */
int outdir_make(const char *wanted, char **ret_dir);

/* Removes it if nothing was put into it, and profilings/ with its last directory. */
void outdir_remove_empty(const char *dir);

bool outdir_is_dir(const char *path);

/* Whether path ("-": stdin) holds an archive, by its first bytes; false also for what cannot be opened. */
bool outdir_is_archive(const char *path);

#endif
