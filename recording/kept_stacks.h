/*
 * Reads and writes symbols/stacks of a recording: the stacks that were unwound from its samples'
 * registers and stack copies. A machine without the recording machine's files can use them. Stacks
 * share their callers. Little-endian: a header, rows, nodes.
 */
#ifndef RECORDING_KEPT_STACKS_H
#define RECORDING_KEPT_STACKS_H

#include "base/error.h"
#include "base/hashmap.h"
#include "base/vec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_STACKS_BYTES_MAX ((uint64_t)1 << 30)
#define KEPT_STACKS_DEPTH_MAX 65536

struct kept_stack {
	uint64_t file_off;  /* offset of the sample's record */
	uint32_t node;      /* the leaf; 0: no user frames */
	uint8_t grade, end; /* as in struct samples_idx_row */
	uint16_t first_spliced, first_guess;
	uint16_t limit; /* 1 + the enum recording_limit that left it incomplete; 0: none */
	uint16_t reserved[2];
};
_Static_assert(sizeof(struct kept_stack) == 24, "on-disk layout");

/* A frame and its caller. */
struct kept_node {
	uint64_t word;   /* word of the callchain */
	uint32_t parent; /* the caller, less than this node's number; 0: none */
	uint32_t depth;  /* 0 on disk */
};
_Static_assert(sizeof(struct kept_node) == 16, "on-disk layout");

/* A zeroed struct is empty. */
struct kept_stacks {
	VEC(struct kept_stack) rows; /* after kept_stacks_read sorted by file_off */
	VEC(struct kept_node) nodes; /* the first node has number 1 */
	uint64_t memory_max;         /* bytes, for kept_stacks_add; 0: no limit */
	struct hashmap ids;          /* private */
};

/*
 * Adds a row. words: the user part of its callchain, leaf first, which replaces row->node. 0,
 * -ENOMEM; -E2BIG: beyond KEPT_STACKS_BYTES_MAX; -ENOSPC: beyond memory_max.
 */
int kept_stacks_add(struct kept_stacks *k, const struct kept_stack *row, const uint64_t *words,
		    size_t n);

/*
 * Appends the user part of a row's callchain, leaf first, to words[0 .. *n). words has room for
 * KEPT_STACKS_DEPTH_MAX more.
 */
void kept_stacks_append_words(const struct kept_stacks *k, const struct kept_stack *row,
			      uint64_t *words, size_t *n);

/* Writes the file into a recording's symbols/, whole or not at all. 0 or -errno. */
int kept_stacks_write(const struct kept_stacks *k, int symbols_fd);

/*
 * Reads the file. 0; -ENOENT: no such file; -EBADMSG; -ENOTSUP: another version; -E2BIG; -ENOSPC:
 * it needs more memory than memory_max (0: no limit); -ENOMEM; -errno.
 */
int kept_stacks_read(int symbols_fd, uint64_t memory_max, struct kept_stacks *ret_kept,
		     struct parse_error *err);

/* Returns the row of a record after kept_stacks_read, or NULL. */
const struct kept_stack *kept_stacks_find(const struct kept_stacks *k, uint64_t file_off);
void kept_stacks_free(struct kept_stacks *k);

#endif
