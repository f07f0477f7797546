/*
 * The door to the memory of a target: process_vm_readv(2). Nothing is written, and the target is not stopped. Needs the target's uid
 * or CAP_SYS_PTRACE, no more (/proc/PID/mem would need CAP_DAC_OVERRIDE beside it). What is read changes meanwhile: the caller
 * believes nothing of it.
 *
 * A read can wait for the target without end, where its pages come from a file system or a userfaultfd that does not answer, or while a
 * thread of it holds the lock of its memory map. So reads are for a thread that nothing else waits for for good.
 */
#ifndef CONTAINER_MEMORY_H
#define CONTAINER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of [addr, addr + len). 0; -ESRCH (it has ended); -EPERM (access.h tells why); -EFAULT (not all of it is mapped);
 * -ENOSYS (a kernel without it, or a seccomp filter); -errno. */
int memory_read(pid_t pid, uint64_t addr, void *buf, size_t len);

/* As much of it as is mapped from addr on, in *ret_len. As memory_read; -EFAULT: not even the first byte. */
int memory_read_start(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_len);

/* One of many reads: whole, or not `ok` with its buffer undefined. One of 0 bytes is ok at any address. */
struct memory_piece {
	uint64_t addr;
	void *buf;
	uint32_t len;
	bool ok;
};

/* Many at once, a thousand a call of the kernel. 0, also where pieces are not mapped; else as memory_read, without -EFAULT. */
int memory_read_pieces(pid_t pid, struct memory_piece *pieces, size_t n);

/* What of [addr, addr + len) is mapped, page by page; bytes of other pages are 0. *ret_missing (may be NULL): how many bytes
 * those are. 0; as memory_read, without -EFAULT. */
int memory_read_pages(pid_t pid, uint64_t addr, void *buf, size_t len, size_t *ret_missing);

#endif
