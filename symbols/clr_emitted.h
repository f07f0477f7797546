/*
 * Metadata that Reflection.Emit is making, as the runtime works on it. Later runtimes keep a copy in the form of a file for debuggers
 * (Module.DynamicMetadata); .NET 8 has only this.
 */
#ifndef SYMBOLS_CLR_EMITTED_H
#define SYMBOLS_CLR_EMITTED_H

#include "symbols/clr_contract.h"

#include <stddef.h>
#include <stdint.h>

#define CLR_EMITTED_SEGMENTS_MAX 4096 /* of one heap or table */

/*
 * Reads the tables and heaps of an assembly that is in no file, by the address of its PEAssembly, into the form of clr_metadata_open: at
 * most max bytes, the caller frees. *ret_guids: addr of its first GUIDs. x86-64 .NET 8. 0; -ENOENT it has none, or it changes at the
 * moment; -ENOMEM; errors of io but -EFAULT.
 */
int clr_emitted_read(const struct clr_io *io, uint64_t assembly_file, size_t max, void **ret_data, size_t *ret_bytes,
		     uint64_t *ret_guids);

#endif
