/* The executable mappings of running processes as MMAP2 records. */
#ifndef SAMPLER_SYNTH_MAPS_H
#define SAMPLER_SYNTH_MAPS_H

#include "sampler/procmap.h"
#include "sampler/synth_buf.h"

/* Used for one process after the other. calloc makes one. */
struct synth_maps {
	bool no_query; /* this kernel has only the text */
	struct procmap entry;
	char *v; /* the text */
	size_t len, cap;
};

/* The mappings of a process; task_fd: /proc/PID/task. A process that has ended has none. 0;
 * -ENOMEM; a listener's -errno. */
int synth_maps_put(struct synth_maps *maps, struct synth_buf *b, int task_fd, pid_t pid);

void synth_maps_free(struct synth_maps *maps); /* NULL is fine */

#endif
