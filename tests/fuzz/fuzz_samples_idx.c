/* samples.idx of a foreign recording: rows are in order, contain valid values, and can be found.
 * covers: recording/samples_idx.c */
#include "recording/samples_idx.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct samples_idx *idx, size_t size)
{
	if (idx->n > size / sizeof(*idx->rows))
		abort();
	for (size_t i = 0; i < idx->n; i++) {
		const struct samples_idx_row *row = &idx->rows[i],
					     *found = samples_idx_find(idx, row->file_off);

		if (!found || found->file_off != row->file_off || !row->file_off ||
		    row->grade >= SAMPLES_IDX_GRADES || row->end >= SAMPLES_IDX_ENDS ||
		    (i && row[-1].file_off > row->file_off))
			abort();
	}
	if (samples_idx_find(idx, 0))
		abort();
}

static void read_it(int fd, size_t size)
{
	struct parse_error err = {0};
	struct samples_idx idx;
	int r = samples_idx_read(fd, &idx, &err);

	if (r && (err.code != r || !err.what ||
		  err.offset > size + IDX_FILE_HEADER_BYTES + sizeof(struct samples_idx_row)))
		abort();
	if (r)
		return;
	check(&idx, size);
	samples_idx_free(&idx);
}

/* Reads the input as the file, and as rows whose checksums are made here, because fuzzing cannot
 * guess them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	size_t rows = size / sizeof(struct samples_idx_row),
	       bytes = rows * sizeof(struct samples_idx_row);
	void *copy = malloc(bytes ? bytes : 1);
	struct idx_file file;

	if (fd < 0)
		fd = memfd_create("samples.idx", MFD_CLOEXEC);
	if (!copy || fd < 0 || ftruncate(fd, 0) ||
	    (size && pwrite(fd, data, size, 0) != (ssize_t)size))
		abort();
	read_it(fd, size);
	memcpy(copy, data, bytes);
	if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET) || samples_idx_begin(fd, size, &file) ||
	    idx_file_append(&file, copy, rows) || (bytes != size && idx_file_end(&file)))
		abort();
	read_it(fd, size);
	free(copy);
	return 0;
}
