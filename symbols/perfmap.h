/*
 * /tmp/perf-PID.map: lines "START SIZE name", hexadecimal with or without 0x, appended while the runtime runs
 * (Linux tools/perf/Documentation/jit-interface.txt).
 *
 * A line that is longer than PERFMAP_LINE_MAX, has a start over 64 bits, a size over PERFMAP_SIZE_MAX, an end over 2^64
 * or no name is bad, and so is the last one when it has no newline (it is still being written). A size of 0 covers the one address START, as in perf. A name
 * is everything after the second number and its spaces, without the CR of a CRLF, up to a NUL if there is one.
 * Unlike perf 6.1, which drops names of one or two characters and finds any one of overlapping ranges, short names are
 * kept and of overlapping ranges the later line wins.
 */
#ifndef SYMBOLS_PERFMAP_H
#define SYMBOLS_PERFMAP_H

#include "base/error.h"
#include "symbols/symbol.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PERFMAP_LINE_MAX ((size_t)64 << 10) /* longer lines are skipped and counted */
#define PERFMAP_BYTES_MAX (((uint64_t)4 << 30) - 1)
#define PERFMAP_ENTRIES_MAX ((size_t)32 << 20) /* further lines are counted as bad */
#define PERFMAP_SIZE_MAX UINT32_MAX /* of one range, bytes */

struct perfmap_stats {
	uint64_t lines, bad_lines; /* bad: not the grammar, over a limit, or cut at the end of the file */
	uint64_t overwritten; /* entries wholly covered by later ones */
};

/*
 * Loads what the file has now, up to its size at the start. Of overlapping ranges the later line wins, and the earlier
 * keeps what is left of it. fd is borrowed and a regular file. stats may be NULL; they are filled in on -EBADMSG too.
 * 0; -EBADMSG a map without a single good line; -E2BIG over PERFMAP_BYTES_MAX; -ENOMEM; -errno. find takes an addr.
 */
int perfmap_load(int fd, struct symbol_provider **ret_map, struct perfmap_stats *ret_stats,
		 struct parse_error *err);

/* The same from memory, borrowed during the call only. */
int perfmap_parse(const char *text, size_t len, struct symbol_provider **ret_map,
		  struct perfmap_stats *ret_stats, struct parse_error *err);

/* One line of a map. */
struct perfmap_entry {
	uint64_t start;
	uint32_t bytes; /* at least 1 */
	const char *name; /* in the line, ended by a NUL */
};

/* Takes the line [p, eol) apart; *eol is its newline, which is written over. False where it is bad. */
bool perfmap_line(const char *p, char *eol, struct perfmap_entry *ret_entry);

/*
 * The last line that a bad line has in it. CoreCLR counts characters where it should count bytes, so that a line with a name that is not
 * all ASCII lacks its end with the newline (in .NET 10 its beginning too): what comes behind it in the same line is whole.
 */
bool perfmap_line_behind_damage(const char *p, char *eol, struct perfmap_entry *ret_entry);

#endif
