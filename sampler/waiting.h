/*
 * The stack of a thread that waits, read from outside: it is not stopped, and does not notice. /proc/TID/syscall has its stack pointer and
 * where it will go on (Linux fs/proc/base.c, proc_pid_syscall; lib/syscall.c), the stack is in its process's memory. What other registers hold is in the kernel
 * alone. Needs what reading the target's memory needs (container/memory.h), and can wait for the target as that can.
 */
#ifndef SAMPLER_WAITING_H
#define SAMPLER_WAITING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WAITING_STACK_MAX ((size_t)65536)

struct waiting {
	uint64_t sp, ip;
	uint64_t count; /* of schedstat, the same before and after: so all is of one wait */
	size_t bytes; /* of the stack, from sp up */
};

/* The text of the file. 0; -EAGAIN: it runs, or is a thread of the kernel; -EBADMSG. */
int waiting_parse(const char *text, uint64_t *ret_sp, uint64_t *ret_ip);

/* Copies at most `bytes` (WAITING_STACK_MAX) of the stack of a thread into `stack`. proc: NULL: "/proc". 0; -EAGAIN: it does not wait, or did not all the
 * time; -ENOENT (it has ended, or this kernel does not tell);
 * -ESRCH; -EACCES, -EPERM; -EBADMSG; -errno. */
int waiting_read(const char *proc, pid_t tid, void *stack, size_t bytes, struct waiting *ret_waiting);

#endif
