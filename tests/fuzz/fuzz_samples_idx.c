/* samples.idx of a recording from elsewhere: rows come in order, hold what they may hold, and are found.
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
		const struct samples_idx_row *row = &idx->rows[i], *found = samples_idx_find(idx, row->file_off);

		if (!found || found->file_off != row->file_off || !row->file_off || row->grade >= SAMPLES_IDX_GRADES ||
		    row->end >= SAMPLES_IDX_ENDS || (i && row[-1].file_off > row->file_off))
			abort();
	}
	if (samples_idx_find(idx, 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1, begun;
	struct parse_error err = {0};
	struct samples_idx idx;

	if (fd < 0)
		fd = memfd_create("samples.idx", MFD_CLOEXEC);
	/* The header by itself is what its writer writes. */
	if (!begun && (samples_idx_begin(fd) || samples_idx_read(fd, &idx, NULL) || idx.n))
		abort();
	if (!begun)
		samples_idx_free(&idx);
	begun = 1;
	if (fd < 0 || ftruncate(fd, 0) || (size && pwrite(fd, data, size, 0) != (ssize_t)size))
		abort();
	int r = samples_idx_read(fd, &idx, &err);

	if (r && (err.code != r || !err.what || err.offset > size + sizeof(struct samples_idx_row)))
		abort();
	if (r)
		return 0;
	check(&idx, size);
	samples_idx_free(&idx);
	return 0;
}
