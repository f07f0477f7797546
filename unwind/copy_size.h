/*
 * Decides how many bytes of a thread's stack each sample copies. It grows if many stacks end at the
 * edge of their copy. It shrinks after a long time in which no sample needed more than half of it.
 * The target pays for each copied byte. The first value is the caller's (--call-graph).
 */
#ifndef UNWIND_COPY_SIZE_H
#define UNWIND_COPY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define COPY_SIZE_MIN 4096u    /* bytes */
#define COPY_SIZE_MAX 65528u   /* bytes that fit into a record */
#define COPY_SIZE_SAMPLES 256u /* samples between decisions */
#define COPY_SIZE_EDGES 1u     /* per cent of these; if more end at the edge, grow at once */
#define COPY_SIZE_QUIET 16u    /* decisions in a row that favour less, before it shrinks */

/* Zero it, then set bytes. */
struct copy_size {
	uint32_t bytes; /* in use */
	bool fixed;     /* the user chose it */
	/* Since the last decision: all; those at the edge; those that read more than half. */
	uint32_t samples, edges, deep;
	uint32_t quiet;
};

/*
 * Notes an unwound stack: the bytes of the copy it needed, and whether it ended at the edge. True:
 * `bytes` has changed.
 */
bool copy_size_note(struct copy_size *c, uint32_t reached, bool edge);

#endif
