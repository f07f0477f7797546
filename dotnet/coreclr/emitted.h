/*
 * Metadata while Reflection.Emit makes it, read from the runtime's working structures. .NET 8 has
 * nothing else. Later runtimes keep a copy in file format for debuggers (Module.DynamicMetadata).
 */
#ifndef DOTNET_CORECLR_EMITTED_H
#define DOTNET_CORECLR_EMITTED_H

#include "dotnet/coreclr/contract.h"

#include <stddef.h>
#include <stdint.h>

#define CLR_EMITTED_SEGMENTS_MAX 4096 /* of one heap or table */

/*
 * Reads the tables and heaps of an assembly without a file, into the form that clr_metadata_open
 * takes. x86-64 .NET 8 only. assembly_file: addr of its PEAssembly. max: limit in bytes. *ret_data:
 * the caller frees it. *ret_guids: addr of its first GUIDs. 0; -ENOENT: none, or it is changing
 * now; -ENOMEM; errors of io except -EFAULT.
 */
int clr_emitted_read(const struct clr_io *io, uint64_t assembly_file, size_t max, void **ret_data,
		     size_t *ret_bytes, uint64_t *ret_guids);

#endif
