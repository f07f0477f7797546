/* Executable mappings of a process by ioctl, with their build ids: no text to parse, and others are
 * passed over. */
#ifndef SAMPLER_PROCMAP_H
#define SAMPLER_PROCMAP_H

#include "container/proc.h"

#include <limits.h>
#include <stdint.h>

#define PROCMAP_BUILD_ID_MAX 20 /* bytes that an MMAP2 record has room for */

struct procmap {
	struct proc_map map; /* path points into name */
	uint8_t build_id[PROCMAP_BUILD_ID_MAX];
	uint8_t build_id_len; /* 0: none, or not an ELF file */
	char name[PATH_MAX];
};

/*
 * The first executable mapping that ends behind addr. maps_fd: /proc/PID/maps. 1: filled; 0: there
 * is none; -ENOTTY: the kernel is older than 6.11, read the text; -errno. Source:
 * include/uapi/linux/fs.h, PROCMAP_QUERY.
 */
int procmap_next(int maps_fd, uint64_t addr, struct procmap *ret_map);

#endif
