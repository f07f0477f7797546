/* Reads symbols/names of a recording (format: symbols/store/store.h). */
#ifndef SYMBOLS_STORE_STORE_READ_H
#define SYMBOLS_STORE_STORE_READ_H

#include "base/error.h"
#include "symbols/store/store.h"

/*
 * Adds the content of text, len bytes and a NUL, to lookup_cache. Overwrites text. Returns 0,
 * -EBADMSG (another format, or cut off), -ENOTSUP (a newer format), -ENOMEM or -E2BIG. An error
 * sets *err (may be NULL), and lookup_cache may then hold a part of the content.
 */
int store_parse(char *text, size_t len, struct lookup_cache *lookup_cache,
		struct store_notes *ret_notes, struct parse_error *err);

/*
 * Reads dir/names with at most memory_max bytes of memory. Errors: as for store_parse, -ENOENT,
 * -ENOSPC (it needs more than memory_max) or -errno.
 */
int store_read(int dir_fd, uint64_t memory_max, struct lookup_cache *lookup_cache,
	       struct store_notes *ret_notes, struct parse_error *err);

#endif
