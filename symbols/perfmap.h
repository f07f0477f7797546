/* /tmp/perf-PID.map: lines "START SIZE name", hexadecimal, START with or without 0x, appended while the runtime runs. */
#ifndef SYMBOLS_PERFMAP_H
#define SYMBOLS_PERFMAP_H

#include "base/error.h"
#include "symbols/symbol.h"

#include <stddef.h>
#include <stdint.h>

#define PERFMAP_LINE_MAX ((size_t)64 << 10) /* longer lines are skipped and counted */
#define PERFMAP_BYTES_MAX ((uint64_t)4 << 30)

struct perfmap_stats {
	uint64_t lines, bad_lines; /* bad: not the grammar, over the limit, or cut at the end of the file */
	uint64_t overwritten; /* entries wholly covered by later ones */
};

/*
 * Loads what the file has now, up to its size at the start. Of overlapping ranges the later line wins, and the earlier
 * keeps what is left of it. fd is borrowed. stats may be NULL. A map without a single good line: -EBADMSG.
 * find takes an addr.
 */
int perfmap_load(int fd, struct symbol_provider **ret_map, struct perfmap_stats *ret_stats,
		 struct parse_error *err);

/* The same from memory, which is borrowed for the provider's life. */
int perfmap_parse(const char *text, size_t len, struct symbol_provider **ret_map,
		  struct perfmap_stats *ret_stats, struct parse_error *err);

#endif
