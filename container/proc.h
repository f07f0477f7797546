/* What /proc says of processes: listing, names, maps, namespaces, containers. proc(5); Linux fs/proc/array.c, task_mmu.c. */
#ifndef CONTAINER_PROC_H
#define CONTAINER_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_COMM_BYTES 64
#define PROC_CONTAINER_BYTES 80
#define PROC_MAPS_MAX ((size_t)256 << 20) /* bytes of /proc/PID/maps: about 2.5 million lines */
#define PROC_FILE_MAX ((size_t)1 << 20) /* bytes of status, stat, cgroup and other small files */

/* One line of /proc/PID/maps. path points into the caller's text, is NUL-terminated and may be empty. */
struct proc_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t prot, flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	const char *path;
	size_t path_len; /* "\n" in a path is written "\012" by the kernel, undone here; " (deleted)" is kept */
};

/*
 * Reads the next line at *cursor (which starts at text, NUL-terminated) and moves on. The text is changed: newlines
 * become NULs, "\012" newlines. 1: filled; 0: end; lines that are no map are skipped.
 */
int proc_map_next(char **cursor, struct proc_map *ret_map);

/* Calls fn for each PID in /proc (or thread of pid in /proc/PID/task), until it gives non-zero, which is returned.
 * 0; -ESRCH (no such process); -errno. */
int proc_each_pid(int (*fn)(void *ctx, pid_t pid), void *ctx);
int proc_each_thread(pid_t pid, int (*fn)(void *ctx, pid_t tid), void *ctx);
/* The same for each name in dir_path, a directory laid out as those, that is a number. */
int proc_each_number(const char *dir_path, int (*fn)(void *ctx, pid_t n), void *ctx);

/* Small files of /proc/PID[/task/TID] (tid 0: of the process), NUL-terminated; the caller frees *ret_text.
 * 0; -ESRCH (the process is not there, or its end came while reading); -ENOENT (it has no such file); -EACCES; -E2BIG;
 * -errno. */
int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text, size_t *ret_len);

struct proc_ids {
	uint32_t real, effective, saved, fs;
};

struct proc_status {
	char comm[PROC_COMM_BYTES];
	pid_t pid, tgid, ppid, ns_pid; /* ns_pid: last field of NSpid, the innermost namespace's */
	int ns_depth; /* number of NSpid fields: 1 in our own PID namespace */
	uid_t uid; /* effective, in our user namespace; 65534 where it has no number there */
	struct proc_ids uids, gids; /* as uid */
	int threads;
	char state; /* 'R', 'S', ..., 'Z' */
	bool kernel_thread;
	uint64_t cap_effective, cap_permitted; /* bit 1 << CAP_* */
	int seccomp; /* 0 none, 1 strict, 2 filter; -1: the kernel does not say */
	bool no_new_privs;
};
int proc_status(pid_t pid, struct proc_status *ret_status); /* 0, -ESRCH, -EACCES, -EBADMSG, -errno */

/* The same from the text of /proc/PID/status. kernel_thread is false where the text does not say. 0 or -EBADMSG. */
int proc_status_parse(const char *text, struct proc_status *ret_status);

/* When the process started: field 22 of /proc/PID/stat, clock ticks since boot. With its PID it names a process for good,
 * and is the key in the name of a .NET diagnostic port. 0, -ESRCH, -EBADMSG, -errno. */
int proc_start_ticks(pid_t pid, uint64_t *ret_ticks);

/* How long ago that was: nanoseconds at boot_ns of CLOCK_BOOTTIME; 0 for a time to come. */
uint64_t proc_age_ns(uint64_t start_ticks, uint64_t boot_ns);

/* Since when a process is there, by CLOCK_MONOTONIC, whose time is now_ns; now_ns where that cannot be told. */
uint64_t proc_begin_ns(pid_t pid, uint64_t now_ns);

/* Whether /proc is of the PID namespace that we are in: then its numbers are those that the kernel gives and takes elsewhere. */
bool proc_is_own_namespace(void);

enum { PROC_STAT_START_TICKS = 22, PROC_STAT_VSIZE = 23, PROC_STAT_START_STACK = 28 };

/* Field n (counted from 1, as proc(5) does; 3 or more) of the text of /proc/PID/stat. 0 or -EBADMSG. A process that ends has no memory
 * (VSIZE), and a stack (START_STACK) is 0 without the right to look. */
int proc_stat_field(const char *text, int n, uint64_t *ret_value);

/*
 * Container id out of the text of /proc/PID/cgroup: the last path component that holds 64 hex digits ("docker-ID.scope",
 * "cri-containerd-ID.scope", "libpod-ID", "/docker/ID", "/kubepods/.../ID"), or the name that LXC or systemd-nspawn gave. Empty
 * if none. buf: at least PROC_CONTAINER_BYTES for a whole id.
 */
void proc_container_id(const char *cgroup_text, char *buf, size_t cap);

#endif
