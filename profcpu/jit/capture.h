/*
 * Takes the names of JIT-compiled code from the .NET processes of a recording while they run,
 * because the names are lost later. One thread watches the processes that it is given for
 * .NET runtimes. It follows each runtime in one of the ways of way.h, and writes the names to
 * symbols/ of the recording (symbols/jit/methods_file.h) for post-processing. It also notes the
 * user of each process, with JIT_NAMES_NONE nothing else.
 */
#ifndef PROFCPU_JIT_CAPTURE_H
#define PROFCPU_JIT_CAPTURE_H

#include "profcpu/jit/names_option.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct jit_capture;
struct opener;

/* dir_fd: the recording; borrowed. Returns 0 or -errno. */
int jit_capture_new(enum jit_names names, int dir_fd, struct jit_capture **ret_capture);

/* Call it before the start, to capture the source lines of code too, if the way can. */
void jit_capture_want_lines(struct jit_capture *c);

/*
 * Call it before the start: names take about these bytes at most. Without it, half of the disk's
 * free space.
 */
void jit_capture_limit_bytes(struct jit_capture *c, uint64_t bytes);

/*
 * Starts the thread. Signals that the caller has blocked stay blocked in it. all: watch every
 * process of the machine. Returns 0 or -errno.
 */
int jit_capture_start(struct jit_capture *c, bool all);

/*
 * Adds a process of the recording. It is probed soon, and again for a while, because a runtime
 * takes time to start. Any thread may call.
 */
void jit_capture_add_process(struct jit_capture *c, pid_t pid);

/*
 * Ends the capture: all processes get a last step, sessions in them end, and the thread ends. This
 * takes at most JIT_CAPTURE_END_S. If there are several processes, doubtful ones share 1 s of it. A
 * thread blocked in the kernel is left behind 2 s later. A second call does nothing.
 */
#define JIT_CAPTURE_END_S 4
void jit_capture_end(struct jit_capture *c);

/*
 * Writes the users of the processes that `opener` has pinned, after the end (symbols/jit/users.h).
 */
void jit_capture_note_users(struct jit_capture *c, struct opener *opener);

/*
 * Reports after the end, with one line for each process. log_note gives the source of its names.
 * log_warn gives the reason for missing names.
 */
void jit_capture_report(const struct jit_capture *c, bool quiet);

/* Whether all names were written to the recording; also true if the thread was left behind. */
bool jit_capture_is_written(const struct jit_capture *c);

/* Processes whose user was not noted, because JIT_USERS_MAX are; 0 if the thread was left behind.
 */
size_t jit_capture_users_left_out(const struct jit_capture *c);

/* Ends the capture first if necessary. */
void jit_capture_free(struct jit_capture *c);

#endif
