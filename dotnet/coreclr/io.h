/* Access to the memory of a process with CoreCLR, by callbacks. */
#ifndef DOTNET_CORECLR_IO_H
#define DOTNET_CORECLR_IO_H

#include "container/memory.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Callbacks that read a process's memory. All may return the errors of container/memory.h. Any
 * error except -EFAULT ends the operation that uses them.
 */
struct clr_io {
	int (*read)(void *ctx, uint64_t addr, void *buf, size_t len); /* as memory_read */
	int (*read_pieces)(void *ctx, struct memory_piece *pieces,
			   size_t n); /* as memory_read_pieces */
	/*
	 * Gives the text of /proc/PID/maps; the caller frees it. May be NULL: then some stubs are
	 * not found.
	 */
	int (*maps)(void *ctx, char **ret_text);
	void *ctx;
};

#endif
