#include "profcpu/record_rows.h"

#include "base/file.h"
#include "base/vec.h"
#include "recording/idx_file.h"
#include "recording/samples_idx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define ROOM_STEP_BYTES ((uint64_t)16 << 10) /* asked for at once */
#define THREAD_ROWS 2
#define WAIT_ROWS_MAX 2

struct rows_file {
	int fd; /* -1: there is none */
	uint64_t bytes; /* that are in it, whole rows all of them */
	uint64_t room; /* how far its room goes, as far as we asked for it */
	bool no_room; /* room cannot be had there without being used */
};

struct record_rows {
	struct rows_file samples_idx, offcpu_idx;
	VEC(struct samples_idx_row) samples;
	VEC(struct offcpu_idx_row) waits, threads;
	int error; /* the first of writing; sticks */
};

int record_rows_new(int idx_fd, int offcpu_idx_fd, struct record_rows **ret_rows)
{
	struct record_rows *rows = calloc(1, sizeof(*rows));
	int r = rows ? samples_idx_begin(idx_fd) : -ENOMEM;

	if (!r && offcpu_idx_fd >= 0)
		r = offcpu_idx_begin(offcpu_idx_fd);
	if (r) {
		close(idx_fd);
		if (offcpu_idx_fd >= 0)
			close(offcpu_idx_fd);
		free(rows);
		return r;
	}
	rows->samples_idx = (struct rows_file){.fd = idx_fd, .bytes = IDX_FILE_HEADER_BYTES};
	rows->offcpu_idx = (struct rows_file){.fd = offcpu_idx_fd, .bytes = IDX_FILE_HEADER_BYTES};
	*ret_rows = rows;
	return 0;
}

void record_rows_free(struct record_rows *rows)
{
	if (!rows)
		return;
	close(rows->samples_idx.fd);
	if (rows->offcpu_idx.fd >= 0)
		close(rows->offcpu_idx.fd);
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
	bool whole = unwound->grade == UNWIND_COMPLETE || (unwound->grade == UNWIND_NO_STACK && unwound->end == WALK_START);

	return whole ? 0 : vec_push(&rows->samples, row);
}

int record_rows_wait(struct record_rows *rows, const struct offcpu_idx_wait *wait)
{
	if (vec_reserve(&rows->waits, WAIT_ROWS_MAX))
		return -ENOMEM;
	rows->waits.len += offcpu_idx_put_wait(wait, rows->waits.v + rows->waits.len);
	return 0;
}

int record_rows_thread(struct record_rows *rows, const struct offcpu_idx_thread *thread)
{
	if (vec_reserve(&rows->threads, THREAD_ROWS))
		return -ENOMEM;
	offcpu_idx_put_thread(thread, rows->threads.v + rows->threads.len);
	rows->threads.len += THREAD_ROWS;
	return 0;
}

static int make_room(struct rows_file *file, uint64_t bytes)
{
	uint64_t room = (bytes + ROOM_STEP_BYTES - 1) / ROOM_STEP_BYTES * ROOM_STEP_BYTES;

	if (bytes <= file->room || file->no_room)
		return 0;
	while (fallocate(file->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)room)) {
		if (errno == EINTR)
			continue;
		if (errno == ENOSPC || errno == EDQUOT)
			return -errno;
		/* Whatever the reason, writing will tell. */
		file->no_room = true;
		return 0;
	}
	file->room = room;
	return 0;
}

/* Rows count as there whole or not at all. */
static int append(struct rows_file *file, const void *data, size_t bytes)
{
	int r = bytes ? file_pwrite_all(file->fd, data, bytes, file->bytes) : 0;

	if (!r)
		file->bytes += bytes;
	return r;
}

static int append_threads(struct record_rows *rows)
{
	int r = append(&rows->offcpu_idx, rows->threads.v, rows->threads.len * sizeof(*rows->threads.v));

	if (!r)
		rows->threads.len = 0;
	return r;
}

static int write_offcpu(struct record_rows *rows, size_t threads)
{
	size_t waits = rows->waits.len * sizeof(*rows->waits.v);
	size_t of_threads = (rows->threads.len + threads * THREAD_ROWS) * sizeof(*rows->threads.v);
	int r = make_room(&rows->offcpu_idx, rows->offcpu_idx.bytes + waits + of_threads);

	if (!r)
		r = append(&rows->offcpu_idx, rows->waits.v, waits);
	return r ? r : append_threads(rows);
}

int record_rows_round(struct record_rows *rows, size_t threads)
{
	if (!rows->error)
		rows->error = append(&rows->samples_idx, rows->samples.v, rows->samples.len * sizeof(*rows->samples.v));
	if (!rows->error && rows->offcpu_idx.fd >= 0)
		rows->error = write_offcpu(rows, threads);
	rows->samples.len = rows->waits.len = 0;
	return rows->error;
}

/* Cuts what was written in part, and what has room behind the end. What cannot be cut has neither. */
static int cut(const struct rows_file *file)
{
	return file->fd < 0 || !ftruncate(file->fd, (off_t)file->bytes) || errno == EINVAL ? 0 : -errno;
}

int record_rows_end(struct record_rows *rows)
{
	int r = rows->threads.len ? append_threads(rows) : 0, samples = cut(&rows->samples_idx), offcpu = cut(&rows->offcpu_idx);

	return r ? r : samples ? samples : offcpu;
}
