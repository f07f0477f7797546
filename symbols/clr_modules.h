/*
 * The modules of a CoreCLR and their metadata, all read from its memory: so a file that was replaced since, a bundle, and assemblies
 * that were never in a file (Assembly.Load of bytes, Reflection.Emit) are no different from others.
 * dotnet/runtime docs/design/datacontracts/Loader.md and EcmaMetadata.md.
 */
#ifndef SYMBOLS_CLR_MODULES_H
#define SYMBOLS_CLR_MODULES_H

#include "base/hashmap.h"
#include "base/vec.h"
#include "symbols/clr_contract.h"
#include "symbols/clr_metadata.h"

#define CLR_MODULES_MAX 65536
#define CLR_MODULE_METADATA_MAX ((uint64_t)64 << 20) /* bytes; System.Private.CoreLib has 4 million */
#define CLR_METADATA_MAX ((uint64_t)512 << 20) /* of all modules */

struct clr_module {
	uint64_t addr;
	uint64_t assembly_file, dynamic; /* what it pointed to: whether the address is still the same module's */
	uint32_t looked_at; /* the scan in which that was compared */
	uint32_t dynamic_bytes;
	uint32_t grows; /* how often it was read again for a method that was not in it */
	void *data;
	size_t bytes;
	struct clr_metadata *metadata; /* NULL: could not be read */
};

struct clr_modules_cache {
	const struct clr_io *io;
	const struct clr_contract *contract;
	uint32_t scan; /* number of the scan under way, from 1 */
	VEC(struct clr_module) modules;
	struct hashmap by_addr;
	uint64_t bytes; /* of all metadata */
	size_t failed; /* modules without metadata */
};

/*
 * The metadata of the module at an address, borrowed until the next call. rid: a MethodDef or TypeDef (by table) that must be in it;
 * metadata of Reflection.Emit grows and is read again for one that is not. 0; -ENOENT it cannot be had; -ENOMEM; errors of io but
 * -EFAULT.
 */
int clr_modules_get(struct clr_modules_cache *m, uint64_t addr, enum clr_table table, uint32_t rid,
		    const struct clr_metadata **ret_metadata);
void clr_modules_free(struct clr_modules_cache *m);

#endif
