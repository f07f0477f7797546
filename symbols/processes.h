/*
 * Threads, their names and what is mapped where, followed over time from COMM, FORK, EXIT and MMAP records.
 *
 * Address spaces are shared as the kernel shares them: all threads of a process have one, a fork copies it when one of
 * both changes it. Maps overlay earlier ones. An exec keeps the earlier maps under the new ones, as perf does: a sample
 * taken in the kernel between exec and the first user instruction still has user addresses of the old program.
 */
#ifndef SYMBOLS_PROCESSES_H
#define SYMBOLS_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_MAPS_MAX ((size_t)1 << 18) /* maps of one address space; more are dropped and counted */
#define PROCESS_SPACES_KEPT 4096 /* address spaces of ended processes that are kept, the latest */

/* One mapping. image is the caller's id; file offset of addr: addr - start + pgoff. */
struct process_map {
	uint64_t start, end, pgoff;
	uint32_t image;
	/* What an anonymous mapping was laid over, when it lies wholly inside it (code copied to huge pages), or
	 * PROCESS_NO_IMAGE; under_pgoff is the file offset at start. */
	uint32_t under;
	uint64_t under_pgoff;
};
#define PROCESS_NO_IMAGE UINT32_MAX

struct process_maps; /* one state of an address space; shared, see process_space */

/* A thread, from its creation until its tid is used again. */
struct process_thread {
	int32_t pid, tid; /* pid -1: not known */
	uint32_t comm; /* the caller's id of the name */
	bool named; /* a COMM was seen, for it or for the parent at its fork */
	bool exited;
	bool blank; /* it could not be filled in, as memory was out: the next time */
	uint32_t space;
	uint32_t cached_id; /* the caller's; PROCESS_NO_CACHE after the name or pid has changed */
	int32_t cached_pid;
};
#define PROCESS_NO_CACHE UINT32_MAX

struct processes;

/* unnamed: called once for each thread of which no name is known, gives the comm id (":TID"), or -errno. */
typedef int processes_unnamed_fn(void *ctx, int32_t tid, uint32_t *ret_comm);

int processes_new(processes_unnamed_fn *unnamed, void *ctx, struct processes **ret_processes);
void processes_free(struct processes *p);

/* The thread with this tid, made when it is new. Valid until the next call that can make one. 0 or -errno. */
int processes_thread(struct processes *p, int32_t pid, int32_t tid, struct process_thread **ret_thread);

/* COMM. 0 or -errno. */
int processes_comm(struct processes *p, int32_t pid, int32_t tid, uint32_t comm);

/* FORK: of a thread (pid == ppid) or of a process. share_maps is false for the synthesized records of processes that
 * ran already, whose maps follow as records. 0 or -errno. */
int processes_fork(struct processes *p, int32_t pid, int32_t tid, int32_t ppid, int32_t ptid, bool share_maps);

/* EXIT. Samples may still follow. */
void processes_exit(struct processes *p, int32_t tid);

/* MMAP, MMAP2 of a process: lays map over what is there. anonymous: see process_map.under, which this function sets.
 * 0, -E2BIG (dropped: over PROCESS_MAPS_MAX), -EINVAL (empty or wraps round), -ENOMEM. */
int processes_map(struct processes *p, int32_t pid, int32_t tid, const struct process_map *map, bool anonymous);

/* The map that covers addr in a thread's address space now, or NULL. Valid until the next change. */
const struct process_map *processes_find_map(struct processes *p, const struct process_thread *t, uint64_t addr);

/*
 * A number for the present state of a thread's address space: as long as it is the same, every address has the answer it
 * had. Equal for processes that share maps; 0 where nothing is mapped.
 */
uint32_t processes_generation(const struct processes *p, const struct process_thread *t);

#endif
