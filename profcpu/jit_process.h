/* One process of a recording whose JIT-compiled code is to get its names: whether it is .NET's, the way that is taken, its steps. */
#ifndef PROFCPU_JIT_PROCESS_H
#define PROFCPU_JIT_PROCESS_H

#include "container/dotnet.h"
#include "container/proc.h"
#include "eventpipe/perf_map_undo.h"
#include "profcpu/jit_capture.h"
#include "profcpu/jit_way.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define JIT_PROCESS_READY_NS (5 * NS_PER_S) /* a runtime has begun to answer by then, or another way is taken */
#define JIT_PROCESS_STEP_MAX_NS (2 * NS_PER_S) /* between two steps */
#define JIT_PROCESS_WHY_BYTES (3 * JIT_WAY_WHY_BYTES + 64)

/* A program, and not only its PID: another one has other numbers, after an exec as well. */
struct jit_identity {
	uint64_t start_ticks, start_stack;
};

/* Zeroed but for pid, since_ns and next_ns is one that was told of. */
struct jit_process {
	pid_t pid;
	struct jit_identity identity; /* of what is followed */
	uint64_t frees_until_ns; /* CLOCK_MONOTONIC: taken to free code */
	uint64_t since_ns, next_ns; /* CLOCK_MONOTONIC: told of; to be looked at again */
	char comm[PROC_COMM_BYTES], version[DOTNET_VERSION_BYTES];
	const struct jit_way *way; /* NULL: not followed */
	void *state;
	struct jit_target target;
	const char *words; /* of the way that was taken last. NULL: none was */
	char why[JIT_PROCESS_WHY_BYTES];
	bool is_dotnet, done; /* done: nothing more is to be learned */
	bool forgotten; /* done, and its PID may be told of again */
	bool broken; /* something went wrong once its names were being taken */
	bool unwritten; /* names were lost that could not be written */
	bool late; /* the last try took too long; it is tried again, at the end at the latest */
	bool stepped; /* once at least, in the way that is taken */
	bool unswept; /* what a killed profcpu left where it has its perf maps was not looked for, or is there still */
	bool swept; /* it was looked for once */
};

/* What the processes of a recording share. */
struct jit_processes {
	enum jit_names names;
	bool lines; /* struct jit_target */
	int dir_fd; /* symbols/ of the recording */
	struct opener *opener;
	size_t swept; /* perf maps that a killed profcpu had left switched on */
	struct perf_map_silent silent;
	struct perf_map_swept left; /* what a killed profcpu left and is there still: counts directories of processes, not maps */
	atomic_uint maps_on; /* struct jit_target; may be read at any time */
	size_t unseen; /* processes that could not be looked at, the last for unseen_error: nobody knows whether they are .NET's */
	int unseen_error;
};

/*
 * Looks whether a process that is not followed has become one of .NET's, and takes the way that was asked for, or the first that can be
 * taken. last: what is not ready now never will be. Done by until_ns.
 */
void jit_process_look(struct jit_processes *all, struct jit_process *p, uint64_t now_ns, uint64_t until_ns, bool last);

/* One step of what is followed, by p->target.until_ns; says in next_ns when the next is due. last: the recording has ended. */
void jit_process_step(struct jit_processes *all, struct jit_process *p, uint64_t now_ns, bool last);

/* The recording has ended, and there is no time left to look at a process once more. */
void jit_process_miss(struct jit_processes *all, struct jit_process *p);

/*
 * Whatever the way: takes back what a profcpu that was killed left where the process has its perf maps. Other processes are waited for,
 * so that names are taken first. last: what stays is for all->left.
 */
void jit_process_sweep(struct jit_processes *all, struct jit_process *p, uint64_t until_ns, bool last);

/* Gives up a process, by until_ns; what was written of it stays. */
void jit_process_release(struct jit_process *p, uint64_t until_ns);

#endif
