/*
 * Reads the stack of a blocked thread from outside, without stopping it. /proc/TID/syscall has the
 * stack pointer and the return address (Linux fs/proc/base.c, proc_pid_syscall; lib/syscall.c). The
 * stack itself is in the memory of the process. Other registers are not readable.
 * It needs the permissions of container/memory.h and can block as long as those reads can.
 */
#ifndef SAMPLER_OFFCPU_BLOCKED_H
#define SAMPLER_OFFCPU_BLOCKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BLOCKED_STACK_MAX ((size_t)2 << 20) /* more than the default stack of .NET threads */

struct blocked_stack {
	int64_t syscall; /* number of the system call; -1: none, such as for a page */
	uint64_t sp, ip;
	size_t bytes; /* of the stack, from sp up */
};

/*
 * Parses /proc/TID/syscall; bytes of the result are 0. 0; -EAGAIN: it runs, or is a kernel thread;
 * -EBADMSG.
 */
int blocked_parse(const char *text, struct blocked_stack *ret_stack);

/*
 * Reads the count of /proc/TID/schedstat, which is unique to each wait of the thread. proc NULL:
 * "/proc". Errors of blocked_read.
 */
int blocked_count(const char *proc, pid_t tid, uint64_t *ret_count);

/*
 * Copies at most `bytes` (up to BLOCKED_STACK_MAX) of the thread's stack into `stack`, if it is in
 * the wait with this count.
 *
 * 0; -EAGAIN (it runs), -ESTALE (it is in another wait), -ENOENT (it has ended, or the kernel lacks
 * the file), -ESRCH, -EACCES, -EPERM, -EBADMSG, -errno.
 */
int blocked_read(const char *proc, pid_t tid, uint64_t count, void *stack, size_t bytes,
		 struct blocked_stack *ret_stack);

/* Detects a 32-bit program by the program header size in /proc/PID/auxv. 0 or -EBADMSG. */
int blocked_parse_auxv(const void *auxv, size_t len, bool *ret_is_32);

/*
 * Whether a process executes a 32-bit program, for which there are no unwind rules. Errors of
 * blocked_read.
 */
int blocked_is_32(const char *proc, pid_t pid, bool *ret_is_32);

#endif
