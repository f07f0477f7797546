/* Executable mappings of a process with their build ids, by ioctl instead of text. */
#ifndef SAMPLER_PROCMAP_H
#define SAMPLER_PROCMAP_H

#include "container/proc.h"

#include <limits.h>
#include <stdint.h>

#define PROCMAP_BUILD_ID_MAX 20 /* size of the field in an MMAP2 record */

struct procmap {
	struct proc_map map; /* path points into name */
	char name[PATH_MAX];
};

/* A mapping, and the build id of its file. */
struct procmap_build_id {
	uint64_t start, ino;
	uint32_t maj, min;
	uint8_t len; /* 0: none, or not read */
	uint8_t bytes[PROCMAP_BUILD_ID_MAX];
};

/*
 * Finds the first executable mapping that ends after addr. Reads no build id. maps_fd:
 * /proc/PID/maps. 1: found; 0: none; -ENOTTY: the kernel is older than 6.11, so parse the text
 * instead; -errno. Source: include/uapi/linux/fs.h, PROCMAP_QUERY.
 */
int procmap_next(int maps_fd, uint64_t addr, struct procmap *ret_map);

/*
 * Reads the build id of a mapping that procmap_next found. The kernel reads the file for it, and
 * waits for its file system. So the caller must know that the file system answers, but a process
 * may map another file meanwhile: call it by ask().
 */
void procmap_read_build_id(int maps_fd, struct procmap_build_id *id);

#endif
