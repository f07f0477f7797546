/*
 * What perf.data has no place for, on its way to samples.idx and offcpu.idx. Rows of a round go to the disk before their samples do. Of threads
 * it is only known at their end what they did, and it is worth most where the disk gets full before: room is kept for it.
 */
#ifndef PROFCPU_RECORD_ROWS_H
#define PROFCPU_RECORD_ROWS_H

#include "recording/offcpu_idx.h"
#include "unwind/unwinder.h"

struct record_rows;

/* idx_fd, offcpu_idx_fd: the empty samples.idx and offcpu.idx, to which the headers are written; -1: there is no offcpu.idx. Both are taken, also
 * where it fails. identity: of struct idx_file. 0, -ENOMEM, -errno of writing. */
int record_rows_new(int idx_fd, int offcpu_idx_fd, uint64_t identity, struct record_rows **ret_rows);
void record_rows_free(struct record_rows *rows);

/* Of the sample that comes to file_off in perf.data; of a wait; of a thread. 0 or -ENOMEM. */
int record_rows_sample(struct record_rows *rows, uint64_t file_off, const struct unwound *unwound);
int record_rows_wait(struct record_rows *rows, const struct offcpu_idx_wait *wait);
int record_rows_thread(struct record_rows *rows, const struct offcpu_idx_thread *thread);

/* Writes the rows of a round, each index's all or none. threads: for how many more there must be room, which is kept where the file
 * system can (fallocate(2)). 0 or -errno, also of an earlier round; rows of threads are kept then. */
int record_rows_round(struct record_rows *rows, size_t threads);

/* The end: what is kept of threads goes into the room that is there, and the rest of it is given back. samples.idx has its end
 * then if all of its rows could be written, offcpu.idx if those of threads could. 0 or -errno. */
int record_rows_end(struct record_rows *rows);

#endif
