/*
 * Finds the runtime in a process: the symbols that CoreCLR exports, in the ELF modules in the
 * process's memory. contract.h reads its structures from there.
 */
#ifndef DOTNET_CORECLR_LOCATE_H
#define DOTNET_CORECLR_LOCATE_H

#include "dotnet/coreclr/io.h"

#include <stdint.h>

/* Addresses in a CoreCLR that lead to its structures; 0 if absent. */
struct clr_anchors {
	uint64_t descriptor;
	uint64_t dac_table;
	/* Version, from a text compiled into the runtime. Set only with dac_table. 0: unknown. */
	uint32_t major;
};

/* Any of the anchors. It lies in the data of the runtime's module. */
static inline uint64_t clr_anchors_any(const struct clr_anchors *anchors)
{
	return anchors->descriptor ? anchors->descriptor : anchors->dac_table;
}

/*
 * Searches the text of /proc/PID/maps for the runtime's module: libcoreclr.so, otherwise any mapped
 * ELF file. Modifies maps. Reads the module from memory, so a replaced or deleted file does not
 * matter. 0; -ENOENT: no CoreCLR; errors of io.
 */
int clr_locate_in_process(const struct clr_io *io, char *maps, struct clr_anchors *ret_anchors);

/* Does the same for the single ELF module that begins at addr. */
int clr_locate_in_module(const struct clr_io *io, uint64_t addr, struct clr_anchors *ret_anchors);

#endif
