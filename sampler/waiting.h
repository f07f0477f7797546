/*
 * The stack of a thread that waits, read from outside: it is not stopped, and does not notice. /proc/TID/syscall has its stack pointer and
 * where it will go on (Linux fs/proc/base.c, proc_pid_syscall; lib/syscall.c), the stack is in its process's memory. What other registers hold is in the kernel
 * alone. Needs what reading the target's memory needs (container/memory.h), and can wait for the target as that can.
 */
#ifndef SAMPLER_WAITING_H
#define SAMPLER_WAITING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WAITING_STACK_MAX ((size_t)65536)

struct waiting {
	uint64_t sp, ip;
	size_t bytes; /* of the stack, from sp up */
};

/* The text of the file. 0; -EAGAIN: it runs, or is a thread of the kernel; -EBADMSG. */
int waiting_parse(const char *text, uint64_t *ret_sp, uint64_t *ret_ip);

/* Schedstat's count of a thread, which a wait has for itself alone. proc: NULL: "/proc". 0; as waiting_read. */
int waiting_count(const char *proc, pid_t tid, uint64_t *ret_count);

/* Copies at most `bytes` (WAITING_STACK_MAX) of the stack of a thread in the wait with that count into `stack`. 0; -EAGAIN: it runs; -ESTALE: it is in
 * another wait; -ENOENT (it has ended, or this kernel does not tell); -ESRCH; -EACCES, -EPERM; -EBADMSG; -errno. */
int waiting_read(const char *proc, pid_t tid, uint64_t count, void *stack, size_t bytes, struct waiting *ret_waiting);

/* The bytes of /proc/PID/auxv: whether they are of a 32-bit program, by the size of its program headers. -EBADMSG. */
int waiting_parse_auxv(const void *auxv, size_t len, bool *ret_is_32);

/* Whether a process executes a 32-bit program: its registers are none that rules are known for. As waiting_read. */
int waiting_is_32(const char *proc, pid_t pid, bool *ret_is_32);

#endif
