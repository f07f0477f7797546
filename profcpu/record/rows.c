#include "profcpu/record/rows.h"

#include "base/vec.h"
#include "recording/samples_idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLES_ROOM_BYTES ((uint64_t)4 << 10)
#define OFFCPU_ROOM_BYTES ((uint64_t)16 << 10)
#define THREAD_ROWS 2
#define WAIT_ROWS_MAX 2

struct rows_file {
	struct idx_file idx; /* fd -1: no file */
	uint64_t step;       /* room is reserved in multiples of this many bytes */
	uint64_t room;       /* file offset up to which room is reserved */
	bool no_room;        /* the file system cannot reserve room */
};

struct record_rows {
	struct rows_file samples_idx, offcpu_idx;
	VEC(struct samples_idx_row) samples;
	VEC(struct offcpu_idx_row) waits, threads;
	int error; /* first write error; kept */
};

static void close_file(struct rows_file *file)
{
	if (file->idx.fd >= 0)
		close(file->idx.fd);
}

int record_rows_new(int idx_fd, int offcpu_idx_fd, uint64_t identity, struct record_rows **ret_rows)
{
	struct rows_file samples = {.idx.fd = idx_fd, .step = SAMPLES_ROOM_BYTES},
			 offcpu = {.idx.fd = offcpu_idx_fd, .step = OFFCPU_ROOM_BYTES};
	struct record_rows *rows = calloc(1, sizeof(*rows));
	int r = rows ? samples_idx_begin(idx_fd, identity, &samples.idx) : -ENOMEM;

	if (!r && offcpu_idx_fd >= 0)
		r = offcpu_idx_begin(offcpu_idx_fd, identity, &offcpu.idx);
	if (r) {
		close_file(&samples);
		close_file(&offcpu);
		free(rows);
		return r;
	}
	rows->samples_idx = samples;
	rows->offcpu_idx = offcpu;
	*ret_rows = rows;
	return 0;
}

void record_rows_free(struct record_rows *rows)
{
	if (!rows)
		return;
	close_file(&rows->samples_idx);
	close_file(&rows->offcpu_idx);
	vec_free(&rows->samples);
	vec_free(&rows->waits);
	vec_free(&rows->threads);
	free(rows);
}

int record_rows_sample(struct record_rows *rows, uint64_t file_off, const struct unwound *unwound)
{
	const struct samples_idx_row row = {.file_off = file_off,
					    .grade = unwound->grade,
					    .end = unwound->end,
					    .first_spliced = unwound->first_spliced,
					    .first_guess = unwound->first_guess};
	bool whole = unwound->grade == UNWIND_COMPLETE ||
		     (unwound->grade == UNWIND_NO_STACK && unwound->end == WALK_START);

	return whole ? 0 : vec_push(&rows->samples, row);
}

int record_rows_wait(struct record_rows *rows, const struct offcpu_idx_wait *wait)
{
	if (vec_reserve(&rows->waits, WAIT_ROWS_MAX))
		return -ENOMEM;
	rows->waits.len += offcpu_idx_put_wait(wait, rows->waits.v + rows->waits.len);
	return 0;
}

int record_rows_unknown(struct record_rows *rows, const struct offcpu_idx_unknown *unknown)
{
	return vec_push(&rows->waits, offcpu_idx_put_unknown(unknown));
}

int record_rows_thread(struct record_rows *rows, const struct offcpu_idx_thread *thread)
{
	if (vec_reserve(&rows->threads, THREAD_ROWS))
		return -ENOMEM;
	offcpu_idx_put_thread(thread, rows->threads.v + rows->threads.len);
	rows->threads.len += THREAD_ROWS;
	return 0;
}

/* Reserves room for nrows rows and the end mark. */
static int make_room(struct rows_file *file, size_t nrows)
{
	uint64_t bytes = idx_file_bytes_with(&file->idx, nrows),
		 room = (bytes + file->step - 1) / file->step * file->step;

	if (bytes <= file->room || file->no_room)
		return 0;
	while (fallocate(file->idx.fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)room)) {
		if (errno == EINTR)
			continue;
		if (errno == ENOSPC || errno == EDQUOT)
			return -errno;
		/* If this is a real error, writing reports it. */
		file->no_room = true;
		return 0;
	}
	file->room = room;
	return 0;
}

static int write_samples(struct record_rows *rows)
{
	int r = make_room(&rows->samples_idx, rows->samples.len);

	return r ? r : idx_file_append(&rows->samples_idx.idx, rows->samples.v, rows->samples.len);
}

static int write_threads(struct record_rows *rows)
{
	int r = idx_file_append(&rows->offcpu_idx.idx, rows->threads.v, rows->threads.len);

	if (!r)
		rows->threads.len = 0;
	return r;
}

static int write_offcpu(struct record_rows *rows, size_t threads)
{
	int r = make_room(&rows->offcpu_idx,
			  rows->waits.len + rows->threads.len + threads * THREAD_ROWS);

	if (!r)
		r = idx_file_append(&rows->offcpu_idx.idx, rows->waits.v, rows->waits.len);
	return r ? r : write_threads(rows);
}

int record_rows_round(struct record_rows *rows, size_t threads)
{
	if (!rows->error)
		rows->error = write_samples(rows);
	if (!rows->error && rows->offcpu_idx.idx.fd >= 0)
		rows->error = write_offcpu(rows, threads);
	rows->samples.len = rows->waits.len = 0;
	return rows->error;
}

/* Truncates the file to its whole rows, which frees reserved room. EINVAL: the file cannot be
 * truncated, so it has neither partial rows nor reserved room. */
static int end_file(struct rows_file *file, bool whole)
{
	int r = whole ? idx_file_end(&file->idx) : 0;

	return ftruncate(file->idx.fd, (off_t)idx_file_bytes(&file->idx)) && errno != EINVAL && !r
		       ? -errno
		       : r;
}

int record_rows_end(struct record_rows *rows)
{
	int r = rows->offcpu_idx.idx.fd >= 0 ? write_threads(rows) : 0;
	int samples = end_file(&rows->samples_idx, !rows->error);
	/* Waits without a row have no sample either. */
	int offcpu = rows->offcpu_idx.idx.fd >= 0 ? end_file(&rows->offcpu_idx, !r) : 0;

	return r ? r : samples ? samples : offcpu;
}
