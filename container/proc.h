/* What /proc says of processes: listing, names, maps, namespaces, containers, .NET runtimes. */
#ifndef CONTAINER_PROC_H
#define CONTAINER_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_COMM_BYTES 64

/* One line of /proc/PID/maps. path points into the caller's text and may be empty. */
struct proc_map {
	uint64_t start, end, pgoff, ino;
	uint32_t maj, min;
	uint32_t prot, flags; /* PROT_*, MAP_SHARED or MAP_PRIVATE */
	const char *path;
	size_t path_len; /* "\n" in a path is written "\012" by the kernel, undone here; " (deleted)" is kept */
};

/* Reads the next line at *cursor (which starts at text). 1: filled; 0: end; lines that are no map are skipped. */
int proc_map_next(char **cursor, struct proc_map *ret_map);

/* Calls fn for each PID in /proc (or thread of pid in /proc/PID/task), until it gives non-zero, which is returned.
 * 0 or -errno. */
int proc_each_pid(int (*fn)(void *ctx, pid_t pid), void *ctx);
int proc_each_thread(pid_t pid, int (*fn)(void *ctx, pid_t tid), void *ctx);

/* Small files of /proc/PID[/task/TID], NUL-terminated. 0, -ESRCH, -EACCES, -errno. */
int proc_read(pid_t pid, pid_t tid, const char *name, size_t max_bytes, char **ret_text, size_t *ret_len);

struct proc_status {
	char comm[PROC_COMM_BYTES];
	pid_t tgid, ppid, ns_pid; /* ns_pid: last field of NSpid, the innermost namespace's */
	int ns_depth; /* number of NSpid fields */
	uid_t uid;
	int threads;
	bool kernel_thread;
};
int proc_status(pid_t pid, struct proc_status *ret_status); /* 0, -ESRCH, -EACCES, -errno */

/* Container id (64 or 12 hex digits, or a name of the runtime's) out of the text of /proc/PID/cgroup; empty if none. */
void proc_container_id(const char *cgroup_text, char *buf, size_t cap);

/* .NET: whether the process runs CoreCLR, and the runtime's version from the path of libcoreclr.so, the bundle or
 * the diagnostic port; version empty where it cannot be told. 0 also when it is not .NET (ret->is_dotnet false). */
struct proc_dotnet {
	bool is_dotnet;
	bool native_aot; /* always false where it cannot be told */
	char version[32];
};
int proc_dotnet(pid_t pid, struct proc_dotnet *ret_dotnet);

#endif
