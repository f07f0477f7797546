/*
 * Reads /tmp/perf-PID.map: lines "START SIZE name", hexadecimal with or without 0x, appended while
 * the runtime runs. Source: Linux tools/perf/Documentation/jit-interface.txt.
 *
 * A line is bad if it is longer than PERFMAP_LINE_MAX or its start is over 64 bits. It is also bad
 * if its size is over PERFMAP_SIZE_MAX, its end over 2^64, or its name empty. A last line without
 * newline is bad too: the runtime is still writing it. A size of 0 covers the one address START, as
 * in perf.
 *
 * A name is everything after the second number and its blanks, up to a NUL if there is one,
 * without the CR of a CRLF. Unlike here, perf 6.1 drops names of one or two characters, and finds
 * any of several overlapping ranges.
 */
#ifndef SYMBOLS_JIT_PERFMAP_H
#define SYMBOLS_JIT_PERFMAP_H

#include "base/error.h"
#include "symbols/core/symbol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFMAP_LINE_MAX ((size_t)64 << 10) /* longer lines are skipped and counted */
#define PERFMAP_BYTES_MAX (((uint64_t)4 << 30) - 1)
#define PERFMAP_ENTRIES_MAX ((size_t)32 << 20) /* earlier lines are left out */
#define PERFMAP_SIZE_MAX UINT32_MAX            /* of one range, bytes */
#define PERFMAP_LINE_MEMORY 72 /* bytes of memory for a line besides its text, at most */

struct perfmap_stats {
	uint64_t lines,
		/* bad: against the grammar, over a limit, or cut at the end of the file */
		bad_lines;
	uint64_t overwritten;  /* entries that later ones cover entirely */
	uint64_t cut_bytes;    /* of the file, left out for the limit of memory, or no_answer */
	bool no_answer;        /* the search for holes did not end */
	uint64_t memory_bytes; /* taken at most */
};

/*
 * Loads the lines that the file has at the start of the call. If ranges overlap, the later line
 * wins and the earlier one keeps the rest. The file fd is borrowed and a regular file. ret_stats
 * may be NULL; it is set on -EBADMSG too. The provider looks up by addr.
 *
 * memory_max limits the memory. A file that needs more is read from its end, because later lines
 * win: an old line without the newer ones could give a wrong name.
 *
 * Returns 0; -EBADMSG: no good line; -E2BIG: over PERFMAP_BYTES_MAX; -ENOMEM; -errno.
 */
int perfmap_load(int fd, uint64_t memory_max, struct symbol_provider **ret_map,
		 struct perfmap_stats *ret_stats, struct parse_error *err);

/* The same from memory, which is borrowed during the call only, without a limit of memory. */
int perfmap_parse(const char *text, size_t len, struct symbol_provider **ret_map,
		  struct perfmap_stats *ret_stats, struct parse_error *err);

#endif
