/*
 * Reads the memory of a target with process_vm_readv(2), and never writes it. The target keeps
 * running, so the memory may change during the read, and callers must not trust its contents. Needs
 * the target's uid or CAP_SYS_PTRACE. /proc/PID/mem would also need CAP_DAC_OVERRIDE.
 *
 * A read may block forever: on pages of a file system or userfaultfd that does not respond, or
 * while a thread of the target holds its mmap lock. So another thread reads, for a limited time
 * (ask.h). Errors of all functions: -ETIME: no answer.
 */
#ifndef CONTAINER_MEMORY_H
#define CONTAINER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Reads all of [addr, addr + len). Returns 0; -ESRCH: the process ended; -EPERM: access.h finds the
 * reason; -EFAULT: not all of it is mapped; -ENOSYS: the kernel or a seccomp filter lacks the call;
 * -errno.
 */
int memory_read(pid_t pid, uint64_t addr, void *buf, size_t len);

/*
 * Reads the mapped bytes from addr on, at most len; *ret_len: their number. Errors as memory_read;
 * -EFAULT: the first byte is not mapped.
 */
int memory_read_start(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_len);

/*
 * One of many reads. ok: it was read completely; otherwise its buffer is undefined. A piece of 0
 * bytes is ok at any address.
 */
struct memory_piece {
	uint64_t addr;
	void *buf;
	uint32_t len;
	bool ok;
};

/*
 * Reads many pieces, 256 in each system call. 0, also if pieces are not mapped. Errors as
 * memory_read, without -EFAULT.
 */
int memory_read_pieces(pid_t pid, struct memory_piece *pieces, size_t n);

/*
 * Reads the mapped pages of [addr, addr + len); bytes of other pages become 0. *ret_missing (may be
 * NULL): number of those bytes. 0; errors as memory_read, without -EFAULT.
 */
int memory_read_pages(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_missing);

#endif
