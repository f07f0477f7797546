/*
 * The processes that may have names of JIT-compiled code on this machine or in a recording. Reads a
 * few directories once, so that thousands of ended processes without names cost no system calls.
 */
#ifndef SYMBOLS_JIT_PIDS_H
#define SYMBOLS_JIT_PIDS_H

#include "base/hashmap.h"
#include "container/opener.h"

#include <stdbool.h>
#include <stdint.h>

/* Processes after which the directories are read. They can have many entries. */
#define JIT_PIDS_UNLISTED 16

/* A zeroed struct has read nothing. opener may be NULL; it is borrowed. */
struct jit_pids {
	struct opener *opener;
	struct hashmap captured; /* PIDs with a file of methods in the recording */
	struct hashmap live;     /* PIDs in /proc, or with a perf map in /tmp */
	enum jit_pids_list { JIT_PIDS_UNREAD, JIT_PIDS_READ, JIT_PIDS_UNREADABLE } captures, lives;
	uint32_t unlisted; /* processes answered before live was read */
};

void jit_pids_free(struct jit_pids *pids);

/*
 * Whether symbols/ of a recording, dir_fd, has a file of the process's methods. Files that are made
 * after the first call may be missed.
 */
bool jit_pids_is_captured(struct jit_pids *pids, int dir_fd, int32_t pid);

/*
 * Whether the process lives, or a perf map of that PID is in /tmp, or may be elsewhere, because the
 * opener pinned the process with another root or PID. True if that is not known. A process that
 * starts or a map that is made later may be missed.
 */
bool jit_pids_may_have_perfmap(struct jit_pids *pids, int32_t pid);

#endif
