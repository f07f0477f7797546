/* The cause of a wait, by the names on its stack. */
#ifndef PROFCPU_MANAGED_CAUSE_RULES_H
#define PROFCPU_MANAGED_CAUSE_RULES_H

#include "profile/profile.h"

#include <stdbool.h>

enum wait_cause {
	CAUSE_UNKNOWN,
	CAUSE_CPU,      /* for a CPU */
	CAUSE_NO_STACK, /* its stack is unknown */
	CAUSE_IDLE,     /* for work */
	CAUSE_LOCK,
	CAUSE_GC,         /* the GC stopped the thread, or the thread waits for its end */
	CAUSE_TASK,       /* blocks for a task: sync over async */
	CAUSE_STARVATION, /* the same, while the pool had too few threads */
	CAUSE_JIT,        /* for a compilation, or in one */
	CAUSE_TIMER,
	CAUSE_NETWORK,
	CAUSE_DISK,
	CAUSE_PIPE, /* pipes and terminals */
	CAUSE_POLL, /* for any of several files */
	CAUSE_SEMAPHORE,
	CAUSE_EVENT, /* wait handles, conditions, Monitor.Wait */
	CAUSE_THREAD,
	CAUSE_PROCESS,
	CAUSE_MEMORY,  /* the kernel's locks on the memory map, and page faults */
	CAUSE_RUNTIME, /* in code of the runtime that has no names here */
	CAUSES,
};

/* Its word in reports, and its name above a stack. Static. */
const char *cause_word(enum wait_cause cause);
const char *cause_label(enum wait_cause cause);

struct cause_by_names {
	enum wait_cause cause;
	/* Apart from the kernel and libc, the innermost code is that of the runtime. */
	bool in_runtime;
	bool in_native; /* the same, but any native code */
	bool in_jit;    /* libclrjit.so is above all methods */
};

/* stack: not PROFILE_STACK_EMPTY. */
struct cause_by_names cause_of_stack(const struct profile *profile, uint32_t stack);

#endif
