#include "recording/kept_stacks.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/outbuf.h"
#include "base/replace.h"
#include "container/holes.h"
#include "recording/limits.h"
#include "recording/manifest.h"
#include "recording/samples_idx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct kept_header {
	char magic[8];
	uint32_t version, reserved;
	uint64_t rows, nodes;
};
_Static_assert(sizeof(struct kept_header) == 32, "on-disk layout");

/* Memory of a node while stacks are added. A table that grows has up to 4.5 entries for each. */
#define KEPT_NODE_MEMORY (sizeof(struct kept_node) + 5 * sizeof(struct hashmap_slot))

static const struct kept_header begin = {"pcstacks", 1, 0, 0, 0};

void kept_stacks_free(struct kept_stacks *k)
{
	vec_free(&k->rows);
	vec_free(&k->nodes);
	hashmap_free(&k->ids);
}

static uint64_t bytes_of(uint64_t rows, uint64_t nodes)
{
	return sizeof(struct kept_header) + rows * sizeof(struct kept_stack) +
	       nodes * sizeof(struct kept_node);
}

/* Finds or adds the node of a word with this caller. */
static int add_node(struct kept_stacks *k, uint64_t word, uint32_t *node)
{
	struct kept_node fresh = {.word = word, .parent = *node};
	uint64_t key = hash_mix(word, *node);

	for (;; key++) {
		uint32_t *known;
		int is_new, r = hashmap_entry(&k->ids, key, (uint32_t)k->nodes.len + 1, &known,
					      &is_new);

		if (r)
			return r;
		if (is_new) {
			if (vec_push(&k->nodes, fresh))
				return -ENOMEM;
			*node = (uint32_t)k->nodes.len;
			return 0;
		}
		if (k->nodes.v[*known - 1].word == word && k->nodes.v[*known - 1].parent == *node) {
			*node = *known;
			return 0;
		}
	}
}

int kept_stacks_add(struct kept_stacks *k, const struct kept_stack *row, const uint64_t *words,
		    size_t n)
{
	struct kept_stack out = *row;
	size_t rows = k->rows.len + 1, nodes = k->nodes.len + n;
	int r = 0;

	if (n > KEPT_STACKS_DEPTH_MAX || bytes_of(rows, nodes) > KEPT_STACKS_BYTES_MAX)
		r = -E2BIG;
	else if (k->memory_max && rows * sizeof(out) + nodes * KEPT_NODE_MEMORY > k->memory_max)
		r = -ENOSPC;
	out.node = 0;
	for (size_t i = n; i > 0 && !r; i--)
		r = add_node(k, words[i - 1], &out.node);
	return r ? r : vec_push(&k->rows, out);
}

void kept_stacks_append_words(const struct kept_stacks *k, const struct kept_stack *row,
			      uint64_t *words, size_t *n)
{
	for (uint32_t node = row->node; node; node = k->nodes.v[node - 1].parent)
		words[(*n)++] = k->nodes.v[node - 1].word;
}

int kept_stacks_write(const struct kept_stacks *k, int symbols_fd)
{
	struct kept_header h = begin;
	struct replace file;
	int r = replace_open(&file, symbols_fd, RECORDING_STACKS, REPLACE_PRIVATE);

	if (r)
		return r;
	struct outbuf out = outbuf_to(file.fd);

	h.rows = k->rows.len;
	h.nodes = k->nodes.len;
	outbuf_put(&out, (const char *)&h, sizeof(h));
	if (h.rows)
		outbuf_put(&out, (const char *)k->rows.v, k->rows.len * sizeof(*k->rows.v));
	if (h.nodes)
		outbuf_put(&out, (const char *)k->nodes.v, k->nodes.len * sizeof(*k->nodes.v));
	r = outbuf_close(&out);
	if (!r)
		r = replace_commit(&file);
	replace_abort(&file);
	return r;
}

