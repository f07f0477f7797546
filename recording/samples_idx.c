#include "recording/samples_idx.h"

#include "base/vec.h"
#include "container/memory_left.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

_Static_assert(SAMPLES_IDX_ROWS_MAX == IDX_FILE_ROWS_MAX, "one limit");

static const struct idx_file_format format = {"pcsmpidx", 2, sizeof(struct samples_idx_row),
					      offsetof(struct samples_idx_row, check)};

int samples_idx_begin(int fd, uint64_t identity, struct idx_file *ret_file)
{
	return idx_file_begin(fd, &format, identity, ret_file);
}

static int by_place(const void *a, const void *b)
{
	const struct samples_idx_row *x = a, *y = b;

	return x->file_off < y->file_off ? -1 : x->file_off > y->file_off;
}

/* Deferred samples were written later than their rows, so the rows are not sorted. */
static void sort_rows(struct samples_idx *idx)
{
	for (size_t i = 1; i < idx->n; i++)
		if (idx->rows[i].file_off < idx->rows[i - 1].file_off) {
			qsort(idx->rows, idx->n, sizeof(*idx->rows), by_place);
			return;
		}
}

static bool is_sound(const struct samples_idx_row *row)
{
	return row->file_off && row->grade < SAMPLES_IDX_GRADES && row->end < SAMPLES_IDX_ENDS;
}

struct reading {
	struct samples_idx idx;
	size_t cap;
	uint64_t bytes_left; /* for more rows */
};

static int add_row(void *ctx, const void *at)
{
	struct reading *reading = ctx;
	struct samples_idx *idx = &reading->idx;
	struct samples_idx_row row;

	memcpy(&row, at, sizeof(row));
	if (!is_sound(&row))
		return -EBADMSG;
	if (reading->bytes_left < sizeof(row))
		return -ENOSPC;
	reading->bytes_left -= sizeof(row);
	if (idx->n == reading->cap &&
	    vec_grow((void **)&idx->rows, &reading->cap, sizeof(*idx->rows), idx->n + 1))
		return -ENOMEM;
	idx->rows[idx->n++] = row;
	return 0;
}

int samples_idx_read(int fd, struct samples_idx *ret_idx, struct parse_error *err)
{
	return samples_idx_read_within(fd, memory_left(), ret_idx, err);
}

int samples_idx_read_within(int fd, uint64_t memory, struct samples_idx *ret_idx,
			    struct parse_error *err)
{
	struct reading reading = {.bytes_left = IDX_FILE_BYTES(memory)};
	int r = idx_file_read(fd, &format, add_row, &reading, &reading.idx.file, err);

	if (r) {
		samples_idx_free(&reading.idx);
		return r;
	}
	sort_rows(&reading.idx);
	*ret_idx = reading.idx;
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
