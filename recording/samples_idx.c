#include "recording/samples_idx.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

struct samples_idx_header {
	char magic[8];
	uint32_t version, row_bytes;
};
_Static_assert(sizeof(struct samples_idx_header) == 16, "on-disk layout");

static const struct samples_idx_header header = {"pcsmpidx", 1, sizeof(struct samples_idx_row)};

int samples_idx_begin(int fd)
{
	return file_write_all(fd, &header, sizeof(header));
}

static int by_place(const void *a, const void *b)
{
	const struct samples_idx_row *x = a, *y = b;

	return x->file_off < y->file_off ? -1 : x->file_off > y->file_off;
}

/* Samples that waited were written later than their rows tell. */
static void sort_rows(struct samples_idx *idx)
{
	for (size_t i = 1; i < idx->n; i++)
		if (idx->rows[i].file_off < idx->rows[i - 1].file_off) {
			qsort(idx->rows, idx->n, sizeof(*idx->rows), by_place);
			return;
		}
}

int samples_idx_read(int dir_fd, struct samples_idx *ret_idx, struct parse_error *err)
{
	AUTO_CLOSE int fd = -1;
	struct samples_idx idx = {0};
	struct samples_idx_header h;
	struct stat st;
	int r = file_open_regular(dir_fd, RECORDING_SAMPLES, &fd);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	r = file_pread_all(fd, &h, sizeof(h), 0);
	if (r || memcmp(h.magic, header.magic, sizeof(h.magic)) != 0)
		return parse_fail(err, r && r != -ENODATA ? r : -EBADMSG, "no index of samples", 0);
	if (h.version != header.version || h.row_bytes != header.row_bytes)
		return parse_fail(err, -ENOTSUP, "an index of samples of another version", 8);
	idx.n = ((uint64_t)st.st_size - sizeof(h)) / sizeof(*idx.rows);
	if (idx.n > SAMPLES_IDX_ROWS_MAX)
		return parse_fail(err, -E2BIG, "too many rows", 0);
	idx.rows = calloc(idx.n + 1, sizeof(*idx.rows));
	if (!idx.rows)
		return -ENOMEM;
	r = file_pread_all(fd, idx.rows, idx.n * sizeof(*idx.rows), sizeof(h));
	if (r) {
		samples_idx_free(&idx);
		return parse_fail(err, r, "rows cannot be read", sizeof(h));
	}
	sort_rows(&idx);
	*ret_idx = idx;
	return 0;
}

void samples_idx_free(struct samples_idx *idx)
{
	free(idx->rows);
	*idx = (struct samples_idx){0};
}

const struct samples_idx_row *samples_idx_find(const struct samples_idx *idx, uint64_t file_off)
{
	const struct samples_idx_row key = {.file_off = file_off};

	return idx->n ? bsearch(&key, idx->rows, idx->n, sizeof(key), by_place) : NULL;
}