static int check_header(int fd, uint64_t memory_max, struct kept_header *h, struct parse_error *err)
{
	struct stat st;
	int r = fstat(fd, &st) ? -errno : file_pread_all(fd, h, sizeof(*h), 0);

	if (r || memcmp(h->magic, begin.magic, sizeof(h->magic)) != 0)
		return parse_fail(err, r && r != -ENODATA ? r : -EBADMSG, "it does not hold stacks",
				  0);
	if (h->version != begin.version)
		return parse_fail(err, -ENOTSUP, "it was written by another version", 8);
	if (h->rows > KEPT_STACKS_BYTES_MAX || h->nodes > KEPT_STACKS_BYTES_MAX ||
	    bytes_of(h->rows, h->nodes) > KEPT_STACKS_BYTES_MAX)
		return parse_fail(err, -E2BIG, "it has too many stacks", 16);
	if ((uint64_t)st.st_size != bytes_of(h->rows, h->nodes) || holes_is_sparse(fd))
		return parse_fail(err, -EBADMSG, "its size does not match its header", 16);
	if (memory_max && (uint64_t)st.st_size > memory_max)
		return parse_fail(err, -ENOSPC, "it needs more memory than is left", 16);
	return 0;
}

/* Callers must precede their callees, so that stacks cannot be cyclic. */
static int check_nodes(struct kept_stacks *k, struct parse_error *err)
{
	for (size_t i = 0; i < k->nodes.len; i++) {
		struct kept_node *node = &k->nodes.v[i];

		if (node->parent > i || node->depth)
			return parse_fail(err, -EBADMSG, "a frame precedes its caller",
					  bytes_of(k->rows.len, i));
		node->depth = node->parent ? k->nodes.v[node->parent - 1].depth + 1 : 1;
		if (node->depth > KEPT_STACKS_DEPTH_MAX)
			return parse_fail(err, -EBADMSG, "a stack is too deep",
					  bytes_of(k->rows.len, i));
	}
	return 0;
}

static int check_rows(const struct kept_stacks *k, struct parse_error *err)
{
	for (size_t i = 0; i < k->rows.len; i++) {
		const struct kept_stack *row = &k->rows.v[i];

		if (row->node > k->nodes.len || row->grade >= SAMPLES_IDX_GRADES ||
		    row->end >= SAMPLES_IDX_ENDS || row->limit > LIMITS)
			return parse_fail(err, -EBADMSG, "a row is invalid", bytes_of(i, 0));
	}
	return 0;
}

static int by_place(const void *a, const void *b)
{
	const struct kept_stack *x = a, *y = b;

	return (x->file_off > y->file_off) - (x->file_off < y->file_off);
}

const struct kept_stack *kept_stacks_find(const struct kept_stacks *k, uint64_t file_off)
{
	const struct kept_stack key = {.file_off = file_off};

	return k->rows.len ? bsearch(&key, k->rows.v, k->rows.len, sizeof(key), by_place) : NULL;
}

static int read_all(int fd, uint64_t memory_max, struct kept_stacks *k, struct parse_error *err)
{
	struct kept_header h;
	int r = check_header(fd, memory_max, &h, err);

	if (r)
		return r;
	if (vec_reserve(&k->rows, h.rows) || vec_reserve(&k->nodes, h.nodes))
		return parse_fail(err, -ENOMEM, "out of memory", 0);
	r = h.rows ? file_pread_all(fd, k->rows.v, h.rows * sizeof(*k->rows.v), bytes_of(0, 0)) : 0;
	if (!r && h.nodes)
		r = file_pread_all(fd, k->nodes.v, h.nodes * sizeof(*k->nodes.v),
				   bytes_of(h.rows, 0));
	if (r)
		return parse_fail(err, r, "the file cannot be read", 0);
	k->rows.len = h.rows;
	k->nodes.len = h.nodes;
	r = check_nodes(k, err);
	if (!r)
		r = check_rows(k, err);
	if (!r && h.rows)
		qsort(k->rows.v, k->rows.len, sizeof(*k->rows.v), by_place);
	return r;
}

int kept_stacks_read(int symbols_fd, uint64_t memory_max, struct kept_stacks *ret_kept,
		     struct parse_error *err)
{
	AUTO_CLOSE int fd = -1;
	struct kept_stacks k = {0};
	int r = file_open_regular(symbols_fd, RECORDING_STACKS, &fd);

	if (r)
		return parse_fail(err, r, "the file cannot be opened", 0);
	r = read_all(fd, memory_max, &k, err);
	if (r)
		kept_stacks_free(&k);
	else
		*ret_kept = k;
	return r;
}
