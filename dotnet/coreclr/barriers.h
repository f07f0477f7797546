/*
 * Finds CoreCLR's copy of its write barriers: functions that the runtime copies into memory of its
 * own and patches there.
 */
#ifndef DOTNET_CORECLR_BARRIERS_H
#define DOTNET_CORECLR_BARRIERS_H

#include "dotnet/coreclr/contract.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name of the barriers in the runtime's perf map. */
#define CLR_BARRIERS_NAME "stub InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>"

/* Zeroed is empty. */
struct clr_barriers {
	/* The runtime's code was read, or cannot be read. */
	bool has_read;
	unsigned int tries;
	unsigned char *code; /* copy of the runtime's code */
	size_t bytes;
};

/*
 * Whether the executable memory [start, end) is the copy: part of its code equals the runtime's.
 *   maps: the text of /proc/PID/maps.
 *   module: an addr in the runtime's module after its code (clr_anchors_any).
 * The first call reads the runtime's code. Only a few ranges are compared in all.
 */
bool clr_barriers_is_copy(struct clr_barriers *b, const struct clr_io *io, const char *maps,
			  uint64_t module, uint64_t start, uint64_t end);
void clr_barriers_free(struct clr_barriers *b);

#endif
