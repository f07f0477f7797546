/*
 * Parsers of the files in /proc: maps, status, stat and auxv. Processes choose parts of these
 * texts, so no parser trusts them. Sources: proc(5); Linux fs/proc/array.c and fs/proc/task_mmu.c.
 */
#ifndef CONTAINER_PROC_TEXT_H
#define CONTAINER_PROC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_COMM_BYTES 64

/* Moves *p past a number in base 10 or 16. False: no number, or more than 64 bits. */
bool proc_number(const char **p, unsigned base, uint64_t *ret);

/* One line of /proc/PID/maps. */
struct proc_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t prot, flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	/*
	 * NUL-terminated text inside the caller's text; may be empty. Newlines, which the kernel
	 * writes as "\012", are restored. " (deleted)" stays.
	 */
	const char *path;
	size_t path_len;
};

/*
 * Reads the next line at *cursor and moves on; at first *cursor is the start of a NUL-terminated
 * text. Changes the text: newlines become NULs, and "\012" becomes a newline. Skips lines that are
 * not maps. 1: *ret_map is filled; 0: the text ended.
 */
int proc_map_next(char **cursor, struct proc_map *ret_map);

struct proc_ids {
	uint32_t real, effective, saved, fs;
};

/*
 * Content of /proc/PID/status. User and group ids are in our user namespace, or 65534 (no id
 * there).
 */
struct proc_status {
	char comm[PROC_COMM_BYTES];
	pid_t pid, tgid, ppid;
	pid_t ns_pid; /* PID in the innermost namespace: the last field of NSpid */
	int ns_depth; /* number of NSpid fields; 1 in our own PID namespace */
	uid_t uid;    /* effective */
	struct proc_ids uids, gids;
	int threads;
	char state; /* 'R', 'S', ..., 'Z' */
	bool kernel_thread;
	uint64_t cap_effective, cap_permitted; /* bit 1 << CAP_* */
	int seccomp; /* 0: none; 1: strict; 2: filter; -1: unknown to the kernel */
	bool no_new_privs;
};

/* Lines that were present in /proc/PID/status. */
enum {
	PROC_STATUS_PID = 1,
	PROC_STATUS_NSPID = 2,
	PROC_STATUS_KTHREAD = 4,
	PROC_STATUS_VM = 8,
};

/* Fills *s and returns PROC_STATUS_* bits. The caller has zeroed *s and set seccomp to -1. */
unsigned proc_status_scan(const char *text, struct proc_status *s);

/*
 * Parses the text of /proc/PID/status. kernel_thread is false without the line "Kthread". 0 or
 * -EBADMSG.
 */
int proc_status_parse(const char *text, struct proc_status *ret_status);

/* Fields of /proc/PID/stat, as proc(5) counts them. */
enum { PROC_STAT_START_TICKS = 22, PROC_STAT_VSIZE = 23, PROC_STAT_START_STACK = 28 };

/*
 * Reads field n (3 or more) from the text of /proc/PID/stat. 0 or -EBADMSG. VSIZE is 0 for a
 * process that is ending, and START_STACK is 0 without permission to see it.
 */
int proc_stat_field(const char *text, int n, uint64_t *ret_value);

/*
 * Returns the bytes of a word in /proc/PID/auxv: 8 or 4, like the program. 0: unknown. The kernel
 * writes pairs of words, a type (AT_*) and a value. AT_PHENT distinguishes the programs (Linux
 * fs/binfmt_elf.c, create_elf_tables).
 */
size_t proc_auxv_word(const void *auxv, size_t len);
/* Finds the value of a type. 0 or -ENOENT. */
int proc_auxv_find(const void *auxv, size_t len, size_t word, uint64_t type, uint64_t *ret_value);

#endif
