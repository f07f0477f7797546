/* offcpu.idx of a foreign recording: rows are in order, contain valid values, and can be found.
 * covers: recording/offcpu_idx.c recording/idx_file.c */
#include "recording/offcpu_idx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct offcpu_idx *idx, size_t size)
{
	if (idx->nwaits + 2 * idx->nthreads > size / sizeof(struct offcpu_idx_row))
		abort();
	for (size_t i = 0; i < idx->nwaits; i++) {
		const struct offcpu_idx_wait *w = &idx->waits[i],
					     *found = offcpu_idx_find(idx, w->file_off);

		if (!found || found->file_off != w->file_off || !w->file_off ||
		    w->waker_off >= w->file_off || w->waker < 0 ||
		    w->runnable_ns > OFFCPU_IDX_NS_MAX || w->end_ns > OFFCPU_IDX_NS_MAX ||
		    w->flags > OFFCPU_IDX_FLAGS || (i && w[-1].file_off > w->file_off))
			abort();
	}
	for (size_t i = 0; i < idx->nthreads; i++) {
		const struct offcpu_idx_thread *t = &idx->threads[i];

		if (t->tid <= 0 || t->begin_ns > t->end_ns || t->end_ns > OFFCPU_IDX_NS_MAX ||
		    (i && t[-1].tid > t->tid))
			abort();
	}
	if (offcpu_idx_find(idx, 0))
		abort();
}

/* Rows that were read, written and read again are the same. */
static void check_put(const struct offcpu_idx *idx)
{
	static int fd = -1;
	struct offcpu_idx_row rows[2];
	struct offcpu_idx again;
	struct idx_file file;

	if (fd < 0)
		fd = memfd_create("again", MFD_CLOEXEC);
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) || offcpu_idx_begin(fd, 1, &file))
		abort();
	for (size_t i = 0; i < idx->nwaits; i++)
		if (idx_file_append(&file, rows, offcpu_idx_put_wait(&idx->waits[i], rows)))
			abort();
	for (size_t i = 0; i < idx->nthreads; i++) {
		offcpu_idx_put_thread(&idx->threads[i], rows);
		if (idx_file_append(&file, rows, 2))
			abort();
	}
	if (idx_file_end(&file) || offcpu_idx_read(fd, &again, NULL) || !again.file.ended ||
	    again.nwaits != idx->nwaits || again.nthreads != idx->nthreads ||
	    (idx->nwaits == 1 && again.waits[0].end_ns != idx->waits[0].end_ns))
		abort();
	offcpu_idx_free(&again);
}

static void read_it(int fd, size_t size)
{
	struct parse_error err = {0};
	struct offcpu_idx idx;
	int r = offcpu_idx_read(fd, &idx, &err);

	if (r && (err.code != r || !err.what ||
		  err.offset > size + IDX_FILE_HEADER_BYTES + sizeof(struct offcpu_idx_row)))
		abort();
	if (r)
		return;
	check(&idx, size);
	check_put(&idx);
	offcpu_idx_free(&idx);
}

/* Reads the input as the file, and as rows whose checksums are made here, because fuzzing cannot
 * guess them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	size_t rows = size / sizeof(struct offcpu_idx_row),
	       bytes = rows * sizeof(struct offcpu_idx_row);
	void *copy = malloc(bytes ? bytes : 1);
	struct idx_file file;

	if (fd < 0)
		fd = memfd_create("offcpu.idx", MFD_CLOEXEC);
	if (!copy || fd < 0 || ftruncate(fd, 0) ||
	    (size && pwrite(fd, data, size, 0) != (ssize_t)size))
		abort();
	read_it(fd, size);
	memcpy(copy, data, bytes);
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) || offcpu_idx_begin(fd, size, &file) ||
	    idx_file_append(&file, copy, rows) || (bytes != size && idx_file_end(&file)))
		abort();
	read_it(fd, size);
	free(copy);
	return 0;
}
