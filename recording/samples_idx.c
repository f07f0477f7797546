#include "recording/samples_idx.h"

#include "base/file.h"
#include "base/vec.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#define READ_ROWS 256

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

static bool is_zero(const struct samples_idx_row *row)
{
	return !row->file_off && !row->grade && !row->end && !row->first_spliced && !row->first_guess && !row->reserved;
}

static bool is_sound(const struct samples_idx_row *row)
{
	return row->file_off && row->grade < SAMPLES_IDX_GRADES && row->end < SAMPLES_IDX_ENDS && !row->reserved;
}

/* Adds n rows. 1; 0: it ends here; -EBADMSG; -ENOMEM. */
static int add_rows(struct samples_idx *idx, size_t *cap, const struct samples_idx_row *rows, size_t n)
{
	if (idx->n + n > *cap && vec_grow((void **)&idx->rows, cap, sizeof(*idx->rows), idx->n + n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (is_zero(&rows[i]))
			return 0;
		if (!is_sound(&rows[i]))
			return -EBADMSG;
		idx->rows[idx->n++] = rows[i];
	}
	return 1;
}

static int read_rows(int fd, size_t n, struct samples_idx *idx, struct parse_error *err)
{
	struct samples_idx_row rows[READ_ROWS];
	size_t cap = 0;
	int r = 1;

	for (size_t at = 0; at < n && r > 0; at += READ_ROWS) {
		size_t some = n - at < READ_ROWS ? n - at : READ_ROWS;
		uint64_t off = sizeof(struct samples_idx_header) + at * sizeof(*rows);

		r = file_pread_all(fd, rows, some * sizeof(*rows), off);
		if (r)
			return parse_fail(err, r, "rows cannot be read", off);
		r = add_rows(idx, &cap, rows, some);
		if (r < 0)
			return parse_fail(err, r, r == -ENOMEM ? "out of memory" : "a row makes no sense",
					  sizeof(struct samples_idx_header) + idx->n * sizeof(*rows));
	}
	return 0;
}

int samples_idx_read(int fd, struct samples_idx *ret_idx, struct parse_error *err)
{
	struct samples_idx idx = {0};
	struct samples_idx_header h;
	struct stat st;
	int r = fstat(fd, &st) ? -errno : file_pread_all(fd, &h, sizeof(h), 0);

	if (r || memcmp(h.magic, header.magic, sizeof(h.magic)) != 0)
		return parse_fail(err, r && r != -ENODATA ? r : -EBADMSG, "no index of samples", 0);
	if (h.version != header.version || h.row_bytes != header.row_bytes)
		return parse_fail(err, -ENOTSUP, "an index of samples of another version", 8);
	size_t n = ((uint64_t)st.st_size - sizeof(h)) / sizeof(*idx.rows);

	if (n > SAMPLES_IDX_ROWS_MAX)
		return parse_fail(err, -E2BIG, "too many rows", 0);
	r = read_rows(fd, n, &idx, err);
	if (r) {
		samples_idx_free(&idx);
		return r;
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
