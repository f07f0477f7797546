/*
 * Rows of samples.idx and offcpu.idx while recording. Rows of a round go to the disk before their
 * samples do. Rows of threads are known only at the end, and matter most if the disk is full by
 * then, so room for them is reserved on the disk.
 */
#ifndef PROFCPU_RECORD_ROWS_H
#define PROFCPU_RECORD_ROWS_H

#include "recording/offcpu_idx.h"
#include "unwind/unwinder.h"

struct record_rows;

/*
 * Writes the headers of the empty samples.idx and offcpu.idx. offcpu_idx_fd -1: no offcpu.idx. Both
 * descriptors are taken, also on failure. identity: of struct idx_file. 0, -ENOMEM, -errno of
 * writing.
 */
int record_rows_new(int idx_fd, int offcpu_idx_fd, uint64_t identity,
		    struct record_rows **ret_rows);
void record_rows_free(struct record_rows *rows);

/* Add the row of a sample at file_off in perf.data, of a wait, of an unknown time or of a
 * thread. 0 or -ENOMEM. */
int record_rows_sample(struct record_rows *rows, uint64_t file_off, const struct unwound *unwound);
int record_rows_wait(struct record_rows *rows, const struct offcpu_idx_wait *wait);
int record_rows_unknown(struct record_rows *rows, const struct offcpu_idx_unknown *unknown);
int record_rows_thread(struct record_rows *rows, const struct offcpu_idx_thread *thread);

/*
 * Writes the rows of a round, for each index all or none. Reserves room for `threads` more rows of
 * threads, if the file system can (fallocate(2)). 0 or -errno, also of an earlier round. After an
 * error, rows of threads stay in memory.
 */
int record_rows_round(struct record_rows *rows, size_t threads);

/*
 * Writes the rows of threads into the reserved room and frees the rest of it. Marks the end of
 * samples.idx if all its rows were written. Marks the end of offcpu.idx if those of threads were. 0
 * or -errno.
 */
int record_rows_end(struct record_rows *rows);

#endif
