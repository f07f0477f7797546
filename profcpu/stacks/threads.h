/* The threads of a process: their states, and what is known of their stacks. */
#ifndef PROFCPU_STACKS_THREADS_H
#define PROFCPU_STACKS_THREADS_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "container/proc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Threads of a process; further ones are only counted. */
#define STACKS_THREADS_MAX 65536

/* How a stack was taken, which also tells what the thread did. */
enum stacks_how {
	STACKS_NO_STACK,
	STACKS_WAITING, /* read from memory while the thread waited */
	STACKS_RUNNING, /* sampled on a CPU */
	STACKS_MANAGED, /* by the runtime's sampler */
};

struct stacks_thread {
	pid_t tid, ns_tid; /* ns_tid: in its innermost PID namespace */
	char name[PROC_COMM_BYTES];
	char state;      /* 'R', 'S', ... of /proc/TID/status */
	uint8_t how;     /* enum stacks_how */
	bool settled;    /* the state and the stack are of one moment */
	bool ended;      /* before its stack was taken */
	bool is_32;      /* its program has 32 bits, so its stack is not unwound */
	int64_t number;  /* with STACKS_WAITING: of the system call; -1: none */
	uint64_t count;  /* with STACKS_WAITING: of the wait, as in schedstat */
	char *kernel;    /* names of kernel functions, each with a newline; NULL: none */
	uint64_t sample; /* number of its last sample; 0: none */
	uint64_t weight; /* with STACKS_MANAGED: of the samples with that stack */
	uint32_t stack;  /* of the profile; PROFILE_STACK_EMPTY: none */
	uint32_t equal;  /* the same for stacks with equal names (groups.h) */
	char *why;       /* why there is no stack; NULL: not known, or there is one */
};

struct stacks_threads {
	pid_t pid;
	VEC(struct stacks_thread) list; /* in order of tid */
	struct hashmap by_tid;          /* to the index in list */
	size_t left_out;                /* threads over STACKS_THREADS_MAX */
	bool no_kernel_stacks;          /* /proc/TID/stack is denied, so wchan is read instead */
};

/* Lists the threads and reads their states. 0; -ESRCH: no such process; -ENOMEM; -errno. */
int stacks_threads_list(pid_t pid, struct stacks_threads *ret_threads);
void stacks_threads_free(struct stacks_threads *t);

/* The thread; NULL: it is not in the list. */
struct stacks_thread *stacks_threads_find(const struct stacks_threads *t, pid_t tid);

/* Reads the state anew. 0; -ESRCH, -ENOENT: it has ended, which is noted; -errno. */
int stacks_threads_read_state(struct stacks_threads *t, struct stacks_thread *thread);

/* Reads the kernel's part of the stack, as far as it is permitted. 0 or -ENOMEM. */
int stacks_threads_read_kernel(struct stacks_threads *t, struct stacks_thread *thread);

/* Sets why there is no stack. 0 or -ENOMEM. */
int stacks_thread_why(struct stacks_thread *thread, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
