/*
 * The memory that this process may still take: what the machine has, and what the limits of its
 * control groups leave. Sources: Linux Documentation/filesystems/proc.rst (MemAvailable),
 * admin-guide/cgroup-v2.rst and admin-guide/cgroup-v1/memory.rst.
 */
#ifndef CONTAINER_MEMORY_LEFT_H
#define CONTAINER_MEMORY_LEFT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns bytes; UINT64_MAX if nothing is known. Cached files that can be dropped count as free,
 * and so does half of the kernel memory that can be dropped (cgroup version 2).
 */
uint64_t memory_left(void);

/* Bytes that this process has taken, without mapped files; 0: unknown. */
uint64_t memory_taken(void);

/*
 * An eighth of the memory that is left, for a table of which there are few, at most `most` bytes.
 * left: bytes; 0: memory_left().
 */
size_t memory_left_eighth(uint64_t left, size_t most);

/* The same as memory_left with other directories than /proc and /sys/fs/cgroup, for tests. */
uint64_t memory_left_in(const char *proc_dir, const char *cgroup_dir);

#endif
