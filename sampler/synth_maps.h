/* The executable mappings of running processes as MMAP2 records. */
#ifndef SAMPLER_SYNTH_MAPS_H
#define SAMPLER_SYNTH_MAPS_H

#include "sampler/procmap.h"
#include "sampler/synth_buf.h"

/*
 * Bytes of records that the mappings of one process may take. Mappings with the longest paths take
 * over 200 MB if the kernel permits as many as usual.
 */
#define SYNTH_MAPS_BYTES_MAX ((size_t)16 << 20)

/* Used for one process after the other. calloc makes one. */
struct synth_maps {
	bool no_query;         /* this kernel has only the text */
	size_t bytes;          /* of the records of this process */
	struct opener *opener; /* knows file systems; NULL: not needed yet */
	struct procmap *batch; /* memory for the next process */
};

/*
 * The mappings of a process. One that has ended, or does not answer (ask.h), has none. Beyond
 * SYNTH_MAPS_BYTES_MAX they are left out, and the process is counted. 0; -ENOMEM; a listener's
 * result.
 */
int synth_maps_put(struct synth_maps *maps, struct synth_buf *b, pid_t pid);

void synth_maps_free(struct synth_maps *maps); /* NULL is fine */

#endif
