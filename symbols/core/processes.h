/*
 * Threads, their names and their address spaces over time, from COMM, FORK, EXIT and MMAP records.
 *
 * Address spaces are shared as in the kernel. All threads of a process have one; after a fork, a
 * change copies only what it changes. All of them have one memory budget, which families of
 * processes share (symbols/core/families.h). An exec keeps the earlier maps under the new ones, as
 * in perf. Samples in the kernel between exec and the first user instruction still have user
 * addresses of the old program.
 */
#ifndef SYMBOLS_CORE_PROCESSES_H
#define SYMBOLS_CORE_PROCESSES_H

#include "symbols/core/families.h"
#include "symbols/core/process_maps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESSES_ENDED_KEPT 8192 /* latest ended threads; earlier ones are forgotten */
/*
 * The most memory for the maps of all processes; half of it holds PROCESS_MAPS_MAX. If it is full,
 * maps of ended ones go first, but those of small families not for large ones.
 */
#define PROCESSES_MAPS_BYTES_MAX ((size_t)48 << 20)

#define PROCESS_COMM_BYTES 16 /* TASK_COMM_LEN, with a NUL */

/* A thread, from its creation until its tid is used again. */
struct process_thread {
	int32_t pid, tid; /* pid -1: unknown */
	/*
	 * The caller's id of the name, for processes_comm_of. PROCESS_NO_COMM: no sample has
	 * needed it; then the name is in text.
	 */
	uint32_t comm;
	char text[PROCESS_COMM_BYTES];
	bool named; /* from a COMM of it, or of its parent at the fork */
	bool exited;
	bool blank; /* memory ran out before it was filled in; the next call tries again */
	uint32_t space;
	uint32_t ended;     /* number of its end; 0: runs, or forgotten */
	uint32_t cached_id; /* the caller's; PROCESS_NO_CACHE after a change of name or pid */
	int32_t cached_pid;
};
#define PROCESS_NO_CACHE UINT32_MAX
#define PROCESS_NO_COMM UINT32_MAX

struct processes;

/*
 * Gives the id of a thread's name. name NULL: it is not known; perf prints ":TID". Returns 0 or
 * -errno.
 */
typedef int processes_comm_fn(void *ctx, int32_t tid, const char *name, uint32_t *ret_comm);

struct processes_options {
	processes_comm_fn *comm; /* NULL: names do not matter */
	void *ctx;
	size_t maps_bytes; /* for the maps of all processes; PROCESSES_MAPS_BYTES_MAX at most */
};

/* Returns 0 or -ENOMEM. */
int processes_new(const struct processes_options *options, struct processes **ret_processes);
void processes_free(struct processes *p);

/*
 * Finds the thread with this tid, or makes it. Valid until the next call that can make one. Returns
 * 0 or -errno.
 */
int processes_thread(struct processes *p, int32_t pid, int32_t tid,
		     struct process_thread **ret_thread);

/*
 * COMM. A thread can change its name without limit, so options.comm gets those that
 * processes_comm_of needs; also longer ones than a thread can have. Returns 0 or -errno.
 */
int processes_comm(struct processes *p, int32_t pid, int32_t tid, const char *name);

/* Gets the id of a thread's present name. Returns 0 or -errno. */
int processes_comm_of(struct processes *p, struct process_thread *t, uint32_t *ret_comm);

/*
 * FORK of a thread (pid == ppid) or of a process. share_maps is false for synthesized records of
 * processes that already ran; their maps follow as records. Returns 0 or -errno.
 */
int processes_fork(struct processes *p, int32_t pid, int32_t tid, int32_t ppid, int32_t ptid,
		   bool share_maps);

/* EXIT. Samples may still follow. */
void processes_exit(struct processes *p, int32_t tid);

/* Whether all threads of a process have ended. False: some run, or it is unknown. */
bool processes_has_ended(const struct processes *p, int32_t pid);

/*
 * MMAP or MMAP2 of a process: lays map over earlier ones; its under and under_pgoff are ignored.
 * Returns 0, -E2BIG (dropped and counted: over PROCESS_MAPS_MAX or maps_bytes),
 * -EINVAL (empty or wraps around) or -ENOMEM.
 */
int processes_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map,
		  bool anonymous);

/*
 * Counts a map that was dropped. Earlier maps below it are no longer found (process_maps_lose). Its
 * image may be PROCESS_NO_IMAGE. Returns -E2BIG or -ENOMEM.
 */
int processes_lose_map(struct processes *p, int32_t pid, int32_t tid,
		       const struct process_map *map);

/*
 * The map that covers addr in a thread's address space now, or NULL. Valid until the next change.
 */
const struct process_map *processes_find_map(struct processes *p, const struct process_thread *t,
					     uint64_t addr);

/*
 * The generation of a thread's address space. While it stays the same, each address gives the same
 * map or none. Processes that share maps have equal generations; 0: nothing is mapped.
 */
uint32_t processes_generation(const struct processes *p, const struct process_thread *t);

/* The families, for what their maps need elsewhere. Their nodes are private. */
struct families *processes_families(struct processes *p);

/* Finds the family of a thread, or makes both. Returns 0 or -errno. */
int processes_family(struct processes *p, int32_t pid, int32_t tid, uint32_t *ret_family);

/* Drops the maps of processes that ended, to make room. */
void processes_forget_ended(struct processes *p);

/* The next map of any process, as map_trees_next. */
struct process_map *processes_next_map(struct processes *p, uint32_t *at);

#endif
