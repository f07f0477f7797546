/*
 * Reads and writes samples.idx of a recording: data about samples that perf.data cannot hold. Each
 * row names the place of its sample's record in perf.data. Only samples whose stack is not complete
 * have rows. Each row is on disk before its sample. The file format is that of idx_file.h.
 */
#ifndef RECORDING_SAMPLES_IDX_H
#define RECORDING_SAMPLES_IDX_H

#include "recording/idx_file.h"

#include <stddef.h>
#include <stdint.h>

#define SAMPLES_IDX_ROWS_MAX ((size_t)1 << 28)
#define SAMPLES_IDX_GRADES 5 /* UNWIND_GRADES */
#define SAMPLES_IDX_ENDS 8   /* enum walk_end, unwind/walk_state.h */

struct samples_idx_row {
	uint64_t file_off;                   /* offset of the record in perf.data */
	uint8_t grade;                       /* enum unwind_grade */
	uint8_t end;                         /* enum walk_end */
	uint16_t first_spliced, first_guess; /* struct unwound */
	uint16_t check;                      /* see idx_file.h; 0 after reading */
};
_Static_assert(sizeof(struct samples_idx_row) == 16, "on-disk layout");

/* Like idx_file_begin. */
int samples_idx_begin(int fd, uint64_t identity, struct idx_file *ret_file);

struct samples_idx {
	struct samples_idx_row *rows; /* sorted by file_off */
	size_t n;
	struct idx_file_state file;
};

/* Reads the file from fd. Errors as idx_file_read. */
int samples_idx_read(int fd, struct samples_idx *ret_idx, struct parse_error *err);
/* memory: bytes that are left, from which the rows take a part. */
int samples_idx_read_within(int fd, uint64_t memory, struct samples_idx *ret_idx,
			    struct parse_error *err);
void samples_idx_free(struct samples_idx *idx);

/* Returns the row of a record, or NULL. */
const struct samples_idx_row *samples_idx_find(const struct samples_idx *idx, uint64_t file_off);

#endif
