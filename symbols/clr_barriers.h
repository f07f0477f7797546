/* CoreCLR's write barriers: functions of the runtime that it copies into memory of its own, where it patches them. */
#ifndef SYMBOLS_CLR_BARRIERS_H
#define SYMBOLS_CLR_BARRIERS_H

#include "symbols/clr_contract.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLR_BARRIERS_NAME "stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>" /* as the perf map calls them */

/* Zeroed is new. */
struct clr_barriers {
	bool looked; /* for the runtime's code */
	unsigned int tries;
	unsigned char *code; /* a copy of it */
	size_t bytes;
};

/*
 * Whether executable memory [start, end) is the copy: its code is the runtime's in part. maps: the text of /proc/PID/maps.
 * module: an addr in the runtime's module behind its code (clr_anchors_any). The runtime's code is read at the first call, and only a few
 * ranges are compared with it.
 */
bool clr_barriers_is(struct clr_barriers *b, const struct clr_io *io, const char *maps, uint64_t module, uint64_t start, uint64_t end);
void clr_barriers_free(struct clr_barriers *b);

#endif
