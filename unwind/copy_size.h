/*
 * How much of a thread's stack samples should copy: more where many stacks end at the copy's edge, less where nearly all of a copy is
 * never read. What a copy costs is paid by the target.
 */
#ifndef UNWIND_COPY_SIZE_H
#define UNWIND_COPY_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#define COPY_SIZE_MIN 4096u /* bytes */
#define COPY_SIZE_MAX 65528u /* what a record can have */
#define COPY_SIZE_SAMPLES 256u /* after so many it is decided anew */
#define COPY_SIZE_EDGES 1u /* of a hundred of these: where more end at the edge more is copied, at once */
#define COPY_SIZE_QUIET 16u /* decisions in a row that would copy less, until less is copied */

/* Zeroed but for bytes. */
struct copy_size {
	uint32_t bytes; /* in use */
	bool fixed; /* the user chose it */
	uint32_t samples, edges, deep; /* of those since the last decision: at the edge; that read more than half of the copy */
	uint32_t quiet;
};

/* A stack that was unwound: how much of its copy was read, and whether it ended at the edge. True: bytes has changed. */
bool copy_size_note(struct copy_size *c, uint32_t reached, bool edge);

#endif
